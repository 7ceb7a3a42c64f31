"""Other experiments than the shipped ones, by configuration alone, and what is said where one
cannot work."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from specialized_heads.stage import read_json


def with_one_corpus(values: dict[str, Any], source: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The smoke experiment with one corpus of another source, to be parsed by Stanza unless
    `values` says otherwise."""
    corpus = {"title": "Mine", "source": source, "target_language": "de"} | more
    return {"parser": {"engine": "stanza"}} | values | {"corpora": {"mine": corpus}}


STUDIES = (
    "pruning",
    "long_pruning",
    "long_pruning_en_fr",
    "control",
    "equal_depth",
    "from_scratch",
)
GIVEN = ("config.yaml", *(f"config/studies/{name}.yaml" for name in STUDIES[:3]))
TRAINED = (
    *(f"config/studies/{name}.yaml" for name in STUDIES[3:]),
    *(f"config/{name}.yaml" for name in ("first_try", "local", "paper", "smoke")),
)


@pytest.mark.parametrize("name", GIVEN + TRAINED)
def test_shipped_experiments_make_a_plan(project, name: str) -> None:
    (project.root / "data").mkdir()
    (project.root / "data" / "en-de.tsv").write_text("one\teins\n", encoding="utf-8")
    run = type(project)(project.root, name).run("--dry-run")
    assert run.status == 0, run.printed
    baseline = "given_baseline" if name in GIVEN else "train_baseline"
    planned = {baseline, "gather", "figure", "table"} | (
        set() if name == "config/studies/from_scratch.yaml" else {"prune"}
    )
    assert planned <= set(run.printed.split())


def test_a_missing_text_stops_a_run_even_where_results_exist(project) -> None:
    raw = project.root / "results" / "smoke" / "mine" / "corpus" / "raw.parquet"
    raw.parent.mkdir(parents=True)
    raw.touch()
    run = project.configured(
        with_one_corpus(project.settings(), {"kind": "local", "path": "pairs.tsv"})
    ).run("--dry-run", raw)
    assert run.status == 1
    assert (
        "corpora.mine.source: there is no file pairs.tsv; put it there, or correct the path"
        in run.printed
    )


def test_your_own_language_pair_by_configuration_alone(project, shared: Path) -> None:
    """One EN-DE corpus from a gzip file, parsed by Stanza; encoder heads pruned with one λ, so
    without figures 2, 9 and 10."""
    text, stanza = shared / "tatoeba" / "anki.en-de.tsv.gz", shared / "stanza"
    for needed in (text, stanza):
        if not needed.exists():
            pytest.skip(f"no {needed}")
    source, split = (
        {"kind": "local", "path": str(text), "limit": 3000},
        {"dev": 50, "test": 50, "analysis": 100},
    )
    values = with_one_corpus(project.settings(), source, split=split)
    values["training"] |= {"updates": 20, "warmup": 5}
    values["pruning"] |= {"encoder": [0.01], "all": [], "updates": 10, "retrain": []}
    values["parser"] = {"engine": "stanza", "directory": str(stanza), "download": False}
    run = project.configured(values).run()
    assert run.status == 0, run.printed[-5000:]
    assert read_json(project.file("mine/parses/analysis.json"))["engine"] == "stanza"
    assert read_json(project.file("mine/corpus/counts.json"))["raw"] == 3000
    assert pd.read_parquet(project.file("data/models.parquet"))["kind"].tolist() == [
        "baseline",
        "pruned",
    ]
    figures = {path.stem for path in project.file("figures").glob("figure*.pdf")}
    assert figures == {f"figure{number}" for number in (1, 3, 4, 5, 6, 7, 8)}


def test_the_text_of_the_paper_from_corpus_to_scores_and_heads(project) -> None:
    """An experiment on lower-case Moses tokens."""
    values, name = project.settings(), "tatoeba_en_fr"
    corpus = values["corpora"][name]
    corpus["filters"]["max_words"] = 4
    corpus["split"] = {"dev": 50, "test": 100, "analysis": 200}
    values |= {
        "corpora": {name: corpus},
        "vocabulary": {"source": 500, "target": 500, "preprocess": "paper"},
    }
    values["pruning"] |= {"encoder": [], "all": [], "retrain": []}
    targets = ["data/models.parquet", f"{name}/heads/baseline/seed1.parquet"]
    run = project.configured(values).run(*(f"results/smoke/{target}" for target in targets))
    assert run.status == 0, run.printed[-5000:]

    folder = project.file(name)
    # Words of raw, cased text meet pieces of lower-case tokens.
    report = read_json(folder / "heads/baseline/seed1.json")
    assert report["aligned"] == report["parsed"] > 150
    heads = pd.read_parquet(folder / "heads/baseline/seed1.parquet")
    assert heads.loc[heads["type"] == "encoder", "nsubj_head_to_dependent"].notna().all()

    [score] = pd.read_parquet(project.file("data/models.parquet")).to_dict("records")
    assert "case:lc" in score["signature"] and "tok:13a" in score["signature"]
    assert "tok:none" in score["signature_tokenised"] and "moses.fr" in score["signature_tokenised"]
    seed = folder / "models/baseline/seed1"
    names = ("translation.txt", "translation.tokenised.txt")
    text, tokens = ((seed / name).read_text(encoding="utf-8") for name in names)
    assert text == text.lower() and text.count("\n") == tokens.count("\n") == 100
    assert " ." in tokens and " ." not in text
