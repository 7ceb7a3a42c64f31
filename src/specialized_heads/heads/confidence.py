"""How sure heads are: the largest weight of a distribution (section 4), its entropy, and what it leaves to EOS.

Heads often park their attention on EOS, so confidence leaves EOS out on both sides (section 4). Entropy is that of the whole
distribution, EOS included, since without it the weights do not sum to one; the weight on EOS stands beside it, so that a head
that is certain of a word and a head that rests on EOS can be told apart.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

import torch
from torch import Tensor


def confidence(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the largest attention weight on a real key (B, S), per head (H,)."""
    largest = weights.masked_fill(~keys[:, None, None], 0.0).amax(-1)  # (B, H, T)
    return (largest * queries[:, None]).sum((0, 2)).double()


def entropy(weights: Tensor, queries: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the entropy of their attention, in nats, over all keys, EOS included (H,)."""
    return (torch.special.entr(weights).sum(-1) * queries[:, None]).sum((0, 2)).double()


def parked(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Sum over real queries (B, T) of the attention on the source's EOS, whatever is not on real keys (B, S), per head (H,)."""
    outside = (weights * ~keys[:, None, None]).sum(-1)  # padding has weight zero
    return (outside * queries[:, None]).sum((0, 2)).double()
