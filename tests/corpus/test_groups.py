"""Groups of pairs: exactly the pairs that a chain of equal keys links, on the shapes that such chains take."""

import random

import numpy as np
import pytest

from specialized_heads.corpus.groups import connected, first_of_each

COUNT = 3000


def plainly_connected(sources: list[int], targets: list[int]) -> list[int]:
    """The first pair of each pair's group, by union and find."""
    first: dict[tuple[str, int], int] = {}
    parent = list(range(len(sources)))

    def root(pair: int) -> int:
        while parent[pair] != pair:
            pair = parent[pair]
        return pair

    for pair, keys in enumerate(zip(sources, targets)):
        for side, key in zip("st", keys):
            one, other = root(pair), root(first.setdefault((side, key), pair))
            parent[max(one, other)] = min(one, other)
    return [root(pair) for pair in range(len(sources))]


def shuffled(numbers: range) -> list[int]:
    return random.Random(1).sample(numbers, len(numbers))


SHAPES = {
    "alone": (list(range(COUNT)), list(range(COUNT))),
    "chain": ([i // 2 for i in range(COUNT)], [(i + 1) // 2 for i in range(COUNT)]),
    "mixed chain": ([i // 2 for i in shuffled(range(COUNT))], [(i + 1) // 2 for i in shuffled(range(COUNT))]),
    "star": ([7] * COUNT, shuffled(range(COUNT))),
    "sparse": tuple(random.Random(seed).choices(range(COUNT), k=COUNT) for seed in (1, 2)),
    "dense": tuple(random.Random(seed).choices(range(40), k=COUNT) for seed in (3, 4)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_are_those_of_union_and_find(shape: str) -> None:
    sources, targets = SHAPES[shape]
    groups = connected(np.array(sources, np.uint64), np.array(targets, np.uint64)).tolist()
    expected = plainly_connected(sources, targets)
    assert len(set(groups)) == len(set(expected)) == len(set(zip(groups, expected)))


def test_an_equal_source_and_target_are_no_link() -> None:
    assert len({*connected(np.array([1, 2], np.uint64), np.array([2, 1], np.uint64)).tolist()}) == 2


def test_first_of_each() -> None:
    assert first_of_each(np.array([5, 3, 5, 9, 3])).tolist() == [0, 1, 3]
    assert first_of_each(np.array([])).tolist() == []
