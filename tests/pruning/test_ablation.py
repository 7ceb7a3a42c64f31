"""The stage that scores ablations: each number is that of the model from which the heads are
gone."""

import copy
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu.metrics import BLEU
from small import WORDS

from specialized_heads.corpus.tokens import learn, load_bpe
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.architecture import KINDS, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.model.decoding import translate
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import ablation, criteria
from specialized_heads.pruning.ablation import (
    NOTHING,
    Removal,
    removals,
    resumed,
    translate_set,
    translate_without,
)

DECODED = {
    "decoding": {"beam": 2, "max_length_ratio": 1.0},
    "preprocess": "none",
    "language": "en",
    "device": "cpu",
}
UNEVEN = {"encoder": [[1, 2], [0]], "decoder": [[], [1, 2]], "cross": [[0, 2], [2]]}


@pytest.fixture
def files(token_file, sentences, tiny_model, tmp_path: Path) -> dict[str, Path]:
    """A model with uneven layers, and a set whose references are its own translations with some
    errors."""
    names = ("model.safetensors", "bpe.model", "references.parquet", "output.parquet", "state")
    files = {name.split(".")[0]: tmp_path / name for name in names}
    files["bpe"].write_bytes(learn(WORDS, size=60, name="target"))
    model = tiny_model(vocabulary=59, heads=3, width=12, seed=3)
    model.keep_heads(UNEVEN)
    save(model, files["model"], training={})
    sources, targets = sentences(15, vocabulary=59)
    texts = load_bpe(files["bpe"]).decode(translate(model, sources, **DECODED["decoding"]))
    references = [
        text if number % 3 else text[: len(text) // 2] for number, text in enumerate(texts)
    ]
    pq.write_table(pa.table({"target": references}), files["references"])
    return files | {"tokens": token_file("test", sources, targets)}


def bleu_without(files: dict[str, Path], sentences, removal: set[tuple[str, int, int]]) -> float:
    """BLEU of the model from which heads are physically removed."""
    model = load(files["model"])
    model.remove_heads(removal)
    ids = translate(model, sentences(15, vocabulary=59)[0], **DECODED["decoding"])
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
    assert table["what"].value_counts().to_dict() == {"without": 8, "alone": 8}
    wanted = {
        tuple(row.values()): heads
        for row, heads in removals(architecture_of(files["model"]), alone=True)
    }
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
    expected = {
        20: [*range(0, 21, 2)],
        5: [*range(6)],
        72: [0, 7, 14, 22, 29, 36, 43, 50, 58, 65, 72],
        0: [0],
    }
    assert {heads: ablation.steps(heads) for heads in expected} == expected


def test_systematic_pruning_from_all_heads_to_none(
    call, files, sentences, token_file, tmp_path
) -> None:
    dev = token_file("dev", *sentences(10, seed=2, vocabulary=59))
    table = tmp_path / "importance.parquet"
    ranked = {"model": files["model"], "dev": dev, "output": table}
    call(criteria.importance, settings={"device": "cpu"}, **ranked)
    call(ablation, settings=DECODED | {"by_type": True}, importance=table, **files)
    found = pd.read_parquet(files["output"])
    whole = found[found["removed"] == 0]
    assert whole["pruned"].tolist() == ["all", *KINDS]
    assert set(whole["bleu"]) == set(found["bleu_full"]) == {bleu_without(files, sentences, set())}
    assert set(whole["p_value"]) == {1.0}
    rows = sorted(
        pd.read_parquet(table).to_dict("records"), key=lambda row: row["importance_normalised"]
    )
    assert len({row["importance_normalised"] for row in rows}) > 5
    order = [(row["type"], row["layer"], row["head"]) for row in rows]
    for row in found.to_dict("records"):
        removed = [head for head in order if row["pruned"] in ("all", head[0])][: row["removed"]]
        assert row["bleu"] == bleu_without(files, sentences, set(removed))
        assert row["share"] == row["removed"] / row["heads"]
    expected = {"all": 8, "encoder": 3, "decoder": 2, "cross": 3}
    assert found.groupby("pruned")["heads"].first().to_dict() == expected
    assert found.groupby("pruned")["share"].max().tolist() == [1.0] * 4
    call(ablation, settings=DECODED | {"by_type": False}, importance=table, **files)
    assert pd.read_parquet(files["output"]).equals(found[found["pruned"] == "all"])


# Many removals in one pass: each equals the model without these heads, and a kill loses no pass
# that was finished.

SOURCES = [[5, 9, 4, 17], [8], [], [11, 12, 13], [7, 7, 7, 4, 15, 6]]
DECODING = Decoding(beam=3, max_length_ratio=1.5)


@pytest.fixture(params=["full", "uneven"])
def model(request: pytest.FixtureRequest, tiny_model) -> Transformer:
    model = tiny_model(seed=3, heads=3, width=12)
    if request.param == "uneven":
        model.keep_heads(UNEVEN)
    return model


def without(model: Transformer, removal: Removal) -> Transformer:
    """A copy from which these heads are physically gone."""
    smaller = copy.deepcopy(model)
    smaller.remove_heads(removal)
    return smaller


def some_removals(model: Transformer) -> list[Removal]:
    """Each head, the other heads of each layer, and growing sets across all types."""
    heads = heads_of(model.architecture, scope="all")
    others = [frozenset(o for o in heads if o[:2] == h[:2] and o != h) for h in heads]
    return (
        [frozenset([h]) for h in heads]
        + others
        + [frozenset(heads[::-1][:n]) for n in range(len(heads) + 1)]
    )


def test_masks_equal_removal(model: Transformer) -> None:
    removals = some_removals(model)
    found = translate_without(model, SOURCES, removals, decoding=DECODING)
    assert len(found) == len(removals)
    for removal, outputs in zip(removals, found, strict=True):
        assert outputs == translate(without(model, removal), SOURCES, **DECODING.model_dump()), (
            sorted(removal)
        )
    # The masks do something.
    assert len({str(outputs) for outputs in found}) > len(heads_of(model.architecture, scope="all"))
    assert all(attention.gate is None for attention in model.attentions())


def test_the_state_survives_a_kill(model, store, sentences, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ablation, "REMOVALS", 2)
    monkeypatch.setattr(ablation, "TOKENS", 30)
    data = store(*sentences(12))
    removals = some_removals(model)[:7]

    def run(folder: str, stamp: str = "a") -> dict:
        def outputs(group: list[Removal]) -> list[list[list[int]]]:
            return translate_set(model, data, group, decoding=DECODING)

        return resumed(outputs, removals, state=tmp_path / folder, fingerprint=stamp)

    undisturbed = run("other")
    assert list(undisturbed) == [NOTHING, *removals]
    sources = [data.source_ids(sentence).tolist() for sentence in range(12)]
    assert undisturbed[removals[0]] == translate(
        without(model, removals[0]), sources, **DECODING.model_dump()
    )
    done, whole = [], translate_without

    def until_killed(model, sources, group, *, decoding):
        if len(done) > 8:
            raise KeyboardInterrupt
        done.append(set(group))
        return whole(model, sources, group, decoding=decoding)

    def only_the_rest(model, sources, group, *, decoding):
        again.append(set(group))
        return whole(model, sources, group, decoding=decoding)

    monkeypatch.setattr(ablation, "translate_without", until_killed)
    with pytest.raises(KeyboardInterrupt):
        run("run")
    again: list[set] = []
    monkeypatch.setattr(ablation, "translate_without", only_the_rest)
    assert run("run") == undisturbed
    assert NOTHING not in set().union(*again) and 0 < len(set().union(*again)) < 7
    again.clear()
    assert run("run") == undisturbed and not again
    assert run("run", "b") == undisturbed and again  # another fingerprint starts over


def test_the_fingerprint_covers_files_and_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    stamps = {ablation.fingerprint(tmp_path / "file", settings={"beam": beam}) for beam in (4, 5)}
    (tmp_path / "file").write_text("2")
    assert len(stamps | {ablation.fingerprint(tmp_path / "file", settings={"beam": 4})}) == 3
