"""Positional heads: how often a head's largest weight lies at one relative position (section 5.1).

In self-attention a relative position is key minus query: -1 is the previous token. A head is judged on the queries that have a
token at its position, because the first token of a sentence has no previous one. In cross-attention, positions are counted from
the diagonal: the source token that corresponds to the predicted target token if both sentences are read at constant speed. EOS is
left out.

Shapes: B sentences, H heads of one type over all layers, T queries, S keys.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

NEIGHBOURS = (-1, 0, 1)  # relative positions whose shares the table of heads gives for every head
NEAR = 1  # source tokens; a cross-attention maximum this close to the preferred position counts as on it


class Position(NamedTuple):
    """The relative position that a head prefers.

    offset: the most frequent one, in tokens; None without queries.
    share: of the queries that have a token there; cross-attention: of all queries, up to `NEAR` tokens away. NaN without
        queries.
    share_raw: of all queries; the same as `share` in cross-attention.
    """

    offset: int | None
    share: float
    share_raw: float


def choosing(kind: str, queries: Tensor) -> Tensor:
    """The queries (B, T) that have a position: in cross-attention those that predict a token, elsewhere all."""
    counted = queries.clone()
    if kind == "cross":  # the last query predicts EOS, which corresponds to the source's EOS
        counted[:, :-1] &= queries[:, 1:]
        counted[:, -1] = False
    return counted


def expected(kind: str, queries: Tensor, keys: Tensor) -> Tensor:
    """The key (B, T) at relative position 0: the query itself, or its place on the diagonal.

    Of the queries that count, from `choosing` (B, T), and the real keys (B, S).
    """
    places = torch.arange(queries.shape[1]).expand_as(queries)
    if kind != "cross":
        return places
    ratio = keys.sum(1, keepdim=True) / queries.sum(1, keepdim=True).clamp(min=1)
    first_query, first_key = (counted.int().argmax(1, keepdim=True) for counted in (queries, keys))
    # The middle of the t-th of T equal parts of the source.
    return first_key + ((places - first_query + 0.5) * ratio).floor().long()


def offset_counts(best: Tensor, origin: Tensor, queries: Tensor, *, reach: int) -> Tensor:
    """How often each head's argmax lies at each relative position: (H, 2·reach + 1); column c is the position c - reach.

    Args:
        best: argmaxes (B, H, T).
        origin: the key at relative position 0, from `expected` (B, T).
        queries: those that count (B, T).
        reach: largest distance; at least the length of the longest sentence.
    """
    heads = best.shape[1]
    offsets = best - origin[:, None] + reach
    flat = (offsets + torch.arange(heads)[None, :, None] * (2 * reach + 1)).transpose(1, 2)[queries]
    return torch.bincount(flat.flatten(), minlength=heads * (2 * reach + 1)).view(heads, 2 * reach + 1)


def visible_counts(kind: str, origin: Tensor, queries: Tensor, keys: Tensor, *, reach: int) -> Tensor:
    """The number of queries that can see one of the real keys (B, S) at each relative position.

    Returns:
        (2, 2·reach + 1), float64: the number of queries that have a key there, all queries in cross-attention; and the
        expected `offset_counts` of a head whose argmax is a visible key drawn at random.
    """
    seen = queries[:, :, None] & keys[:, None, :]  # (B, T, S)
    if kind == "decoder":
        seen = seen.tril()
    shares = (1.0 / seen.sum(-1, keepdim=True).double()).expand(seen.shape)[seen]
    offsets = (torch.arange(keys.shape[1]) - origin[:, :, None] + reach).expand(seen.shape)[seen]
    chance = torch.bincount(offsets, weights=shares, minlength=2 * reach + 1)
    if kind == "cross":
        return torch.stack([torch.full_like(chance, int(queries.sum())), chance])
    return torch.stack([torch.bincount(offsets, minlength=2 * reach + 1).double(), chance])


def preferred(kind: str, counts: np.ndarray, possible: np.ndarray) -> Position:
    """The relative position that a head prefers, from its `offset_counts` and the `visible_counts` of the type.

    Ties go to the position that most queries have, then to the leftmost one.
    """
    if not counts.sum():
        return Position(None, float("nan"), float("nan"))
    place = int(np.lexsort((-possible, -counts))[0])
    offset = place - len(counts) // 2
    raw = share_at(kind, offset, counts, np.full_like(possible, counts.sum()))
    return Position(offset, share_at(kind, offset, counts, possible), raw)


def share_at(kind: str, offset: int, counts: np.ndarray, possible: np.ndarray) -> float:
    """The share of the possible queries whose argmax is at an offset, NaN without any; cross-attention: up to `NEAR` away."""
    place, width = offset + len(counts) // 2, NEAR if kind == "cross" else 0
    return float(counts[max(place - width, 0) : place + width + 1].sum() / (possible[place] or np.nan))
