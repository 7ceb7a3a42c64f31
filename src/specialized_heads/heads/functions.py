"""Functions of heads: what is counted for each, and which heads have it (section 5).

Positional (5.1): the largest weight lies at one relative position. In self-attention, that is key
minus query: -1 is the previous token. A head is judged on the queries that have a token at its
position, because the first token of a sentence has no previous one. In cross-attention, positions
are counted from the diagonal: the source token that corresponds to the predicted target token if
both sentences are read at constant speed. Rare words (5.3): the largest weight lies on the least
frequent token. Syntactic heads (5.2) are the subject of `heads.syntactic`. EOS is left out.

The paper labels encoder heads. Here decoder heads can also be positional, and cross-attention heads
diagonal (on the diagonal or next to it). A further function that is a share of largest weights is a
row of `FUNCTIONS`.

Figures and tables import this module, so it does without PyTorch. Shapes: B sentences, H heads of
one type over all layers, T queries, S keys.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

NEIGHBOURS = (-1, 0, 1)  # relative positions whose shares the table of heads gives for every head
# In cross-attention, in source tokens: a maximum this close to the preferred position counts as on
# it, and a head whose preferred position is this close to the diagonal is diagonal.
NEAR = BESIDE = 1
LEAST_ARCS = 30  # of a relation, for labels that hold on other sentences too


class Position(NamedTuple):
    """The relative position that a head prefers.

    offset: the most frequent one, in tokens; None without queries.
    share: of the queries that have a token there; cross-attention: of all queries, up to `NEAR`
        tokens away. NaN without queries.
    share_raw: of all queries; the same as `share` in cross-attention.
    """

    offset: int | None
    share: float
    share_raw: float


def positioned(kind: str, queries: np.ndarray) -> np.ndarray:
    """The queries (B, T) that have a position: in cross-attention those that predict a token."""
    counted = queries.copy()
    if kind == "cross":  # the last query predicts EOS, which corresponds to the source's EOS
        counted[:, :-1] &= queries[:, 1:]
        counted[:, -1] = False
    return counted


def origins(kind: str, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The key (B, T) at relative position 0: the query itself, or its place on the diagonal.

    Of the queries that count, from `positioned` (B, T), and the real keys (B, S). Three target
    tokens on a source of six, with EOS:

    >>> queries, keys = np.array([[True] * 3 + [False]]), np.array([[True] * 6 + [False]])
    >>> origins("cross", queries, keys)[:, :3].tolist()
    [[1, 3, 5]]
    """
    places = np.broadcast_to(np.arange(queries.shape[1]), queries.shape)
    if kind != "cross":
        return places
    sources, targets = (real.sum(1, keepdims=True) for real in (keys, queries))
    first_query, first_key = (real.argmax(1)[:, None] for real in (queries, keys))
    # The middle of the t-th of T equal parts of the source, (t + ½)·S/T.
    middle = (2 * (places - first_query) + 1) * sources // (2 * targets.clip(min=1))
    return first_key + middle


def offset_counts(
    best: np.ndarray, origin: np.ndarray, queries: np.ndarray, *, reach: int
) -> np.ndarray:
    """How often each head's argmax lies at each relative position: (H, 2·reach + 1); column c is
    the position c - reach.

    Args:
        best: argmaxes (B, H, T).
        origin: the key at relative position 0, from `origins` (B, T).
        queries: those that count (B, T).
        reach: largest distance; at least the length of the longest sentence.

    One head on one sentence, whose first query attends to itself, the others to the previous token:

    >>> best, origin, counted = [[[0, 0, 1]]], [[0, 1, 2]], [[True] * 3]
    >>> offset_counts(*map(np.array, (best, origin, counted)), reach=2).tolist()
    [[0, 2, 1, 0, 0]]
    """
    heads, width = best.shape[1], 2 * reach + 1
    columns = best - origin[:, None] + reach + width * np.arange(heads)[:, None]  # (B, H, T)
    counted = columns.swapaxes(1, 2)[queries].ravel()
    return np.bincount(counted, minlength=heads * width).reshape(heads, width)


def visible_counts(
    kind: str, origin: np.ndarray, queries: np.ndarray, keys: np.ndarray, *, reach: int
) -> np.ndarray:
    """The number of queries that can see one of the real keys (B, S) at each relative position.

    Returns:
        (2, 2·reach + 1), float64: the number of queries that have a key there, all queries in
        cross-attention; and the expected `offset_counts` of a head whose argmax is a visible key
        drawn at random.
    """
    seen = queries[:, :, None] & keys[:, None, :]  # (B, T, S)
    if kind == "decoder":
        seen = np.tril(seen)
    numbers = seen.sum(-1)
    row, query, key = seen.nonzero()
    columns = key - origin[row, query] + reach
    chance = np.bincount(columns, weights=1.0 / numbers[row, query], minlength=2 * reach + 1)
    if kind == "cross":
        return np.stack([np.full_like(chance, queries.sum()), chance])
    return np.stack([np.bincount(columns, minlength=2 * reach + 1), chance])


