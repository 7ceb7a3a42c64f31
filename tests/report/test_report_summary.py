"""What sums an experiment up: training curves, the table of models, the environment, the page of
all results."""

import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pandas as pd
import pytest

import specialized_heads
from specialized_heads.report import index
from specialized_heads.report.data import read_csv
from specialized_heads.report.figures import runs
from specialized_heads.stage import UserError


def test_curves_of_every_trained_model(make) -> None:
    log = pd.DataFrame(
        {"update": [10, 20, 25], "loss": [5.0, 4.0, 3.5], "dev_loss": [4.5, None, 3.25]}
    )
    names = ["baseline", "pruned/encoder_lambda0.01", "scratch/all_heads12"]
    logs = {f"{name}/seed{seed}": log for name in names for seed in (1, 2)}
    curves = runs.curves_numbers(
        make.tables(models={"EN-FR": [make.model()]}, logs={"EN-FR": logs})
    )
    assert (len(curves), curves["dev_loss"].notna().sum(), set(curves["unit"])) == (
        18,
        12,
        {"token"},
    )


def test_table_of_models(make, stage) -> None:
    names = ["baseline", "checkpoint/update10", "scratch/all_heads12", "cut/random_encoder_heads5"]
    own = {"gates_decided": 0.734}
    rows = [
        make.model(name, signature_tokenised=f"tok:{seed}", seed=seed, **own)
        for seed in (1, 2)
        for name in names
    ]
    other = [make.model(beam=1, signature_tokenised="tok:1")]
    stem = stage("tables/models", make.tables(models={"EN-FR": rows, "B": other}))
    csv = pd.read_csv(stem.with_suffix(".csv"))
    assert csv["kind"].tolist() == [name.split("/")[0] for name in [*names, *names, "baseline"]]
    assert csv.columns.tolist() == runs.SCORES_COLUMNS
    text = stem.with_suffix(".md").read_text(encoding="utf-8").replace("\\", "")
    numbers = "| 24/24/24 | 73% | 30.0 [29.0, 31.0] | 50.0 | 3.250 | 900 | 10,000 | 6,000 |"
    assert f"| EN-FR | scratch | all | 12 heads | 1 {numbers}" in text
    assert "| cut, random | encoder | 5 heads |" in text and "| checkpoint |  | update 10 |" in text
    # Each signature once, and corpora that are translated differently apart.
    assert text.count("tok:1") == text.count("tok:2") == 1
    assert (
        "EN-FR (1,000 test sentences): beam search with 4 hypotheses, ranked by log P / length;"
        in text
    )
    assert "B (1,000 test sentences): beam search with 1 hypotheses" in text


def test_environment_names_versions_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = runs.environment_numbers(None, engines=["embedded", "stanza"], device="cpu").set_index(
        "name"
    )["value"]
    assert facts["version"] == specialized_heads.__version__
    assert facts[["torch", "sacrebleu", "sentencepiece", "snakemake", "stanza"]].notna().all()
    assert len(facts["SHA-256 of the source files"]) == 64
    if not shutil.which("git"):
        pytest.skip("no git on the PATH")

    def git(*arguments: str) -> str:
        command = [
            "git",
            "-C",
            str(tmp_path),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            *arguments,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(runs, "ROOT", tmp_path)
    (tmp_path / "src/specialized_heads").mkdir(parents=True)
    (tmp_path / "src/specialized_heads/__init__.py").touch()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "results").touch()
    assert runs.commit() == f"{git('rev-parse', 'HEAD')}, unchanged"
    (tmp_path / "src/new.py").touch()
    assert runs.commit() == f"{git('rev-parse', 'HEAD')}, 1 file changed"


# The data card: everything that the stages counted is in it, and pairs that were dropped are not
# hidden.

LENGTH = {"mean": 5.25, "95%": 11}
SPLIT = dict.fromkeys(
    ("pairs", "groups", "source_words", "target_words", "source_characters", "target_characters"),
    40,
)
SPLIT |= {"source_length": LENGTH, "target_length": LENGTH}
COUNTS = {
    "read": 1000,
    "dropped_in_reading": {"over_limit": 10},
    "raw": 90,
    "changed_in_cleaning": {"entities": 7, "composition": 0},
    "dropped_in_cleaning": {"empty": 0, "too_long": 8},
    "clean": 82,
    "dropped_in_splitting": {"train_overlap": 2},
    "splits": dict.fromkeys(runs.SPLITS, SPLIT),
}
CARD = {
    "kind": "opus",
    "licence": "CC-BY 2.0",
    "made_from": [{"package": "pkg", "version": "1:2.0"}],
}
CARD["files"] = [{"file": "a.zip", "bytes": 5, "sha256": "ab", "url": "https://example.org/a.zip"}]


