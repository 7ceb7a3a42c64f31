"""Importance I_h of heads: against finite differences of the mask, its absolute value per token,
and the table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from small import mask_derivatives

from specialized_heads.model import attention
from specialized_heads.model.architecture import heads_of
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import criteria
from specialized_heads.training import objective
from specialized_heads.training.batching import Batch, make_batch

PRUNED = {"encoder": [[1], [0, 1]], "decoder": [[], [1]], "cross": [[0, 1], [0]]}


@pytest.mark.parametrize("pruned", [False, True])
def test_the_derivative_by_the_mask_is_that_of_differences(
    tiny_model, sentences, store, monkeypatch, pruned
) -> None:
    def loss(states, table, labels, *, ignore, **_):
        return F.cross_entropy(states @ table.T, labels, ignore_index=ignore, reduction="sum")

    # In the precision of the model; the project's own are always in float32.
    monkeypatch.setattr(attention, "softmax", lambda scores: torch.softmax(scores, -1))
    monkeypatch.setattr(objective, "cross_entropy", loss)
    model = tiny_model().double()
    if pruned:
        model.keep_heads(PRUNED)
    batch = make_batch(store(*sentences(4)), np.arange(4))
    found = criteria.sensitivities(model, batch)
    task = objective.Translation()
    expected = mask_derivatives(model, lambda: float(task.loss(model, batch, label_smoothing=0.0)))
    assert len(expected) == (7 if pruned else 12)
    for (kind, layer, head), difference in expected.items():
        assert float(found[kind, layer][:, head].sum()) == pytest.approx(
            difference, rel=1e-5, abs=1e-7
        )


def test_the_absolute_value_is_taken_token_by_token(tiny_model, store, monkeypatch) -> None:
    model = tiny_model(layers=1)
    # Sources of 1 and 2 subwords, targets of 2 and 0; each is followed by the end of the sentence,
    # then by padding.
    data = store([[5], [6, 7]], [[8, 9], []])
    by_hand = {
        "encoder": torch.tensor(
            [[[1.0, -1.0, 99.0], [2.0, 0.0, 99.0]], [[3.0, -3.0, 2.0], [0.0, 0.0, 0.0]]]
        ),
        "decoder": torch.tensor(
            [[[1.0, 2.0, -5.0], [0.0, 0.0, 4.0]], [[-4.0, 99.0, 99.0], [0.0, 99.0, 99.0]]]
        ),
    }
    by_hand["cross"] = -by_hand["decoder"]

    def known(model: Transformer, batch: Batch) -> dict[tuple[str, int], torch.Tensor]:
        order = [0, 1] if int(batch.source[0, 1]) == 3 else [1, 0]
        return {(kind, 0): values[order] for kind, values in by_hand.items()}

    monkeypatch.setattr(criteria, "sensitivities", known)
    found = criteria.importances(model, data)
    # Not |1 - 1 + 3 - 3 + 2| / 5.
    assert found["encoder", 0].tolist() == pytest.approx([(1 + 1 + 3 + 3 + 2) / 5, 2 / 5])
    for kind in ("decoder", "cross"):
        assert found[kind, 0].tolist() == pytest.approx([(1 + 2 + 5 + 4) / 4, 4 / 4])


def test_batches_do_not_show(tiny_model, sentences, store) -> None:
    model, data = tiny_model(), store(*sentences(20))
    whole, small = (criteria.importances(model, data, tokens=tokens) for tokens in (2000, 8))
    for key, values in whole.items():
        assert small[key] == pytest.approx(values, rel=1e-4)
        assert (values > 0).all()


def test_the_stage_writes_a_row_per_head(
    call, tiny_model, token_file, sentences, store, tmp_path: Path
) -> None:
    model = tiny_model()
    model.keep_heads(PRUNED)
    save(model, tmp_path / "model.safetensors", training={})
    files = {"model": tmp_path / "model.safetensors", "output": tmp_path / "importance.parquet"}
    dev = token_file("dev", *sentences(10))
    call(criteria.importance, settings={"device": "cpu"}, dev=dev, **files)
    table = pd.read_parquet(tmp_path / "importance.parquet")
    expected = heads_of(model.architecture, scope="all")  # under their first numbers
    assert [tuple(row) for row in table[["type", "layer", "head"]].to_numpy()] == expected
    found = criteria.importances(model, store(*sentences(10)))
    assert table["importance"].tolist() == pytest.approx(
        np.concatenate(list(found.values())).tolist(), rel=1e-6
    )
    for _, same in table.groupby(["type", "layer"]):
        norm = np.sqrt((same["importance"] ** 2).sum())
        assert same["importance_normalised"].tolist() == pytest.approx(
            (same["importance"] / norm).tolist()
        )
