"""Relevance propagation against loops over single neurons written from appendix A, its conservation, and its averages."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import relevance
from specialized_heads.heads.relevance import head_relevance, propagate
from specialized_heads.model import attention
from specialized_heads.model.attention import MultiHeadAttention, Tape
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.training.batching import make_batch

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]]
REMOVED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}


def away_from_zero(z: float, epsilon: float) -> float:
    return z + epsilon if z >= 0 else z - epsilon


class NeuronByNeuron:
    """Relevance of one generation step of one sentence, one neuron at a time, in float64."""

    def __init__(self, model: Transformer, tape: Tape, epsilon: float) -> None:
        self.model, self.epsilon = model, epsilon
        self.tape = {key: value[0].numpy() for key, value in tape.items()}
        self.heads: dict[tuple[str, int], list[float]] = {}

    def product(self, x: np.ndarray, weight: torch.Tensor, outputs: np.ndarray) -> np.ndarray:
        """R_u = Σ_v W_vu x_u / (Σ_u' W_vu' x_u') R_v, at every position."""
        w, inputs = weight.detach().double().numpy(), np.zeros_like(x)
        for position in range(len(x)):
            for v in range(len(w)):
                z = away_from_zero(sum(w[v, u] * x[position, u] for u in range(w.shape[1])), self.epsilon)
                for u in range(w.shape[1]):
                    inputs[position, u] += w[v, u] * x[position, u] / z * outputs[position, v]
        return inputs

    def residual(self, kind: str, layer: int, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A sum gives each of its two summands its share."""
        a, b = self.tape[kind, layer, "residual"], self.tape[kind, layer, "update"]
        below, update = np.zeros_like(a), np.zeros_like(a)
        for place in np.ndindex(*a.shape):
            z = away_from_zero(a[place] + b[place], self.epsilon)
            below[place], update[place] = a[place] / z * outputs[place], b[place] / z * outputs[place]
        return below, update

    def feed_forward(self, kind: str, layer: int, outputs: np.ndarray) -> np.ndarray:
        module = getattr(self.model, kind)[layer].feed_forward
        kind = f"{kind}_feed_forward"
        below, update = self.residual(kind, layer, outputs)
        hidden = self.product(self.tape[kind, layer, "hidden"], module.contract.weight, update)
        return below + self.product(self.tape[kind, layer, "input"], module.expand.weight, hidden)

    def attention(self, module: MultiHeadAttention, update: np.ndarray) -> np.ndarray | float:
        """Relevance of the input of keys and values; weights are constants of a weighted sum of values."""
        kind, layer, h, k = module.kind, module.layer, len(module.heads), module.head_width
        if not h:
            self.heads[kind, layer] = []
            return 0.0
        weights, values, context = (self.tape[kind, layer, name] for name in ("weights", "values", "context"))
        joined = context.transpose(1, 0, 2).reshape(len(update), h * k)
        outputs = self.product(joined, module.output, update)
        self.heads[kind, layer] = [float(outputs[:, head * k : (head + 1) * k].sum()) for head in range(h)]
        of_values = np.zeros((values.shape[1], h * k))
        for head, t, s, i in np.ndindex(h, len(update), values.shape[1], k):
            z = away_from_zero(context[head, t, i], self.epsilon)
            of_values[s, head * k + i] += weights[head, t, s] * values[head, s, i] / z * outputs[t, head * k + i]
        return self.product(self.tape[kind, layer, "keys_input"], module.value, of_values)

    def run(self, states: np.ndarray, step: int) -> float:
        """Fill `heads`; return all relevance that has arrived at the embeddings."""
        table = self.model.softmax_embedding.detach().double().numpy()
        top = table[int(np.argmax(table @ states[step]))]
        decoder = np.zeros_like(states)
        decoder[step] = states[step] * top / away_from_zero(float(states[step] @ top), self.epsilon)
        memory: np.ndarray | float = 0.0
        for n in reversed(range(len(self.model.decoder))):
            layer = self.model.decoder[n]
            decoder = self.feed_forward("decoder", n, decoder)
            decoder, update = self.residual("cross", n, decoder)
            memory = memory + self.attention(layer.cross, update)
            decoder, update = self.residual("decoder", n, decoder)
            decoder = decoder + self.attention(layer.attention, update)
        for n in reversed(range(len(self.model.encoder))):
            memory = self.feed_forward("encoder", n, memory)
            memory, update = self.residual("encoder", n, memory)
            memory = memory + self.attention(self.model.encoder[n].attention, update)
        return float(decoder.sum() + memory.sum())


@pytest.mark.parametrize("removed", [{}, REMOVED])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05])
def test_every_head_and_step_equals_the_loops(
    tiny_model: Callable[..., Transformer],
    store: Callable[..., TokenStore],
    removed: dict,
    epsilon: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "softmax", lambda scores: torch.softmax(scores, -1))  # so that all is float64
    model = tiny_model().double()
    model.keep_heads(removed)
    for number in (0, 1):
        batch = make_batch(store(SOURCES, TARGETS), np.array([number]))
        found = propagate(model, batch, epsilon=epsilon)
        assert found.heads.keys() == {(kind, layer) for kind in KINDS for layer in range(2)}
        tape: Tape = {}
        with torch.inference_mode():
            states = model(batch.source, batch.target_in, tape)[0].numpy()
        for step in range(batch.target_in.shape[1]):
            expected = NeuronByNeuron(model, tape, epsilon)
            left = expected.run(states, step)
            assert float(found.totals["encoder 1"][0, step]) == pytest.approx(left, rel=1e-6)
            for key, heads in expected.heads.items():
                assert found.heads[key][0, step].tolist() == pytest.approx(heads, rel=1e-5, abs=1e-7), key


@pytest.mark.parametrize("removed", [{}, REMOVED, {"cross": [[], []]}, {kind: [[], []] for kind in KINDS}])
def test_relevance_is_conserved_from_level_to_level(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore], removed: dict
) -> None:
    model = tiny_model()
    model.keep_heads(removed)
    found = propagate(model, make_batch(store(SOURCES, TARGETS), np.arange(3)), epsilon=1e-7)
    assert list(found.totals) == ["decoder 2", "decoder 1", "encoder 2", "encoder 1"]
    assert found.steps.sum() == sum(map(len, TARGETS)) + 3
    for level, total in found.totals.items():
        deviation = (total[found.steps] - 1).abs()
        assert float(deviation.median()) < 1e-3, level
        assert float(deviation.max()) < 0.02, level


def test_companions_in_the_batch_change_nothing(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    model, data = tiny_model(), store(SOURCES, TARGETS)
    together = propagate(model, make_batch(data, np.arange(3)), epsilon=0.01)
    for row, target in enumerate(TARGETS):
        alone = propagate(model, make_batch(data, np.array([row])), epsilon=0.01)
        steps = len(target) + 1
        assert together.steps[row].tolist() == [step < steps for step in range(4)]
        for key, heads in alone.heads.items():
            assert torch.allclose(together.heads[key][row, :steps], heads[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("floats", [1, 1_000_000])
def test_relevance_of_a_set_is_the_mean_of_its_steps(
    tiny_model: Callable[..., Transformer],
    store: Callable[..., TokenStore],
    floats: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relevance, "BATCH_FLOATS", floats)
    model, data = tiny_model(), store(SOURCES, TARGETS)
    model.keep_heads(REMOVED)
    means, conservation = head_relevance(model, data, epsilon=0.01)
    steps: dict[tuple[str, int], list[np.ndarray]] = {key: [] for key in means}
    for row in range(3):
        for key, heads in propagate(model, make_batch(data, np.array([row])), epsilon=0.01).heads.items():
            steps[key] += [head / np.abs(head).sum() if len(head) else head for head in heads[0].numpy()]
    for key, mean in means.items():
        assert mean == pytest.approx(np.mean(steps[key], axis=0), rel=1e-3, abs=1e-5)
        assert np.abs(mean).sum() <= 1 + 1e-6
    assert means["cross", 0].tolist() == pytest.approx([np.mean([np.sign(s[0]) for s in steps["cross", 0]])])
    assert means["encoder", 1].shape == (0,)
    assert list(conservation) == ["decoder 2", "decoder 1", "encoder 2", "encoder 1"]


def test_a_head_that_adds_nothing_has_no_relevance(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    model = tiny_model()
    model.attentions("encoder")[0].output.data[:, :4] = 0.0
    model.attentions("cross")[1].value.data[4:] = 0.0
    means, _ = head_relevance(model, store(SOURCES, TARGETS), epsilon=1e-6)
    assert means["encoder", 0][0] == 0.0
    assert means["cross", 1][1] == 0.0
    assert abs(means["encoder", 0][1]) > 0.1
    assert abs(means["cross", 1][0]) > 0.1