def test_everything_that_was_counted_is_there_and_what_is_read_has_a_column_per_corpus(
    tmp_path: Path,
) -> None:
    other = COUNTS | {"dropped_in_reading": {"no_tab": 3}}
    parses = {"sentences": 40, "sentences_parsed": 38}
    for name, value in {"card": CARD, "1": COUNTS, "2": other, "parses": parses}.items():
        (tmp_path / name).write_text(json.dumps(value))
    cards, trees = (dict.fromkeys(("One", "Two"), tmp_path / name) for name in ("card", "parses"))
    numbers = runs.data_card_numbers(
        None, cards, {"One": tmp_path / "1", "Two": tmp_path / "2"}, trees
    )
    found = numbers[numbers["corpus"] == "One"].set_index(["part", "quantity"])["value"]
    expected = {
        "source": {
            "kind": "opus",
            "licence": "CC-BY 2.0",
            "file 1 sha256": "ab",
            "package 1": "pkg 1:2.0",
        },
        "reading": {"pairs": 1000, "dropped: over limit": 10},
        "cleaning": {"pairs": 90, "dropped: too long": 8, "changed: entities": 7},
        "splitting": {"pairs": 82, "dropped: train overlap": 2},
        "train": {"pairs": 40, "source length, 95%": 11.0, "target characters": 40},
        "analysis": {"pairs": 40, "sentences with a tree": 38},
    }
    for part, quantities in expected.items():
        assert found[part][list(quantities)].to_dict() == quantities
    table = runs.data_card_shown(numbers)
    assert table["part"].drop_duplicates().tolist() == [*list(expected)[:4], *runs.SPLITS]
    cells = {(part, quantity): values for part, quantity, *values in table.itertuples(index=False)}
    assert (cells["reading", "pairs"], cells["train", "source length, mean"]) == (
        ["1,000"] * 2,
        ["5.2"] * 2,
    )
    assert (cells["reading", "dropped: over limit"], cells["reading", "dropped: no tab"]) == (
        ["10", "–"],
        ["–", "3"],
    )
    # idle, or too long
    assert not {("cleaning", "dropped: empty"), ("source", "file 1 sha256")} & set(cells)


# The page of all results, and the lines with which a run ends.

TITLE = "<b>A</b> & \x1b[2Jmeaning"


@pytest.fixture
def paged(tmp_path: Path, call):
    """The page of these models and verdicts by title, and its lines."""

    def run(made, verdicts: dict[str, list[str]], **settings: object) -> tuple[str, list[str]]:
        claims = [(title, verdict) for title, own in verdicts.items() for verdict in own]
        pd.DataFrame(claims, columns=["corpus", "verdict"]).to_csv(tmp_path / "claims.csv")
        made.models.to_parquet(tmp_path / "models.parquet")
        files = {"models": tmp_path / "models.parquet", "claims": tmp_path / "claims.csv"}
        call(
            index,
            **files,
            output=tmp_path / "index.html",
            settings={"experiment": "e <i>"} | settings,
        )
        page, lines = (
            (tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "summary.txt")
        )
        return page, lines.replace(str(tmp_path), "results/e").splitlines()

    return run


@pytest.mark.parametrize("damaged", [b"", b'corpus,"verdict', b"corpus,verdict\n\xff,\n"])
def test_a_damaged_table_of_claims_is_named(damaged: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "claims.csv").write_bytes(damaged)
    with pytest.raises(UserError, match=r"claims\.csv: .*; delete it and run again"):
        read_csv(path, dtype=str)


