"""The stages that score ablations: each number is that of the model from which the heads are gone. Importance I_h of heads."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from sacrebleu.metrics import BLEU
from small import WORDS, mask_derivatives

from specialized_heads.corpus.bpe import learn, load_bpe
from specialized_heads.model import attention
from specialized_heads.model.architecture import KINDS, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.model.decoding import translate as search
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import ablation, importance, systematic
from specialized_heads.pruning.ablation import removals
from specialized_heads.pruning.masking import NOTHING
from specialized_heads.training import objective
from specialized_heads.training.batching import Batch, make_batch

DECODED = {"decoding": {"beam": 2, "max_length_ratio": 1.0}, "preprocess": "none", "language": "en", "device": "cpu"}
UNEVEN = {"encoder": [[1, 2], [0]], "decoder": [[], [1, 2]], "cross": [[0, 2], [2]]}


@pytest.fixture
def files(token_file, sentences, tiny_model, tmp_path: Path) -> dict[str, Path]:
    """A model with uneven layers, and a set whose references are its own translations with some errors."""
    names = ("model.safetensors", "bpe.model", "references.parquet", "output.parquet", "state")
    files = {name.split(".")[0]: tmp_path / name for name in names}
    files["bpe"].write_bytes(learn(WORDS, size=60, name="target"))
    model = tiny_model(vocabulary=59, heads=3, width=12, seed=3)
    model.keep_heads(UNEVEN)
    save(model, files["model"], training={})
    sources, targets = sentences(15, vocabulary=59)
    texts = load_bpe(files["bpe"]).decode(search(model, sources, **DECODED["decoding"]))
    references = [text if number % 3 else text[: len(text) // 2] for number, text in enumerate(texts)]
    pq.write_table(pa.table({"target": references}), files["references"])
    return files | {"tokens": token_file("test", sources, targets)}


def bleu_without(files: dict[str, Path], sentences, removal: set[tuple[str, int, int]]) -> float:
    """BLEU of the model from which heads are physically removed."""
    model = load(files["model"])
    model.remove_heads(removal)
    ids = search(model, sentences(15, vocabulary=59)[0], **DECODED["decoding"])
    outputs = load_bpe(files["bpe"]).decode(ids)
    references = pq.read_table(files["references"]).column("target").to_pylist()
    return BLEU().corpus_score(outputs, [references]).score


def test_what_is_removed(tiny_model) -> None:
    model = tiny_model(heads=3, width=12)
    model.keep_heads(UNEVEN)
    found = removals(model.architecture, alone=True)
    assert len(found) == 2 * 8
    by_row = {tuple(row.values()): heads for row, heads in found}
    assert by_row["without", "cross", 1, 3] == {("cross", 1, 3)}
    assert by_row["alone", "cross", 1, 3] == {("cross", 1, 1)}
    assert by_row["alone", "encoder", 1, 2] == {("encoder", 1, 3)}
    assert by_row["alone", "encoder", 2, 1] == NOTHING  # the only head of its layer
    assert len(removals(model.architecture, alone=False)) == 8


def test_every_row_is_the_bleu_of_the_model_without_these_heads(call, files, sentences) -> None:
    call(ablation, settings=DECODED | {"alone": True}, **files)
    table = pd.read_parquet(files["output"])
    assert not files["state"].exists()
    assert table["what"].value_counts().to_dict() == {"without": 8, "alone": 8}
    wanted = {tuple(row.values()): heads for row, heads in removals(architecture_of(files["model"]), alone=True)}
    full = bleu_without(files, sentences, set())
    for row in table.to_dict("records"):
        heads = wanted[row["what"], row["type"], row["layer"], row["head"]]
        assert row["bleu"] == bleu_without(files, sentences, heads)
        assert row["bleu_full"] == full
        assert row["delta"] == row["bleu"] - full
        assert (row["p_value"] == 1.0) == (row["delta"] == 0)
    assert (table["delta"] != 0).sum() > 8
    only = table[(table["what"] == "alone") & (table["type"] == "encoder") & (table["layer"] == 2)]
    assert only["delta"].tolist() == [0.0]
    assert table["sentences"].unique().tolist() == [15]
    assert table["signature"].str.contains("version:").all()


def test_steps_are_tenths_with_halves_rounded_up() -> None:
    expected = {20: [*range(0, 21, 2)], 5: [*range(6)], 72: [0, 7, 14, 22, 29, 36, 43, 50, 58, 65, 72], 0: [0]}
    assert {heads: systematic.steps(heads) for heads in expected} == expected


def test_systematic_pruning_from_all_heads_to_none(call, files, sentences, token_file, tmp_path) -> None:
    dev = token_file("dev", *sentences(10, seed=2, vocabulary=59))
    table = tmp_path / "importance.parquet"
    call(importance, settings={"device": "cpu"}, model=files["model"], dev=dev, output=table)
    call(systematic, settings=DECODED | {"by_type": True}, importance=table, **files)
    found = pd.read_parquet(files["output"])
    whole = found[found["removed"] == 0]
    assert whole["pruned"].tolist() == ["all", *KINDS]
    assert set(whole["bleu"]) == set(found["bleu_full"]) == {bleu_without(files, sentences, set())}
    assert set(whole["p_value"]) == {1.0}
    rows = sorted(pd.read_parquet(table).to_dict("records"), key=lambda row: row["importance_normalised"])
    assert len({row["importance_normalised"] for row in rows}) > 5
    order = [(row["type"], row["layer"], row["head"]) for row in rows]
    for row in found.to_dict("records"):
        removed = [head for head in order if row["pruned"] in ("all", head[0])][: row["removed"]]
        assert row["bleu"] == bleu_without(files, sentences, set(removed))
        assert row["share"] == row["removed"] / row["heads"]
    assert found.groupby("pruned")["heads"].first().to_dict() == {"all": 8, "encoder": 3, "decoder": 2, "cross": 3}
    assert found.groupby("pruned")["share"].max().tolist() == [1.0] * 4
    call(systematic, settings=DECODED | {"by_type": False}, importance=table, **files)
    assert pd.read_parquet(files["output"]).equals(found[found["pruned"] == "all"])


# Importance: against finite differences of the mask, its absolute value per token, and the table.

PRUNED = {"encoder": [[1], [0, 1]], "decoder": [[], [1]], "cross": [[0, 1], [0]]}


@pytest.mark.parametrize("pruned", [False, True])
def test_the_derivative_by_the_mask_is_that_of_differences(tiny_model, sentences, store, monkeypatch, pruned) -> None:
    def loss(states, table, labels, *, ignore, **_):
        return F.cross_entropy(states @ table.T, labels, ignore_index=ignore, reduction="sum")

    # In the precision of the model; the project's own are always in float32.
    monkeypatch.setattr(attention, "softmax", lambda scores: torch.softmax(scores, -1))
    monkeypatch.setattr(objective, "cross_entropy", loss)
    model = tiny_model().double()
    if pruned:
        model.keep_heads(PRUNED)
    batch = make_batch(store(*sentences(4)), np.arange(4))
    found = importance.sensitivities(model, batch)
    task = objective.Translation()
    expected = mask_derivatives(model, lambda: float(task.loss(model, batch, label_smoothing=0.0)))
    assert len(expected) == (7 if pruned else 12)
    for (kind, layer, head), difference in expected.items():
        assert float(found[kind, layer][:, head].sum()) == pytest.approx(difference, rel=1e-5, abs=1e-7)


def test_the_absolute_value_is_taken_token_by_token(tiny_model, store, monkeypatch) -> None:
    model = tiny_model(layers=1)
    # Sources of 1 and 2 subwords, targets of 2 and 0; each is followed by the end of the sentence, then by padding.
    data = store([[5], [6, 7]], [[8, 9], []])
    by_hand = {
        "encoder": torch.tensor([[[1.0, -1.0, 99.0], [2.0, 0.0, 99.0]], [[3.0, -3.0, 2.0], [0.0, 0.0, 0.0]]]),
        "decoder": torch.tensor([[[1.0, 2.0, -5.0], [0.0, 0.0, 4.0]], [[-4.0, 99.0, 99.0], [0.0, 99.0, 99.0]]]),
    }
    by_hand["cross"] = -by_hand["decoder"]

    def known(model: Transformer, batch: Batch) -> dict[tuple[str, int], torch.Tensor]:
        order = [0, 1] if int(batch.source[0, 1]) == 3 else [1, 0]
        return {(kind, 0): values[order] for kind, values in by_hand.items()}

    monkeypatch.setattr(importance, "sensitivities", known)
    found = importance.importance(model, data)
    # Not |1 - 1 + 3 - 3 + 2| / 5.
    assert found["encoder", 0].tolist() == pytest.approx([(1 + 1 + 3 + 3 + 2) / 5, 2 / 5])
    for kind in ("decoder", "cross"):
        assert found[kind, 0].tolist() == pytest.approx([(1 + 2 + 5 + 4) / 4, 4 / 4])


def test_batches_do_not_show(tiny_model, sentences, store) -> None:
    model, data = tiny_model(), store(*sentences(20))
    whole, small = (importance.importance(model, data, tokens=tokens) for tokens in (2000, 8))
    for key, values in whole.items():
        assert small[key] == pytest.approx(values, rel=1e-4)
        assert (values > 0).all()


def test_the_stage_writes_a_row_per_head(call, tiny_model, token_file, sentences, store, tmp_path: Path) -> None:
    model = tiny_model()
    model.keep_heads(PRUNED)
    save(model, tmp_path / "model.safetensors", training={})
    files = {"model": tmp_path / "model.safetensors", "output": tmp_path / "importance.parquet"}
    call(importance, settings={"device": "cpu"}, dev=token_file("dev", *sentences(10)), **files)
    table = pd.read_parquet(tmp_path / "importance.parquet")
    expected = heads_of(model.architecture, scope="all")  # under their first numbers
    assert [tuple(row) for row in table[["type", "layer", "head"]].to_numpy()] == expected
    found = importance.importance(model, store(*sentences(10)))
    assert table["importance"].tolist() == pytest.approx(np.concatenate(list(found.values())).tolist(), rel=1e-6)
    for _, same in table.groupby(["type", "layer"]):
        norm = np.sqrt((same["importance"] ** 2).sum())
        assert same["importance_normalised"].tolist() == pytest.approx((same["importance"] / norm).tolist())
