"""Three short sentence pairs, as a store and as one batch, and a pruned configuration of `tiny_model`."""

import numpy as np
import pytest

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.training.batching import Batch, make_batch


@pytest.fixture
def data(store) -> TokenStore:
    """Source lengths 4, 1, 3, target lengths 2, 3, 1: nine generation steps."""
    return store([[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]])


@pytest.fixture
def batch(data: TokenStore) -> Batch:
    return make_batch(data, np.arange(3))


@pytest.fixture(params=["all heads", "pruned"])
def kept(request: pytest.FixtureRequest) -> dict[str, list[list[int]]]:
    """Heads to keep in `tiny_model`, for `keep_heads`."""
    pruned = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}
    return pruned if request.param == "pruned" else {}
