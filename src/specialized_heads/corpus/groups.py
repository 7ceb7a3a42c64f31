"""Groups of pairs that must not be divided between splits, for sources without documents.

Pairs whose sources or targets have equal keys (`near_duplicates`), directly or through other pairs, form one group, so no
sentence has one translation in training and another in test.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def connected(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The group of each pair: a component of the bipartite graph in which each pair links its source to its target.

    Args:
        sources, targets: the fingerprint of each pair's source and target key, uint64 of shape (pairs,).

    Returns:
        the number of each pair's group, int32 of shape (pairs,).
    """
    distinct_sources, left = np.unique(sources, return_inverse=True)
    distinct_targets, right = np.unique(targets, return_inverse=True)
    nodes = len(distinct_sources) + len(distinct_targets)
    edges = coo_array((np.ones(len(left), bool), (left, right + len(distinct_sources))), shape=(nodes, nodes))
    return connected_components(edges, directed=False)[1][left]


def first_of_each(values: np.ndarray) -> np.ndarray:
    """The rows at which a value occurs for the first time, in ascending order, int64."""
    return np.sort(np.unique(values, return_index=True)[1])
