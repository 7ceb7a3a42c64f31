"""The stages that score ablations: each number is that of the model from which the heads are gone."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu.metrics import BLEU
from small import WORDS

from specialized_heads.corpus.bpe import learn, load_bpe
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.model.decoding import translate as search
from specialized_heads.pruning import ablation, importance, systematic
from specialized_heads.pruning.ablation import removals
from specialized_heads.pruning.masking import NOTHING
from specialized_heads.pruning.scopes import remove_heads
from specialized_heads.stage import UserError

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
    remove_heads(model, removal)
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


def test_references_of_another_set_are_named(call, files) -> None:
    pq.write_table(pa.table({"target": ["one"]}), files["references"])
    with pytest.raises(UserError, match="references.parquet: 1 sentences, but .*test.safetensors has 15"):
        call(ablation, settings=DECODED | {"alone": False}, **files)


def test_steps_are_tenths_with_halves_rounded_up() -> None:
    expected = {20: [*range(0, 21, 2)], 5: [*range(6)], 72: [0, 7, 14, 22, 29, 36, 43, 50, 58, 65, 72], 0: [0]}
    assert {heads: systematic.steps(heads) for heads in expected} == expected


def test_systematic_pruning_from_all_heads_to_none(call, files, sentences, token_file, tmp_path) -> None:
    dev = token_file("dev", *sentences(10, seed=2, vocabulary=59))
    table = tmp_path / "importance.parquet"
    call(importance, settings={"device": "cpu"}, model=files["model"], dev=dev, output=table)
    call(systematic, settings=DECODED, importance=table, **files)
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
