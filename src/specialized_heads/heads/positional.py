"""Positional heads: how often does a head's largest weight lie at one relative position (section 5.1)?

In self-attention a relative position is key minus query, so -1 is the previous token. Cross-attention has no such thing, since
its queries and keys are tokens of two sentences; there the position is counted from the diagonal, the source token that
corresponds to the target token being predicted if both sentences are read at constant speed. EOS takes no part.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

NEAR = 1  # source tokens; an alignment one beside the diagonal counts as on it


class Position(NamedTuple):
    """The relative position that a head prefers.

    offset: the most frequent one, in tokens; None without queries.
    share: of the queries; in cross-attention of those at most `NEAR` away from it. NaN without queries.
    """

    offset: int | None
    share: float


def choosing(kind: str, queries: Tensor) -> Tensor:
    """The queries (B, T) that have a position: all, but in cross-attention only those that predict a token."""
    counted = queries.clone()
    if kind == "cross":  # the last query predicts EOS, which corresponds to the source's EOS
        counted[:, :-1] &= queries[:, 1:]
        counted[:, -1] = False
    return counted


def expected(kind: str, queries: Tensor, keys: Tensor) -> Tensor:
    """The key (B, T) from which relative positions are counted: the query itself, or its place on the diagonal.

    Args:
        kind: attention type.
        queries: those that count, from `choosing` (B, T).
        keys: real ones (B, S).
    """
    places = torch.arange(queries.shape[1]).expand_as(queries)
    if kind != "cross":
        return places
    ratio = keys.sum(1, keepdim=True) / queries.sum(1, keepdim=True).clamp(min=1)
    return ((places + 0.5) * ratio).floor().long()  # the middle of the t-th of T equal parts of the source


def offset_counts(best: Tensor, origin: Tensor, queries: Tensor, *, reach: int) -> Tensor:
    """How often each head's argmax lies at each relative position.

    Args:
        best: argmaxes (B, H, T).
        origin: the key that has position 0, from `expected` (B, T).
        queries: those that count (B, T).
        reach: largest distance; must be at least the longest sentence.

    Returns:
        counts (H, 2·reach + 1); column c is the relative position c - reach.
    """
    heads = best.shape[1]
    offsets = best - origin[:, None] + reach
    flat = (offsets + torch.arange(heads)[None, :, None] * (2 * reach + 1)).transpose(1, 2)[queries]
    return torch.bincount(flat.flatten(), minlength=heads * (2 * reach + 1)).view(heads, 2 * reach + 1)


def chance_counts(kind: str, origin: Tensor, queries: Tensor, keys: Tensor, *, reach: int) -> Tensor:
    """What `offset_counts` is expected to be for a head whose argmax is any key that the query sees, all alike.

    Args:
        kind, origin, queries, reach: as there.
        keys: real ones (B, S).

    Returns:
        (2·reach + 1,), float64.
    """
    seen = queries[:, :, None] & keys[:, None, :]  # (B, T, S)
    if kind == "decoder":
        seen = seen.tril()
    shares = (1.0 / seen.sum(-1, keepdim=True).double()).expand(seen.shape)[seen]
    offsets = (torch.arange(keys.shape[1]) - origin[:, :, None] + reach).expand(seen.shape)[seen]
    return torch.bincount(offsets, weights=shares, minlength=2 * reach + 1)


def preferred(kind: str, counts: np.ndarray) -> Position:
    """The most frequent relative position of a head, from its counts (2·reach + 1,); of equal ones the leftmost."""
    total, reach = counts.sum(), len(counts) // 2
    if not total:
        return Position(None, float("nan"))
    offset = int(counts.argmax()) - reach
    return Position(offset, share_at(kind, offset, counts))


def share_at(kind: str, offset: int, counts: np.ndarray) -> float:
    """The share of counts (2·reach + 1,) at an offset; in cross-attention at most `NEAR` away from it."""
    place, width = offset + len(counts) // 2, NEAR if kind == "cross" else 0
    return float(counts[max(place - width, 0) : place + width + 1].sum() / counts.sum())


def ceiling(kind: str, offset: int, lengths: np.ndarray) -> float:
    """The share that a head reaches which looks at a relative position wherever there is a token.

    The first token of a sentence has none before it, so that on short sentences the share of a perfect head stays well
    below 1.

    Args:
        kind: "encoder" or "decoder".
        offset: relative position.
        lengths: tokens of each sentence; in the decoder with the begin-of-sentence token, which is no query.
    """
    first = 1 if kind == "decoder" else 0
    low, high = np.maximum(first, -offset), np.minimum(lengths, lengths - offset)
    queries = np.maximum(lengths - first, 0).sum()
    return float(np.maximum(high - low, 0).sum() / queries) if queries else float("nan")
