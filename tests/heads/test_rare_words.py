"""Rare words (section 5.3) on argmaxes whose answers are known."""

import pytest
import torch

from specialized_heads.corpus.vocabulary import EOS, PAD
from specialized_heads.heads.rare_words import frequency_ranks, rare_hits

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
def test_rare_words(source: list[int], best: list[int], expected: tuple[int, int, int]) -> None:
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
