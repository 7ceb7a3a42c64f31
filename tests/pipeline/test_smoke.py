"""The whole DAG on the smoke experiment: what it makes, and what it makes again after a change."""

import re
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.report.gather import KEYS
from specialized_heads.stage import read_json

PRUNED = [
    "pruned/encoder_lambda0.0001",
    "pruned/encoder_lambda100",
    "pruned/all_lambda0.01",
    "pruned/all_lambda100",
]
SCRATCH = ["scratch/all_lambda0.01", "scratch/all_lambda100"]
TRAINING = {"train_baseline", "prune", "train_from_scratch"}
OF_MODELS = ("models", "heads", "logs")  # the tables that have rows of every pruned model
OF_RELEVANCE = {"relevance", "analyse_heads", "view_heads", "viewer_index"}
REPORT = {"gather", "figure", "table", "index"}  # all figures and tables read the same five tables


def test_it_runs_to_the_end(smoke_run) -> None:
    workflow, run = smoke_run
    assert run.status == 0, run.printed[-5000:]
    assert {"corpus_raw", *REPORT} < run.rules
    folder = workflow.file("")
    assert [
        path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".state"
    ] == []


def test_it_ends_with_what_was_found_and_a_page_that_links_to_all_of_it(smoke_run) -> None:
    workflow, run = smoke_run
    summary = workflow.file("summary.txt").read_text(encoding="utf-8")
    # Snakemake itself then names its log and the time.
    assert run.printed.partition("Complete log(s)")[0].rstrip().endswith(f"\n{summary.rstrip()}")
    names = [line.partition(":")[0] for line in summary.splitlines()]
    assert names == ["Baseline", "Best pruned", "Claims", "Report", "Viewer"]
    page = workflow.file("index.html")
    links = set(re.findall(r'(?:href|src|srcset)="([\w./]+)[" ]', page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).is_file()] == []
    shown = {
        path
        for name in ("figures/*", "tables/*", "claims.*", "data/*")
        for path in page.parent.glob(name)
    }
    unused = page.parent / "data" / "ablation.parquet"  # this experiment ablates nothing
    assert shown - {page.parent / link for link in links} <= {unused}
    assert {"viewer/index.html", "configuration.yaml"} < links


@pytest.mark.parametrize("table", ["models", "heads", "logs", "relations"])
def test_the_tables_have_the_same_keys(smoke, table: str) -> None:
    rows = pd.read_parquet(smoke.file(f"data/{table}.parquet"))
    assert list(rows)[: len(KEYS)] == list(KEYS)
    assert set(rows["corpus"]) == {"tatoeba_en_fr", "libreoffice_en_ru"}
    own = [name for name in ("type", "layer", "head", "relation", "direction") if name in rows]
    assert not rows.duplicated([*KEYS, *own]).any()


def test_every_model_is_scored(smoke) -> None:
    models = pd.read_parquet(smoke.file("data/models.parquet"))
    trained = models["kind"] + "/" + models["scope"] + "_lambda" + models["lam"].map("{:g}".format)
    models["name"] = trained.where(models["kind"] != "baseline", "baseline")
    names = models.groupby("corpus")["name"].agg(list).to_dict()
    assert names == {
        "tatoeba_en_fr": ["baseline", *PRUNED, *SCRATCH],
        "libreoffice_en_ru": ["baseline"],
    }
    assert models["signature"].str.contains("version:").all()
    assert (models["sentences"] == 100).all()


def test_a_small_lambda_keeps_heads_and_a_large_one_keeps_none(smoke) -> None:
    models = pd.read_parquet(smoke.file("data/models.parquet")).set_index(["kind", "scope", "lam"])
    heads = models[["encoder_heads", "decoder_heads", "cross_heads"]]
    assert heads.loc["pruned", "encoder", 0.0001].encoder_heads >= 6
    assert heads.loc["pruned", "encoder", 100].tolist() == [0, 8, 8]
    assert heads.loc["pruned", "all", 100].tolist() == [0, 0, 0]
    assert heads.loc["scratch"].equals(heads.loc["pruned"].loc[["all"]])


def test_heads_of_a_model_without_any_are_an_empty_table(smoke) -> None:
    heads = pd.read_parquet(
        smoke.file("tatoeba_en_fr/heads/pruned/encoder_lambda100/seed1.parquet")
    )
    assert heads["type"].value_counts().to_dict() == {"decoder": 8, "cross": 8}
    shown = pd.read_csv(smoke.file("figures/figure8.csv"))
    assert shown.groupby("lam", dropna=False)["heads"].first().loc[100] == 0


@pytest.mark.parametrize("corpus", ["tatoeba_en_fr", "libreoffice_en_ru"])
def test_relevance_of_a_trained_model_is_kept_from_level_to_level(smoke, corpus: str) -> None:
    report = read_json(smoke.file(f"{corpus}/relevance/baseline/seed1.json"))
    assert report["steps"] == 200
    assert list(report["conservation"]) == ["z_plus", "alpha_beta", "epsilon"]
    for levels in report["conservation"].values():
        assert sorted(levels) == ["decoder 1", "decoder 2", "encoder 1", "encoder 2"]
        assert max(level["largest"] for level in levels.values()) < 1e-3


def test_there_is_nothing_to_do_after_a_run(smoke, finished) -> None:
    assert "Nothing to be done" in smoke.run("--dry-run").printed
    assert smoke.stale() == set()
    # Nor where the whole folder has been moved.
    assert finished.stale() == set()


def test_another_lambda_makes_its_model_and_what_shows_it(finished) -> None:
    values = finished.settings()
    values["pruning"]["encoder"] = [0.0002, 100]
    stale = finished.configured(values).stale()
    corpus, name = "tatoeba_en_fr", "encoder_lambda0.0002"
    of_models = {"prune", "translate", "score", "relevance", "analyse_heads", "view_heads"}
    folders = {path.split("/seed1")[0] for rule, path in stale if rule in of_models | TRAINING}
    places = (f"{corpus}/models", f"{corpus}/relevance", f"{corpus}/heads", f"viewer/{corpus}")
    assert folders == {f"{place}/pruned/{name}" for place in places}
    assert {rule for rule, _ in stale} - of_models == REPORT | {"viewer_index", "configuration"}
    assert {path for rule, path in stale if rule == "gather"} == {
        f"data/{table}.parquet" for table in OF_MODELS
    }


def test_another_title_draws_again_and_computes_nothing(finished) -> None:
    values = finished.settings()
    values["corpora"]["libreoffice_en_ru"]["title"] = "EN-RU help"
    stale = {rule for rule, _ in finished.configured(values).stale()}
    assert stale == REPORT | {"view_heads", "viewer_index", "configuration"}


REMADE = {"heads/propagation.py": OF_RELEVANCE, "evaluation.py": {"score"}}


@pytest.mark.parametrize("module", REMADE)
def test_an_edit_remakes_what_its_code_made(finished, module: str) -> None:
    finished.edit(module)
    assert {rule for rule, _ in finished.stale()} == REPORT | REMADE[module]


# These are made last.
LAST = {"environment", "index", "summary"}
DRAWN = {"figures/costs.py": {"figure7", "table2", *LAST}, "claims/claims.yaml": {"claims", *LAST}}


@pytest.mark.parametrize("file", DRAWN)
def test_an_edit_of_a_figure_or_of_the_claims_makes_them_alone(finished, file: str) -> None:
    finished.edit(f"report/{file}")
    assert {Path(path).stem for _, path in finished.stale()} == DRAWN[file]