def test_the_page_of_all_results_begins_with_the_models_and_the_claims(make, paged) -> None:
    few = [[4, 0, 0]] * 3
    rows = [
        make.model(),
        make.model(seed=2, loss=1.0),
        make.model("pruned/all_lambda0", loss=-2.0, gates_decided=0.0),  # which has lost no heads
        make.model("pruned/encoder_lambda0.01", [[6, 4, 2], [8] * 3, [8] * 3], loss=0.2),
        make.model("pruned/encoder_lambda0.01", [[6, 4, 1], [8] * 3, [8] * 3], loss=0.6, seed=2),
        make.model("pruned/all_heads12", few, loss=0.5),
        make.model("pruned/all_lambda0.1", few, loss=-1.0, gates_decided=0.5),
        make.model("scratch/all_lambda0.1", few, loss=-3.0),
        # Of two seeds, one has lost no heads: the mean of both counts.
        make.model("pruned/all_lambda0.001", [[8] * 3] * 3, loss=3.0),
        make.model("pruned/all_lambda0.001", [[8, 8, 4], [8] * 3, [8] * 3], loss=0.0, seed=2),
    ]
    tables = make.tables(models={TITLE: rows, "verdict": [make.model()]})
    verdicts = {
        TITLE: ["partly", "not testable", "partly", "value only"],
        "verdict": ["reproduced"],
    }
    results = ["figures/front", "claims", "figures/gates", "tables/models"]
    page, lines = paged(tables, verdicts, results=results, tables=["models", "logs"], viewer=True)
    title = r"<b>A</b> & \x1b[2Jmeaning"
    assert lines == [
        f"Baseline:    {title}: BLEU 29.5 with 72 heads (mean of 2 seeds); verdict: BLEU 30.0 with "
        f"72 heads",
        f"Best pruned: {title}: BLEU 29.6 with 59.5 of 72 heads (λ 0.01, encoder heads pruned, "
        f"mean of 2 seeds)",
        f"Claims:      {title}: 2 partly, 1 not testable; verdict: 1 reproduced",
        "Report:      results/e/index.html; tables: results/e/tables; numbers: results/e/data",
        "Viewer:      results/e/viewer/index.html",
    ]
    assert (
        f"<dd>{escape(TITLE)}: BLEU 29.5 with 72 heads" in page
        and f"<th>{escape(TITLE)}</th>" in page
    )
    assert "<b>" not in page and "<i>" not in page and "<script" not in page and "http" not in page
    rows = [re.findall("<td>(.*?)</td>", row)[:3] for row in page.split("<tr>")]
    assert [row for row in rows if row] == [
        ["reproduced", "0", "1"],
        ["partly", "2", "0"],
        ["value only", "1", "0"],
        ["not testable", "1", "0"],
    ]
    assert re.findall(r"<h2.*?>(.*)</h2>", page) == ["Claims", "Pruning", "Runs", "Numbers"]
    files = [f"{stem}.{ending}" for stem in results for ending in index.BY_STEM[stem].suffixes]
    files += ["data/models.parquet", "data/logs.parquet", "configuration.yaml", "viewer/index.html"]
    assert set(re.findall(r'(?:href|src)="([\w./]+)"', page)) == set(files)


def test_undecided_gates_are_named_where_no_pruned_model_has_others(make, paged) -> None:
    pruned = make.model("pruned/all_lambda0.1", [[4, 0, 0]] * 3, loss=1.0, gates_decided=0.5)
    _, lines = paged(
        make.tables(models={"A": [make.model(), pruned]}), {}, results=[], tables=[], viewer=False
    )
    assert (
        lines[1]
        == "Best pruned: A: BLEU 29.0 with 12 of 72 heads (λ 0.1, heads of all types pruned, gates "
        "not decided)"
    )


def test_results_of_earlier_settings_are_named(make, paged, tmp_path: Path, caplog) -> None:
    models = make.tables(models={"A": [make.model()]})
    for name in ("figures/figure1.png", "figures/figure7.csv", "figures/mine.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    paged(models, {}, results=["claims", "figures/figure1"], tables=[], viewer=False)
    assert "of results leaves out: figures/figure7.csv\n" in caplog.text


def test_lines_that_do_not_apply_are_left_out(make, paged) -> None:
    task = make.tables(models={"Halves": [make.model(metric="accuracy")]})
    page, lines = paged(
        task, {}, results=["claims", "tables/tasks"], tables=["models"], viewer=False
    )
    assert [line.split(":")[0] for line in lines] == ["Baseline", "Report"]
    assert lines[0] == "Baseline:    Halves: accuracy 30.0 with 72 heads"
    assert "Best pruned" not in page and "viewer/" not in page and "<table" not in page
