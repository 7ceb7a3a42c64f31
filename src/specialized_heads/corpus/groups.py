"""Which pairs belong together where the source has no documents: those that share a sentence, and what follows from it.

Two pairs are in one group when their sources or their targets have equal keys (`near_duplicates`), directly or over other
pairs. So no sentence has one translation in training and another in test.
"""

import numpy as np


def connected(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The group of each pair: pairs are edges between a source and a target, groups the components of that graph.

    Args:
        sources, targets: the fingerprint of each pair's source and target key, uint64 of shape (pairs,).

    Returns:
        a number per group, the same for all of its pairs and for no other pair, int32 of shape (pairs,).
    """
    distinct, left = np.unique(sources, return_inverse=True)
    nodes = len(distinct)
    distinct, right = np.unique(targets, return_inverse=True)
    left, right = left.astype(np.int32), (right + nodes).astype(np.int32)
    nodes += len(distinct)
    del distinct

    # Every node points to a node of its group that is no larger, a root to itself. In each round the larger of two linked
    # roots is hung below the smallest root that it is linked with, and all nodes are made to point to roots again.
    parent = np.arange(nodes, dtype=np.int32)
    first, second = left, right
    while len(first):
        np.minimum.at(parent, np.maximum(first, second), np.minimum(first, second))
        while not np.array_equal(above := parent[parent], parent):
            parent = above
        first, second = parent[first], parent[second]
        apart = first != second
        first, second = first[apart], second[apart]
    return parent[left]


def first_of_each(values: np.ndarray) -> np.ndarray:
    """The rows at which a value occurs for the first time, in ascending order, int64."""
    return np.sort(np.unique(values, return_index=True)[1])
