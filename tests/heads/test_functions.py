"""Labels of heads, on either side of each threshold; the examples of shapes."""

import doctest
from fractions import Fraction
from math import floor
from types import ModuleType

import numpy as np
import pytest

from specialized_heads.corpus.tokens import EOS, PAD
from specialized_heads.heads import functions, syntactic
from specialized_heads.heads.functions import (
    Position,
    frequency_ranks,
    functions_of,
    origins,
    positioned,
    preferred,
    rare_hits,
    visible_counts,
)

NAN = float("nan")


def label(
    kind="encoder", *, offset: int | None = -1, share=0.0, margin=NAN, rarest=NAN
) -> tuple[list[str], list[str]]:
    margins = (
        {"obj_head_to_dependent": margin, "amod_head_to_dependent": -0.3}
        if kind == "encoder"
        else {}
    )
    return functions_of(
        kind, Position(offset, share, 0.0), margins=margins, shares={"rarest": rarest}
    )


@pytest.mark.parametrize(
    "share, expected", [(0.9, ["positional"]), (0.8999, []), (1.0, ["positional"]), (NAN, [])]
)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_positional(kind: str, share: float, expected: list[str]) -> None:
    assert label(kind, share=share, offset=-2) == (expected, [])


@pytest.mark.parametrize("baseline", [0.1, 0.2, 0.3, 0.35, 0.6, 0.7])
def test_syntactic_is_at_least_ten_points_above_the_baseline(baseline: float) -> None:
    exactly = round(baseline + 0.1, 10) - baseline  # 0.8 is a little less than 0.7 + 0.1 in binary
    assert label(margin=exactly) == (["syntactic"], ["obj_head_to_dependent"])
    assert label(margin=exactly - 0.001) == label(margin=NAN) == ([], [])


@pytest.mark.parametrize("rarest, expected", [(0.5, ["rare words"]), (0.499, []), (NAN, [])])
def test_rare_words(rarest: float, expected: list[str]) -> None:
    assert label(rarest=rarest) == (expected, [])
    assert label(rarest=rarest, share=0.95, margin=0.6)[0] == ["positional", "syntactic", *expected]


@pytest.mark.parametrize(
    "offset, share, expected",
    [
        (-2, 1.0, []),
        (-1, 0.9, ["diagonal"]),
        (0, 0.9, ["diagonal"]),
        (1, 0.9, ["diagonal"]),
        (2, 1.0, []),
    ]
    + [(0, 0.899, []), (None, NAN, [])],
)
def test_a_diagonal_head_is_on_the_diagonal_or_beside_it(offset, share, expected) -> None:
    assert label("cross", offset=offset, share=share) == (expected, [])


# Rare words (section 5.3) on argmaxes whose answers are known.

RANKS = np.arange(20)  # token i is the i-th most frequent


def rare(source: list[int], best: list[int], cutoff: int) -> tuple[int, int, int]:
    """Hits of one head on one sentence (ids without EOS), which is padded."""
    ids = np.array([[*source, EOS, PAD, PAD]])
    queries = np.array([[True] * len(source) + [False] * 3])
    (first, either), counted = rare_hits(
        np.array([[[*best, 0, 0, 0]]]), queries, ids, ranks=RANKS, cutoff=cutoff
    )
    return int(first[0]), int(either[0]), counted


@pytest.mark.parametrize(
    ("source", "best", "expected"),
    [
        ([5, 17, 9, 11], [1, 1, 3, 0], (2, 3, 4)),
        ([5, 10], [1, 1], (2, 2, 2)),  # rank 10 is outside of the ten most frequent, 0 to 9
        ([5, 9], [1, 1], (0, 0, 0)),
        ([17, 5, 17, 11], [0, 2, 3, 1], (2, 3, 4)),  # the rarest occurs twice
        ([17], [0], (1, 1, 1)),
    ],
)
def test_the_rarest_token_and_one_of_the_two_rarest(source, best, expected) -> None:
    assert rare(source, best, cutoff=10) == expected


def test_the_most_frequent_token_has_rank_0_and_of_equals_the_lower_id() -> None:
    assert frequency_ranks(np.array([3, 1, 1, 2, 3, 3]), vocabulary=5).tolist() == [3, 1, 2, 0, 4]


# Relative positions (section 5.1) and the diagonal of cross-attention, on argmaxes whose answers
# are known.


def real(*lengths: int, size: int = 5) -> np.ndarray:
    return np.arange(size) < np.array(lengths)[:, None]


def test_of_equal_positions_the_one_that_most_queries_have_is_preferred() -> None:
    """A head that looks at the first token, in three sentences of four tokens, has no position."""
    counts, possible = np.array([3, 3, 3, 3, 0, 0, 0]), np.array([3.0, 6, 9, 12, 9, 6, 3])
    assert preferred("encoder", counts, possible) == (0, 0.25, 0.25)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_possible_and_chance_counts_equal_a_loop_over_keys(kind: str) -> None:
    keys = real(4, 2) if kind == "cross" else real(3, 5)
    queries = real(3, 5)
    if kind == "decoder":
        queries[:, 0] = False
    counted = positioned(kind, queries)
    origin = origins(kind, counted, keys)
    possible, chance = np.zeros(13), np.zeros(13)
    for row, query in np.argwhere(counted).tolist():
        seen = [key for key in range(5) if keys[row, key] and (kind != "decoder" or key <= query)]
        for key in seen:
            offset = key - int(origin[row, query])
            possible[offset + 6] += 1
            chance[offset + 6] += 1 / len(seen)
    counts = visible_counts(kind, origin, counted, keys, reach=6)
    assert counts[0].tolist() == (
        possible.tolist() if kind != "cross" else [int(counted.sum())] * 13
    )
    assert counts[1].tolist() == pytest.approx(chance.tolist())
    assert float(chance.sum()) == pytest.approx(int(counted.sum()))


@pytest.mark.parametrize("sources", [1, 2, 7, 30])
@pytest.mark.parametrize("targets", [1, 3, 41])
def test_the_diagonal_is_exact_at_the_end_of_a_token(sources: int, targets: int) -> None:
    keys, queries = real(sources, size=sources), real(targets + 1, size=targets + 1)
    found = origins("cross", positioned("cross", queries), keys)[0, :targets]
    middles = [(Fraction(t) + Fraction(1, 2)) * sources / targets for t in range(targets)]
    assert found.tolist() == [floor(middle) for middle in middles]


@pytest.mark.parametrize("module", [functions, syntactic])
def test_the_examples_in_docstrings_are_right(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert attempted and not failed
