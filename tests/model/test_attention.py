"""Attention with gates and with fewer heads: masks, physical removal, what the activations hold."""

import math

import pytest
import torch

from specialized_heads.corpus.vocabulary import BOS, EOS, PAD
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.gates import Mask
from specialized_heads.model.patterns import LABELS, fixed_weights

D, K, HEADS = 12, 4, 3


@pytest.fixture
def attention() -> MultiHeadAttention:
    module = MultiHeadAttention(kind="cross", layer=1, heads=(0, 1, 2), width=D, head_width=K, dropout=0.0)
    generator = torch.Generator().manual_seed(11)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / math.sqrt(D)
    return module.eval()


@pytest.fixture
def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (2, 5, D), memory (2, 6, D), and an attention mask that hides the last two keys of the second sentence."""
    generator = torch.Generator().manual_seed(12)
    attn_mask = torch.zeros(2, 1, 1, 6)
    attn_mask[1, ..., 4:] = -torch.inf
    return torch.randn(2, 5, D, generator=generator), torch.randn(2, 6, D, generator=generator), attn_mask


def one_head(module: MultiHeadAttention, head: int, x, memory, attn_mask) -> torch.Tensor:
    """sec. 3.2 of Vaswani et al., a single head and its rows of W^O."""
    rows = slice(head * K, (head + 1) * K)
    q, k, v = x @ module.query[rows].T, memory @ module.key[rows].T, memory @ module.value[rows].T
    weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(K) + attn_mask[:, 0], -1)
    return weights @ v @ module.output[:, rows].T


def test_gates_scale_heads_one_by_one(attention: MultiHeadAttention, inputs) -> None:
    x, memory, attn_mask = inputs
    plain = attention(x, memory, attn_mask)
    attention.gate = Mask(torch.ones(HEADS))
    assert torch.equal(attention(x, memory, attn_mask), plain)
    attention.gate = Mask(torch.tensor([0.25, 0.0, 1.0]))
    expected = 0.25 * one_head(attention, 0, x, memory, attn_mask) + one_head(attention, 2, x, memory, attn_mask)
    assert torch.allclose(attention(x, memory, attn_mask), expected, atol=1e-5)


def test_heads_keep_their_numbers_when_removed_twice(attention: MultiHeadAttention, inputs) -> None:
    expected = one_head(attention, 2, *inputs)
    attention.keep([1, 2])
    attention.keep([1])  # positions count in the layer as it is
    assert attention.heads == (2,)
    assert torch.allclose(attention(*inputs), expected, atol=1e-5)


def test_dropout_falls_on_the_weights_in_training_only(attention: MultiHeadAttention, inputs) -> None:
    attention.dropout = 0.5
    plain = attention(*inputs)
    assert torch.equal(plain, attention(*inputs))
    attention.train()
    torch.manual_seed(1)
    draws = attention(*(x.repeat(3000, *[1] * (x.dim() - 1)) for x in inputs)).view(3000, *plain.shape)
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


def test_a_model_with_fixed_patterns_attends_by_them_and_trains_the_rest(tiny_model) -> None:
    model = tiny_model(heads=8, width=16, fixed_patterns=True)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD]])
    activations: Activations = {}

    states = model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # Not their plain sum: that of a LayerNorm's output is constant, so its gradients would be zero up to rounding.
    (states * torch.arange(1.0, 17.0)).sum().backward()

    patterns = fixed_weights(source != PAD)
    for layer in range(2):
        assert torch.equal(activations["encoder", layer, "weights"][:, : len(LABELS)], patterns)
    query = model.encoder[0].attention.query.grad.unflatten(0, (8, 2))
    assert not query[: len(LABELS)].any() and query[len(LABELS) :].any()

    model.keep_heads({"encoder": [[1, 7], []], "decoder": [list(range(8))] * 2, "cross": [list(range(8))] * 2})
    model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # The heads that stay keep their patterns.
    assert torch.equal(activations["encoder", 0, "weights"][:, 0], patterns[:, 1])
