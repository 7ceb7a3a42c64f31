"""Attention with gates and with fewer heads: masks, physical removal, what the activations hold."""

import math

import pytest
import torch

from specialized_heads.model.attention import MultiHeadAttention
from specialized_heads.model.gates import Mask

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
