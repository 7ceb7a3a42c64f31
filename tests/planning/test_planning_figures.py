"""The rows of figures and tables, and the five tables that they read."""

import inspect
import json
from importlib import import_module
from pathlib import Path

from specialized_heads.config.experiment import Experiment, load
from specialized_heads.config.file import read
from specialized_heads.planning import figures, tables
from specialized_heads.planning.figures import RESULTS, everything
from specialized_heads.report.gather import Settings

ROOT = Path(__file__).parents[2]
BERT = load(read(ROOT / "config" / "bert_small.yaml"))


def made(experiment: Experiment) -> set[str]:
    files = everything(experiment)
    assert len(set(files)) == len(files)
    return {Path(file).stem for file in files}


def test_each_row_has_a_name_of_its_own_and_a_module_that_takes_its_files_and_settings(experiment: Experiment) -> None:
    assert len({result.label for result in RESULTS}) == len({result.stem for result in RESULTS}) == len(RESULTS)
    for result in RESULTS:
        module = import_module(f"specialized_heads.report.{result.module}")
        options, settings = list(result.files(experiment)), figures.settings(experiment, stem=result.stem)
        assert list(getattr(module, "FILES", ())) == options, result
        assert list(inspect.signature(module.numbers).parameters)[1:] == [
            *options,
            *(key for key in settings if key != "titles"),
        ]
        assert hasattr(module, "draw" if "figures/" in result.stem else "shown")
        assert result.caption == inspect.cleandoc(module.__doc__)


def test_everything_is_what_the_configuration_asks_for(experiment: Experiment) -> None:
    assert {"figure1", "table2", "claims", "moments", "criteria", "controls", "index", "models", "ablation"} <= made(
        experiment
    )
    assert not made(experiment) & {"speed", "relevance", "tasks", "emergence"}
    plain = made(load({"experiment": "e", "corpora": {"b": experiment.corpora["b"].model_dump()}}))
    assert not plain & {"moments", "criteria", "controls", "ablation", "gates"}
    assert {"figure7", "figure9", "table2", "relations"} <= plain
    of_tasks = made(BERT)
    assert {"claims", "tasks", "task_pruning", "ablation", "moments", "task_speed", "training_curves"} <= of_tasks
    assert not of_tasks & {"figure1", "front", "data_card", "figures", "heads", "relations", "systematic"}


def test_the_environment_waits_for_everything_else(experiment: Experiment) -> None:
    needs = figures.files(experiment, stem=figures.LAST)["needs"]
    assert set(needs) == set(everything(experiment)) - {"results/e/tables/environment.md"}


def test_what_is_read_beside_the_tables_is_named_by_its_corpus(experiment: Experiment) -> None:
    assert figures.files(experiment, stem="figures/figure5") == {
        "examples": ["results/e/a/heads/baseline/seed3.examples.json"]
    }
    cards = figures.settings(experiment, stem="tables/data_card")["titles"]
    assert cards == {"cards": ["A", "B"], "counts": ["A", "B"]}
    assert figures.settings(experiment, stem="figures/figure7") == {}


def test_the_tables_have_the_files_of_all_models(experiment: Experiment) -> None:
    folder = "results/e/a/models"
    of_models = tables.files(experiment, table="models")
    for name in ("soft/all_heads12", "cut/gates_encoder_heads2", "checkpoint/update40", "baseline"):
        assert f"{folder}/{name}/seed4/score.json" in of_models
        trained = name == "baseline"
        assert (f"{folder}/{name}/seed4/log.jsonl" in tables.files(experiment, table="logs")) == trained
    assert "results/e/b/heads/baseline/seed3.parquet" in tables.files(experiment, table="heads")
    ablated = tables.files(experiment, table="ablation")
    assert "results/e/a/systematic/checkpoint/update40/seed3.parquet" in ablated
    assert not any("/b/" in path for path in ablated)  # which is not pruned
    rules = experiment.heads.model_copy(update={"relevance_rules": ["z_plus", "epsilon"]})
    several = experiment.model_copy(update={"heads": rules})
    assert "results/e/b/relevance/baseline/seed4.rules.json" in tables.files(several, table="heads")
    assert tables.settings(several, table="heads")["by_rule"] == ["a", "b"]


def test_the_tables_know_what_is_the_same_in_a_corpus(experiment: Experiment) -> None:
    corpora = dict(experiment.corpora)
    both = load(experiment.model_dump() | {"classification": BERT.classification.model_dump(), "corpora": {
        name: corpus.model_dump() for name, corpus in corpora.items()}, "comparison": {"criteria": []},
        "pruning": {"all": [0.01]}, "ablation": {"single": True, "second": "b"}})  # fmt: skip
    facts = {}
    for table in tables.TABLES:
        settings = json.loads(json.dumps(tables.settings(both, table=table)))
        facts[table] = Settings.model_validate(settings).corpora
        assert {name: same["title"] for name, same in facts[table].items()} == {
            name: study.title for name, study in both.studies.items()
        }
    assert (facts["models"]["a"]["source"], facts["models"]["a"]["beam"]) == ("embedded", 4)
    assert isinstance(facts["models"]["a"]["beam"], int)
    assert facts["relations"]["a"]["least_arcs"] == both.heads.least_arcs
    seconds = {name: same["second"] for name, same in facts["ablation"].items()}
    assert seconds == {"a": "test set of B", "b": "test set of B", **dict.fromkeys(both.tasks, "mismatched test set")}
