"""Distances between heads equal SciPy's Jensen-Shannon distance."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads import maps, similarity
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import save

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], []]


def test_equal_and_disjoint_heads() -> None:
    weights = torch.zeros(1, 3, 2, 4)
    weights[0, 0, :, 0] = weights[0, 1, :, 0] = weights[0, 2, :, 3] = 1.0
    sums = similarity.distances(weights, torch.ones(1, 2, dtype=torch.bool))
    assert sums.tolist() == [[0, 0, 2], [0, 0, 2], [2, 2, 0]]
    assert similarity.distances(weights[:, :0], torch.ones(1, 2, dtype=torch.bool)).shape == (0, 0)


def test_means_of_a_model_are_those_of_its_sentences(tiny_model, store) -> None:
    model = tiny_model(heads=3, width=12)
    means, queries = similarity.mean_distances(model, store(SOURCES, TARGETS))
    # The third sentence has no target; begin-of-sentence is a query of cross-attention only.
    assert queries == {"encoder": 8, "decoder": 5, "cross": 7}
    by_hand = {kind: [] for kind in KINDS}
    for number in range(3):
        (batch,) = maps.attention_maps(model, store(SOURCES[number : number + 1], TARGETS[number : number + 1]))
        for kind in KINDS:
            for t in np.flatnonzero(batch.queries[kind][0]):
                first, second = batch.weights[kind][0, [1, 4], t].double().numpy()
                by_hand[kind].append(jensenshannon(first, second, base=2))
    for kind in KINDS:
        assert means[kind].shape == (6, 6)
        assert means[kind][1, 4] == means[kind][4, 1] == pytest.approx(np.mean(by_hand[kind]), abs=1e-5)


@pytest.mark.parametrize("count, most, expected", [(10, 3, [0, 3, 6]), (3, 10, [0, 1, 2]), (4, 4, [0, 1, 2, 3])])
def test_sentences_are_spread_over_the_set(count: int, most: int, expected: list[int]) -> None:
    assert similarity.spread(count, most) == expected


def test_stage(call, tiny_model, token_file, tmp_path: Path) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[1], [0, 1]], "cross": [[], [0]]})
    save(model, tmp_path / "model.safetensors", training={})
    files = {"model": tmp_path / "model.safetensors", "analysis": token_file("analysis", SOURCES, TARGETS)}
    files["output"] = tmp_path / "pairs.parquet"
    call(similarity, settings={"sentences": 2, "device": "cpu"}, **files)
    rows = pq.read_table(files["output"]).to_pylist()
    pairs = [(row["type"], row["layer"], row["head"], row["other_layer"], row["other_head"]) for row in rows]
    assert pairs[:3] == [("encoder", 1, 2, 2, 1), ("encoder", 1, 2, 2, 2), ("encoder", 2, 1, 2, 2)]
    assert [kind for kind, *_ in pairs[3:]] == ["decoder"] * 6  # four heads there, a single one in cross-attention
    means, _ = similarity.mean_distances(model, maps.select(load_tokens(files["analysis"]), [0, 1]))
    assert rows[0]["distance"] == means["encoder"][0, 1] and 0 < rows[0]["distance"] < 1
    assert rows[0]["queries"] == 5
    first = files["output"].read_bytes()
    call(similarity, settings={"sentences": 2, "device": "cpu"}, **files)
    assert files["output"].read_bytes() == first
    assert math.isfinite(rows[-1]["distance"])
