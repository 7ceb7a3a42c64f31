"""Labels of heads, on either side of each threshold."""

import pytest
import torch

from specialized_heads.corpus.vocabulary import EOS, PAD
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.functions import functions_of
from specialized_heads.heads.positional import Position
from specialized_heads.heads.rare_words import frequency_ranks, rare_hits

NAN = float("nan")


def label(
    kind: str = "encoder", *, offset: int | None = -1, share: float = 0.0, margin: float = NAN, rarest: float = NAN
) -> tuple[list[str], list[str]]:
    margins = {"obj_head_to_dependent": margin, "amod_head_to_dependent": -0.3} if kind == "encoder" else {}
    return functions_of(kind, Position(offset, share, 0.0), Heads(), margins=margins, shares={"rarest": rarest})


@pytest.mark.parametrize("share, expected", [(0.9, ["positional"]), (0.8999, []), (1.0, ["positional"]), (NAN, [])])
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
    [(-2, 1.0, []), (-1, 0.9, ["diagonal"]), (0, 0.9, ["diagonal"]), (1, 0.9, ["diagonal"]), (2, 1.0, [])]
    + [(0, 0.899, []), (None, NAN, [])],
)
def test_a_diagonal_head_is_on_the_diagonal_or_beside_it(offset: int | None, share: float, expected: list[str]) -> None:
    assert label("cross", offset=offset, share=share) == (expected, [])


# Rare words (section 5.3) on argmaxes whose answers are known.

RANKS = torch.arange(20)  # token i is the i-th most frequent


def rare(source: list[int], best: list[int], cutoff: int) -> tuple[int, int, int]:
    """Hits of one head on one sentence (ids without EOS), which is padded."""
    ids = torch.tensor([[*source, EOS, PAD, PAD]])
    queries = torch.tensor([[True] * len(source) + [False] * 3])
    (first, either), counted = rare_hits(torch.tensor([[[*best, 0, 0, 0]]]), queries, ids, ranks=RANKS, cutoff=cutoff)
    return int(first[0]), int(either[0]), counted


@pytest.mark.parametrize(
    ("source", "best", "expected"),
    [
        ([5, 17, 9, 11], [1, 1, 3, 0], (2, 3, 4)),
        ([5, 10], [1, 1], (2, 2, 2)),  # rank 10 is outside of the ten most frequent, 0 to 9
        ([5, 9], [1, 1], (0, 0, 0)),
        ([17, 5, 17, 11], [0, 2, 3, 1], (2, 3, 4)),  # the rarest occurs twice
        ([17], [0], (1, 1, 1)),
        ([17, 17], [0, 1], (2, 2, 2)),
    ],
)
def test_the_rarest_token_and_one_of_the_two_rarest(
    source: list[int], best: list[int], expected: tuple[int, int, int]
) -> None:
    assert rare(source, best, cutoff=10) == expected


def test_rare_words_with_several_heads_and_sentences() -> None:
    source = torch.tensor([[5, 17, EOS], [18, EOS, PAD]])
    queries = torch.tensor([[True, True, False], [True, False, False]])
    best = torch.tensor([[[1, 1, 1], [0, 0, 1]], [[0, 0, 0], [0, 1, 1]]])
    (first, either), counted = rare_hits(best, queries, source, ranks=RANKS, cutoff=10)
    assert (first.tolist(), either.tolist(), counted) == ([3, 1], [3, 3], 3)


def test_frequency_ranks(store) -> None:
    ranks = frequency_ranks(store([[7, 5, 7], [7, 4, 5, 4]], [[1], [1]]), vocabulary=9)
    assert ranks[[7, 4, 5]].tolist() == [0, 1, 2]  # 4 and 5 tie
    assert sorted(ranks.tolist()) == list(range(9))
    assert ranks[8] == 8  # never seen
