"""The rows of figures and tables, and the five tables that they read."""

import inspect
import json
from importlib import import_module
from pathlib import Path

from specialized_heads.experiment import figures, tables
from specialized_heads.experiment.configuration import Experiment, load
from specialized_heads.experiment.figures import RESULTS, everything
from specialized_heads.experiment.file import read
from specialized_heads.report.gather import Settings

ROOT = Path(__file__).parents[2]
LAMBDAS = {"none": [], "some": [0.01]}
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
    of_pruning = {"front", "figure8", "figure10", "table2", "drift", "survival"}
    assert not plain & {"figure2", "figure7", "figure9", *of_pruning} and {"figure1", "figure3", "relations"} <= plain
    assert {"figure2", "figure7", "figure9", *of_pruning} <= made(experiment)
    # With λ 0 alone, no model loses heads; with one scope, the figures of the other would be empty.
    one = experiment.model_dump(include={"experiment", "corpora"})
    scopes = {
        name: made(load(one | {"pruning": {"encoder": [0, *more], "all": [0]}})) for name, more in LAMBDAS.items()
    }
    assert not scopes["none"] & {"figure7", "gates", *of_pruning}
    assert {"figure7", "gates", *of_pruning} - scopes["some"] == {"figure10"}
    of_tasks = made(BERT)
    assert {"claims", "tasks", "task_pruning", "ablation", "moments", "task_speed", "training_curves"} <= of_tasks
    assert not of_tasks & {"figure1", "front", "data_card", "figures", "heads", "relations", "systematic"}


def test_the_environment_waits_for_everything_else(experiment: Experiment) -> None:
    needs = figures.files(experiment, stem=figures.LAST)["needs"]
    assert set(needs) == set(everything(experiment)) - {"results/e/tables/environment.md"}


def test_what_is_read_beside_the_tables_is_named_by_its_corpus(experiment: Experiment) -> None:
    examples = ["results/e/a/heads/baseline/seed3.examples.json"]
    assert figures.files(experiment, stem="figures/figure5") == {"examples": examples}
    cards = figures.settings(experiment, stem="tables/data_card")["titles"]
    assert cards == {"cards": ["A", "B"], "counts": ["A", "B"]}


def test_the_tables_have_the_files_of_all_models(experiment: Experiment) -> None:
    files = {table: tables.files(experiment, table=table) for table in tables.TABLES}
    for name in ("cut/gates_encoder_heads2", "checkpoint/update40", "baseline"):
        folder = f"results/e/a/models/{name}/seed4"
        assert f"{folder}/score.json" in files["models"]
        logged = [f"{folder}/log.jsonl" in files[table] for table in ("logs", "models")]
        assert logged == [name == "baseline"] * 2  # the others are not trained
    assert "results/e/a/systematic/checkpoint/update40/seed3.parquet" in files["ablation"]
    assert not any("/b/" in path for path in files["ablation"])  # which is not pruned
    rules = experiment.heads.model_copy(update={"relevance_rules": ["z_plus", "epsilon"]})
    several = experiment.model_copy(update={"heads": rules})
    by_rule = {f"results/e/{corpus}/relevance/baseline/seed4.rules.json" for corpus in ("a", "b")}
    assert by_rule <= set(tables.files(several, table="heads")) - set(files["heads"])
    assert tables.settings(several, table="heads")["by_rule"] == ["a", "b"]


def test_the_tables_know_what_is_the_same_in_a_corpus(experiment: Experiment) -> None:
    values = experiment.model_dump(include={"experiment", "corpora"}) | BERT.model_dump(include={"classification"})
    values |= {"pruning": {"all": [0.01]}, "ablation": {"single": True}}
    both, facts = load(values), {}
    for table in tables.TABLES:
        settings = json.loads(json.dumps(tables.settings(both, table=table)))
        facts[table] = Settings.model_validate(settings).corpora
        assert facts[table].keys() == {"a", "b", *both.tasks} and facts[table]["a"]["title"] == "A"
    assert facts["models"]["a"]["source"] == "embedded" and isinstance(facts["models"]["a"]["beam"], int)
    assert facts["relations"]["a"]["least_arcs"] == 30
    seconds = {name: same["second"] for name, same in facts["ablation"].items()}
    assert seconds == dict.fromkeys("ab", "development set") | dict.fromkeys(both.tasks, "mismatched test set")
