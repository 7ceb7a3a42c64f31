"""Groups of pairs: exactly the pairs that a chain of equal keys links."""

import numpy as np
import pytest

from specialized_heads.corpus.groups import connected, first_of_each


@pytest.mark.parametrize(
    ("sources", "targets", "groups"),
    [
        ([1, 2, 3], [1, 2, 3], [0, 1, 2]),  # an equal source and target do not link pairs
        ([1, 2], [2, 1], [0, 1]),
        ([5, 7, 5, 9, 8], [1, 2, 3, 2, 4], [0, 1, 0, 1, 2]),
        ([4, 3, 3, 2, 2, 1], [9, 9, 8, 8, 7, 7], [0] * 6),  # a chain
        ([6] * 4, [1, 2, 3, 4], [0] * 4),  # a star
        ([], [], []),
    ],
)
def test_pairs_with_a_common_source_or_target_form_a_group(
    sources: list[int], targets: list[int], groups: list[int]
) -> None:
    components = connected(np.array(sources, np.uint64), np.array(targets, np.uint64)).tolist()
    names = list(dict.fromkeys(components))
    assert [names.index(component) for component in components] == groups


def test_first_of_each() -> None:
    assert first_of_each(np.array([5, 3, 5, 9, 3])).tolist() == [0, 1, 3]
    assert first_of_each(np.array([])).tolist() == []
