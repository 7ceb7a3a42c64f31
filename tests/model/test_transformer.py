"""The whole model against an independent forward pass in NumPy, and what must not change its
output; fixed patterns."""

import math

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import BOS, EOS, PAD
from specialized_heads.model.architecture import KINDS, Architecture
from specialized_heads.model.attention import LABELS, Activations, fixed_weights
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer, initialise, sinusoids

SOURCE = torch.tensor([[5, 9, 4, 17, EOS], [8, 6, EOS, PAD, PAD]])
TARGET = torch.tensor([[BOS, 4, 12, 20], [BOS, 7, PAD, PAD]])


def reference(model: Transformer, source: list[int], target: list[int]) -> np.ndarray:
    """Logits (T, V) of one sentence in float64, written from appendix B.2 and the annotated
    definitions."""
    a = model.architecture
    p = {name: tensor.detach().double().numpy() for name, tensor in model.named_parameters()}
    d = a.width

    def embed(table: np.ndarray, ids: list[int]) -> np.ndarray:
        x = table[ids] * math.sqrt(d)
        for position in range(len(ids)):
            for i in range(d // 2):
                angle = position / 10000 ** (i / (d // 2 - 1))
                x[position, i] += math.sin(angle)
                x[position, d // 2 + i] += math.cos(angle)
        return x

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]

    def attend(
        x: np.ndarray, memory: np.ndarray, name: str, heads: int, causal: bool
    ) -> np.ndarray:
        out, gate = np.zeros_like(x), model.get_submodule(name).gate
        for head in range(heads):
            scale = 1.0 if gate is None else float(gate.values[head])
            rows = slice(head * a.head_width, (head + 1) * a.head_width)
            q, (k, v) = (
                x @ p[f"{name}.query"][rows].T,
                (memory @ p[f"{name}.{of}"][rows].T for of in ("key", "value")),
            )
            for t in range(len(x)):
                seen = t + 1 if causal else len(memory)
                scores = np.exp(k[:seen] @ q[t] / math.sqrt(a.head_width))
                out[t] += scale * p[f"{name}.output"][:, rows] @ (scores / scores.sum() @ v[:seen])
        return out

    def feed_forward(x: np.ndarray, name: str) -> np.ndarray:
        hidden = np.maximum(x @ p[f"{name}.expand.weight"].T + p[f"{name}.expand.bias"], 0)
        return hidden @ p[f"{name}.contract.weight"].T + p[f"{name}.contract.bias"]

    x = embed(p["source_embedding"], source)
    for n, heads in enumerate(a.encoder):
        normed = norm(x, f"encoder.{n}.attention_norm")
        x = x + attend(normed, normed, f"encoder.{n}.attention", len(heads), causal=False)
        x = x + feed_forward(norm(x, f"encoder.{n}.feed_forward_norm"), f"encoder.{n}.feed_forward")
    memory = norm(x, "encoder_norm")
    y = embed(p["target_embedding"], target)
    for n in range(len(a.decoder)):
        normed = norm(y, f"decoder.{n}.attention_norm")
        y = y + attend(normed, normed, f"decoder.{n}.attention", len(a.decoder[n]), causal=True)
        y = y + attend(
            norm(y, f"decoder.{n}.cross_norm"),
            memory,
            f"decoder.{n}.cross",
            len(a.cross[n]),
            causal=False,
        )
        y = y + feed_forward(norm(y, f"decoder.{n}.feed_forward_norm"), f"decoder.{n}.feed_forward")
    return norm(y, "decoder_norm") @ p["output_embedding"].T


@pytest.mark.parametrize(
    "removed", [{}, {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0, 1], [0]]}]
)
@pytest.mark.parametrize("gated", [False, True])
def test_forward_pass_equals_the_reference(tiny_model, removed: dict, gated: bool) -> None:
    model = tiny_model(heads=2)
    model.keep_heads(removed)
    for attention in model.attentions() if gated else ():
        attention.gate = Mask(torch.tensor([0.25, 0.0])[: len(attention.heads)])
    logits = model.logits(model(SOURCE, TARGET))
    for row, (source, target) in enumerate(zip(SOURCE.tolist(), TARGET.tolist(), strict=True)):
        source, target = [i for i in source if i != PAD], [i for i in target if i != PAD]
        expected = reference(model, source, target)
        assert (
            np.abs(logits[row, : len(target)].detach().numpy() - expected).max()
            < 1e-5 * np.abs(expected).max()
        )


@pytest.mark.parametrize(
    "kept",
    [
        {"encoder": [[0, 2], [1]], "decoder": [[2], [0, 1, 2]], "cross": [[1], [0, 1]]},
        {"encoder": [[], [0, 1, 2]]},
        {kind: [[], []] for kind in KINDS},
    ],
)
@torch.inference_mode()
def test_removed_heads_equal_masked_heads(tiny_model, kept: dict) -> None:
    model, masked = tiny_model(heads=3, width=12), tiny_model(heads=3, width=12)
    for kind, layers in kept.items():
        for attention, positions in zip(masked.attentions(kind), layers, strict=True):
            attention.gate = Mask(torch.tensor([float(head in positions) for head in range(3)]))
    model.keep_heads(kept)
    activations: Activations = {}
    states = model(SOURCE, TARGET, activations)
    assert torch.allclose(states, masked(SOURCE, TARGET), atol=1e-5)
    assert torch.equal(states, model(SOURCE, TARGET))  # recording activations changes nothing
    for kind, layers in kept.items():
        assert getattr(model.architecture, kind) == tuple(map(tuple, layers))
        for layer, positions in enumerate(layers):
            assert ((kind, layer, "weights") in activations) == bool(positions)


def test_a_sentence_longer_than_the_table_of_positions_is_read_and_training_goes_on(
    tiny_model,
) -> None:
    model = tiny_model(layers=1)
    with torch.inference_mode():
        assert model(torch.full((1, 700), 5), TARGET[:1]).isfinite().all()
    assert torch.equal(model.positions[:700], sinusoids(700, 8))
    model.train()
    model(SOURCE, TARGET).sum().backward()
    assert model.source_embedding.grad is not None


def test_position_encodings_equal_the_formula(tiny_model) -> None:
    frequency, base, scale = 2.0, 30.0, 3.0
    model = tiny_model(position_frequency=frequency, position_base=base, position_scale=scale)
    angles = np.arange(512)[:, None] * frequency * base ** (-np.arange(4) / 3)
    expected = scale * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    assert np.abs(model.encodings(0, 512).numpy() - expected).max() < 1e-4 * scale
    assert (angles[1, 0], angles[1, -1]) == pytest.approx((frequency, frequency / base))
    embedded = (
        model.embed(model.source_embedding, torch.tensor([[5, 9]]), start=3)[0].detach().numpy()
    )
    words = model.source_embedding[[5, 9]].detach().numpy() * math.sqrt(8)
    assert np.abs(embedded - words - expected[3:5]).max() < 1e-5


def test_initialisation() -> None:
    sizes = {"source_vocabulary": 900, "target_vocabulary": 800, "width": 64, "feed_forward": 256}
    architecture = Architecture.full(**sizes, layers=2, heads=4)
    model, twin = (Transformer(architecture, dropout=0.1) for _ in range(2))
    initialise(model, seed=3)
    initialise(twin, seed=3)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    for name in ("source_embedding", "target_embedding", "output_embedding"):
        assert float(weights[name].std()) == pytest.approx(64**-0.5, rel=0.02)
        assert abs(float(weights[name].mean())) < 0.003
    for name, weight in weights.items():
        if weight.dim() == 2 and not name.endswith("embedding"):
            bound = math.sqrt(6 / sum(weight.shape))
            assert 0.99 * bound < float(weight.abs().max()) <= bound, name
            assert float(weight.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05), name
        elif "norm" in name and name.endswith("weight"):
            assert (weight == 1).all(), name
        elif weight.dim() == 1:
            assert (weight == 0).all(), name
        assert torch.equal(weight, twin.get_parameter(name))
    initialise(twin, seed=4)
    assert not torch.equal(model.source_embedding, twin.source_embedding)


def test_dropout_falls_on_the_weights_in_training_only(tiny_model) -> None:
    attention, generator = tiny_model().attentions("cross")[1], torch.Generator().manual_seed(12)
    x, memory = torch.randn(2, 5, 8, generator=generator), torch.randn(2, 6, 8, generator=generator)
    inputs = x, memory, torch.zeros(2, 1, 1, 6)
    attention.dropout = 0.5
    plain = attention(*inputs)
    assert torch.equal(plain, attention(*inputs))
    attention.train()
    torch.manual_seed(1)
    draws = attention(*(x.repeat(3000, *[1] * (x.dim() - 1)) for x in inputs)).view(
        3000, *plain.shape
    )
    assert not torch.equal(draws[0], plain)
    assert torch.allclose(draws.mean(0), plain, atol=0.1)


# The fixed attention patterns, against sentences small enough to work out by hand.

KEYS = torch.tensor([[True] * 5, [True, True, True, False, False]])


def test_context_grows_with_the_cube_of_the_place() -> None:
    weights = fixed_weights(KEYS)
    left = weights[0, list(LABELS).index("left context"), 4]
    assert torch.allclose(left, torch.tensor([1.0, 8.0, 27.0, 0.0, 0.0]) / 36)
    right = weights[1, list(LABELS).index("right context"), 0]
    assert torch.equal(right, torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]))
    end = weights[1, list(LABELS).index("end of the sentence"), 0]
    assert torch.allclose(end, torch.tensor([1.0, 8.0, 27.0, 0.0, 0.0]) / 36)
    start = weights[1, list(LABELS).index("start of the sentence"), 2]
    assert torch.allclose(start, torch.tensor([27.0, 8.0, 1.0, 0.0, 0.0]) / 36)


def test_a_model_with_fixed_patterns_attends_by_them_and_trains_the_rest(tiny_model) -> None:
    model = tiny_model(heads=8, width=16, fixed_patterns=True)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD]])
    activations: Activations = {}

    states = model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # Not their plain sum: that of a LayerNorm's output is constant, so its gradients would be zero
    # up to rounding.
    (states * torch.arange(1.0, 17.0)).sum().backward()

    patterns = fixed_weights(source != PAD)
    for layer in range(2):
        assert torch.equal(activations["encoder", layer, "weights"][:, : len(LABELS)], patterns)
    query = model.encoder[0].attention.query.grad.unflatten(0, (8, 2))
    assert not query[: len(LABELS)].any() and query[len(LABELS) :].any()

    model.keep_heads(
        {"encoder": [[1, 7], []], "decoder": [list(range(8))] * 2, "cross": [list(range(8))] * 2}
    )
    model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # The heads that stay keep their patterns.
    assert torch.equal(activations["encoder", 0, "weights"][:, 0], patterns[:, 1])