def preferred(kind: str, counts: np.ndarray, possible: np.ndarray) -> Position:
    """The relative position that a head prefers, from its `offset_counts` and the `visible_counts`
    of the type.

    Ties go to the position that most queries have, then to the leftmost one.
    """
    if not counts.sum():
        return Position(None, float("nan"), float("nan"))
    place = int(np.lexsort((-possible, -counts))[0])
    offset = place - len(counts) // 2
    raw = share_at(kind, offset, counts, np.full_like(possible, counts.sum()))
    return Position(offset, share_at(kind, offset, counts, possible), raw)


def share_at(kind: str, offset: int, counts: np.ndarray, possible: np.ndarray) -> float:
    """The share of the possible queries whose argmax is at an offset, NaN without any;
    cross-attention: up to `NEAR` away."""
    place, width = offset + len(counts) // 2, NEAR if kind == "cross" else 0
    there = counts[max(place - width, 0) : place + width + 1].sum()
    return float(there / (possible[place] or np.nan))


def rare_hits(
    best: np.ndarray,
    queries: np.ndarray,
    source: np.ndarray,
    *,
    ranks: np.ndarray,
    cutoff: int,
    **_: object,
) -> tuple[np.ndarray, int]:
    """How often the argmax is the least frequent token of the sentence, and one of the two least
    frequent.

    Sentences whose least frequent token is among the `cutoff` most frequent ones of the training
    set are left out. A token that occurs twice counts in both places. Arguments and results are
    those of `Function.count`.
    """
    rank = np.where(queries, ranks[source], -1)  # (B, T)
    rarest = rank.max(-1, keepdims=True)
    second = np.where(rank == rarest, -1, rank).max(-1, keepdims=True)
    counted = queries & (rarest >= cutoff)
    attended = np.take_along_axis(rank[:, None], best, axis=2)  # its rank, (B, H, T)
    first = (attended == rarest[:, None]) & counted[:, None]
    either = first | ((attended == second[:, None]) & counted[:, None])
    return np.stack([first.sum((0, 2)), either.sum((0, 2))]), int(counted.sum())


def frequency_ranks(tokens: np.ndarray, *, vocabulary: int) -> np.ndarray:
    """Rank of each token by its frequency in the text of the training set (V,); 0: most frequent;
    ties by id."""
    order = np.argsort(-np.bincount(tokens, minlength=vocabulary), kind="stable")
    return np.argsort(order)


class Function(NamedTuple):
    """A function of encoder heads.

    name: in tables and figures.
    score: the column of the table of heads that decides; "": the margins of relations.
    threshold: the least score of a head with this function.
    measure: the score in words.
    count: for a share of argmaxes. It takes the argmaxes (B, H, T), which tokens are queries (B,
        T), their ids (B, T), and by name `ranks` of ids by frequency (V,), `pieces`, the text of
        each id (V), and `cutoff`, `heads.rare_cutoff`. It returns the hits (columns, H) and the
        number of queries counted.
    more: columns beside the score that `count` fills.
    """

    name: str
    score: str
    threshold: float
    measure: str
    count: Callable[..., tuple[np.ndarray, int]] | None = None
    more: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.score, *self.more)


POSITIONAL, SYNTACTIC, RARE_WORDS, DIAGONAL = "positional", "syntactic", "rare words", "diagonal"
FUNCTIONS = (
    Function(POSITIONAL, "positional_share", 0.9, "share at one position"),  # section 5.1
    Function(SYNTACTIC, "", 0.1, "margin over the fixed offset"),  # section 5.2
    Function(  # section 5.3
        RARE_WORDS, "rarest", 0.5, "share at the rarest token", rare_hits, more=("two_rarest",)
    ),
)
BY_NAME = {function.name: function for function in FUNCTIONS}
OF_TOKENS = tuple(function for function in FUNCTIONS if function.count)


def functions_of(
    kind: str, place: Position, *, margins: Mapping[str, float], shares: Mapping[str, float]
) -> tuple[list[str], list[str]]:
    """The functions of a head, in the order of `FUNCTIONS`, and the relations that make it
    syntactic.

    Args:
        kind: attention type; only encoder heads have `margins` and `shares`.
        margins: accuracy above the best fixed offset, per relation and direction; NaN where the
        relation does not occur.
        shares: of argmaxes, by column; NaN where no sentence qualifies.
    """
    at_one_place = place.share >= BY_NAME[POSITIONAL].threshold  # NaN is not
    if kind == "cross":
        return [DIAGONAL] if at_one_place and abs(place.offset) <= BESIDE else [], []
    # The tolerance lets a head pass that is exactly ten points above the baseline.
    relations = [
        name for name, margin in margins.items() if margin >= BY_NAME[SYNTACTIC].threshold - 1e-12
    ]
    labels = {POSITIONAL: at_one_place, SYNTACTIC: bool(relations)}
    labels |= {
        function.name: shares.get(function.score, np.nan) >= function.threshold
        for function in OF_TOKENS
    }
    return [function.name for function in FUNCTIONS if labels[function.name]], relations
