"""Rare-words heads: how often a head's largest weight lies on the least frequent token of the sentence (section 5.3)."""

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore


def rare_hits(
    best: Tensor, queries: Tensor, source: Tensor, *, ranks: Tensor, cutoff: int, **_: object
) -> tuple[Tensor, int]:
    """How often the argmax is the least frequent token of the sentence, and one of the two least frequent.

    Sentences whose least frequent token is among the `cutoff` most frequent ones of the training set are left out. A token
    that occurs twice counts in both places.

    Args:
        best: argmaxes (B, H, T).
        queries: real tokens (B, T); `source`: their ids.
        ranks: by token id, 0 for the most frequent one of the training set (V,).

    Returns:
        hits on the rarest and on one of the two rarest (2, H), and the number of queries counted.
    """
    rank = ranks[source].masked_fill(~queries, -1)  # (B, T)
    rarest = rank.amax(-1, keepdim=True)
    second = rank.masked_fill(rank == rarest, -1).amax(-1, keepdim=True)
    counted = queries & (rarest >= cutoff)
    attended = rank[:, None].expand(-1, best.shape[1], -1).gather(2, best)  # rank of the token attended to, (B, H, T)
    first = (attended == rarest[:, None]) & counted[:, None]
    either = first | ((attended == second[:, None]) & counted[:, None])
    return torch.stack([first.sum((0, 2)), either.sum((0, 2))]), int(counted.sum())


def frequency_ranks(store: TokenStore, *, vocabulary: int) -> Tensor:
    """Rank of each source token by its frequency in the training set (V,); 0: most frequent; ties by id."""
    counts = np.bincount(store.source, minlength=vocabulary)
    return torch.from_numpy(rankdata(-counts, method="ordinal") - 1)
