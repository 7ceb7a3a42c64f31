"""Confidence of heads: the largest attention weight (section 4), the entropy, and the weight on EOS.

Heads often park their attention on EOS, so confidence excludes EOS as query and as key (section 4). Entropy is that of the whole
distribution, EOS included: without it the weights do not sum to one. The weight on EOS distinguishes a head that is certain of a
word from one that parks its attention on EOS.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

import torch
from torch import Tensor


def confidence(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the largest attention weight on a real key (B, S), per head (H,)."""
    largest = weights.masked_fill(~keys[:, None, None], 0.0).amax(-1)  # (B, H, T)
    return (largest * queries[:, None]).sum((0, 2)).double()


def entropy(weights: Tensor, queries: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the entropy of their attention in nats, EOS included, per head (H,)."""
    return (torch.special.entr(weights).sum(-1) * queries[:, None]).sum((0, 2)).double()


def parked(weights: Tensor, queries: Tensor, eos: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the attention on the source's EOS (B, S), per head (H,)."""
    on_eos = (weights * eos[:, None, None]).sum(-1)
    return (on_eos * queries[:, None]).sum((0, 2)).double()
