"""Plans of experiments: names of models, which models there are, settings of their stages, the code
that these depend on."""

import inspect
import json
import re
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from specialized_heads.experiment import figures, plan, stages
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.figures import RESULTS, everything
from specialized_heads.experiment.file import load, read
from specialized_heads.experiment.names import CONTINUED, KINDS, MODEL, Name, Target, columns
from specialized_heads.experiment.plan import Run, corpora, models, paths, runs, viewed
from specialized_heads.experiment.stages import PACKAGE, code, files_of
from specialized_heads.report.gather import Settings

ROOT = Path(__file__).parents[2]
NAMES = {
    "baseline": Name("baseline"),
    "checkpoint/update500": Name("checkpoint", update=500),
    "pruned/encoder_lambda0.01": Name("pruned", "encoder", Target(lam=0.01)),
    "count/all_lambda1e-05": Name("count", "all", Target(lam=1e-5)),
    "scratch/all_heads0": Name("scratch", "all", Target(heads=0)),
    "cut/relevance_encoder_heads6": Name("cut", "encoder", Target(heads=6), "relevance"),
}


@pytest.fixture
def experiment() -> Experiment:
    """A corpus that is pruned in every way, with two seeds, and one that is not."""
    source = {"source": {"kind": "embedded", "name": "x"}, "target_language": "fr"}
    return load(
        {
            "experiment": "e",
            "seeds": [3, 4],
            "corpora": {"a": source | {"title": "A"}, "b": source | {"title": "B", "prune": False}},
            "model": {"layers": 2, "heads": 4, "width": 32},
            "training": {"schedule": "linear", "updates": 100, "warmup": 10},
            "pruning": {"encoder": [0.01, 1], "all": [1e-5], "heads": [6, 2, 4], "heads_all": [12]}
            | {"updates": 50, "warmup": 5, "retrain_updates": 25}
            | {"retrain": ["all", "encoder_heads6"], "controls": ["count"]},
            "ablation": {"single": True, "systematic": True, "moments": [40]},
            "comparison": {"criteria": ["gates", "importance", "relevance"], "finetune": False},
        }
    )


def changed(experiment: Experiment, **sections: dict[str, object]) -> Experiment:
    """The experiment with other keys of some sections."""
    values = experiment.model_dump()
    return load(values | {name: values[name] | keys for name, keys in sections.items()})


@pytest.mark.parametrize("text", NAMES)
def test_a_name_reads_back_as_what_was_written(text: str) -> None:
    assert str(NAMES[text]) == text
    assert Name.parse(text) == NAMES[text]


def test_the_key_columns_of_a_model_follow_from_its_name() -> None:
    keys = {"kind": "cut", "scope": "all", "lam": None, "target_heads": 12, "criterion": "gates"}
    keys |= {"update": None, "seed": 3, "model": "gates_all_heads12"}
    assert columns("cut/gates_all_heads12", 3) == keys
    assert columns("baseline", 1)["model"] == "baseline"


OTHERS = ["", "pruned", "pruned/decoder_heads6", "pruned/all_0.1", "../baseline"]


@pytest.mark.parametrize("text", OTHERS)
def test_other_text_is_not_a_name(text: str) -> None:
    assert not re.fullmatch(MODEL, text)
    with pytest.raises(ValueError, match="is not the name of a model"):
        Name.parse(text)
    with pytest.raises(ValueError, match="is not a target"):
        Target.parse(text)


# Which models an experiment has, and where their files are.

RETRAINED = ["encoder_heads6", "all_lambda1e-05", "all_heads12"]
PRUNED = ["encoder_lambda0.01", "encoder_lambda1", "encoder_heads6", "encoder_heads2"]
PRUNED += ["encoder_heads4", *RETRAINED[1:]]


def test_models_of_a_kind(experiment: Experiment) -> None:
    expected = {"pruned": PRUNED, "scratch": RETRAINED, "count": RETRAINED}
    expected |= {"checkpoint": ["update40"], "regularised": [], "finetuned": []}
    for kind, made in expected.items():
        assert models(experiment, "a", kind) == [f"{kind}/{name}" for name in made]
    # Criteria are compared with every pruned model.
    cut = map("_".join, product(("gates", "importance", "relevance"), PRUNED[:5]))
    assert models(experiment, "a", "cut", scopes=["encoder"]) == [f"cut/{name}" for name in cut]


def test_runs_are_in_the_order_of_seeds_and_have_paths(experiment: Experiment) -> None:
    found = runs(experiment, ["a", "b"], "baseline", "checkpoint")
    checkpoint = Run("a", "checkpoint/update40", 3)
    assert found[:3] == [Run("a", "baseline", 3), checkpoint, Run("a", "baseline", 4)]
    path = "results/e/a/heads/checkpoint/update40/seed3.parquet"
    assert paths(experiment, plan.HEADS, [checkpoint]) == [path]
    assert paths(experiment, plan.HEADS, ["b"]) == ["results/e/b/heads/baseline/seed3.parquet"]
    # A corpus that is not pruned has its baseline alone; pages show models of the first seed.
    assert corpora(experiment, pruned=True) == ["a"]
    assert models(experiment, "b", *KINDS) == ["baseline"]
    assert {run.seed for run in viewed(experiment)} == {3} and len(viewed(experiment)) == 1 + 7 + 1


# Settings of stages: a λ and a number of heads, schedules of training after the baseline's, and
# criteria.

JOB = {"corpus": "a", "seed": "3"}
STAGES = {
    found
    for file in (ROOT / "workflow" / "rules").glob("*.smk")
    for found in re.findall(r'(?:stage|settings)\(\s*"([\w. ]+)"', file.read_text(encoding="utf-8"))
}
SETTINGS = {
    name: stages.settings(*stage)
    for name, stage in {
        "baseline": ("training.train", stages.baseline),
        "scratch": ("training.train", stages.from_scratch),
        "prune": ("pruning.prune", stages.prune),
        "regularised": ("pruning.prune", stages.regularised),
        "finetune": ("pruning.criteria finetune", stages.finetune),
        "continued": ("pruning.criteria finetune", stages.continued),
        "tokens": ("corpus.tokens",),
    }.items()
}


@pytest.mark.parametrize("name", sorted(STAGES))
def test_the_keys_of_settings_are_read_from_the_source_of_a_stage(name: str) -> None:
    module, function = [*name.split(), "main"][:2]
    stage = getattr(import_module(f"specialized_heads.{module}"), function)
    assert stages.keys_of(name) == list(getattr(stage.settings, "model_fields", ()))


def test_settings_are_keys_of_the_experiment_of_the_corpus_and_of_the_job(
    experiment: Experiment,
) -> None:
    lower = {"override": {"vocabulary": {"preprocess": "paper"}}}
    corpora = experiment.model_dump()["corpora"]
    paper = load(experiment.model_dump() | {"corpora": corpora | {"a": corpora["a"] | lower}})
    pair = {"source_language": "en", "target_language": "fr"}
    assert SETTINGS["tokens"](paper, **JOB) == pair | {"preprocess": "paper"}
    job = JOB | {"criterion": "gates", "scope": "all"}
    cut = stages.settings("pruning.criteria cut", stages.cut)(experiment, **job, target="heads2")
    expected = {"criterion": "gates", "scope": "all", "column": None, "seed": 3, "device": "auto"}
    assert cut == expected
    with pytest.raises(ValueError, match="corpus.tokens has no settings moments"):
        stages.settings("corpus.tokens", stages.baseline)(experiment, **JOB)


def test_a_lambda_or_a_number_of_heads(experiment: Experiment) -> None:
    job = JOB | {"scope": "encoder"}
    by_lambda, by_count = (
        SETTINGS["prune"](experiment, **job, target=target) for target in ("lambda0.01", "heads6")
    )
    assert (by_lambda["lam"], by_lambda["target_heads"]) == (0.01, None)
    assert (by_count["lam"], by_count["target_heads"]) == (None, 6)
    settings = SETTINGS["regularised"](experiment, **JOB, scope="all", target="lambda1e-05")
    assert settings["training"]["updates"] == 25
    # The log of a training with gates has twenty lines.
    assert [each["training"]["log_every"] for each in (by_lambda, settings)] == [2, 1]
    # λ 0 has no gates: it is not trained again when their settings change.
    faster = changed(experiment, pruning={"gate_learning_rate": 0.7})
    for target, same in (("lambda0", True), ("lambda0.01", False)):
        both = [SETTINGS["prune"](each, **job, target=target) for each in (faster, experiment)]
        assert (both[0] == both[1]) is same


def test_models_of_one_baseline_are_independent_draws(experiment: Experiment) -> None:
    model = {"scope": "encoder", "target": "lambda0.01"}
    jobs = [("baseline", {"seed": seed}) for seed in "34"]
    jobs += [("prune", other) for other in ({}, {"seed": "4"}, {"target": "lambda0"})]
    jobs += [("scratch", {}), ("scratch", {"evenly": True}), ("regularised", {})]
    jobs += [("continued", {"control": name}) for name in CONTINUED]
    jobs += [("finetune", {"criterion": name}) for name in ("random", "gates")]
    seeds = [SETTINGS[kind](experiment, **JOB | model | job)["seed"] for kind, job in jobs]
    # Given baselines were trained with the experiment's seed itself.
    assert seeds[:2] == [3, 4] and len(set(seeds)) == len(seeds)
    # no draw hangs on the process
    assert seeds[2] == SETTINGS["prune"](experiment, **JOB, **model)["seed"]


def test_all_rules_of_relevance_are_measured_only_on_the_baselines(experiment: Experiment) -> None:
    rules = ["z_plus", "alpha_beta", "epsilon"]
    several = changed(experiment, heads={"relevance_rules": rules})
    for model, measured in (("pruned/all_lambda0.01", rules[:1]), ("baseline", rules)):
        assert stages.relevance(several, corpus="a", model=model)["rules"] == measured


def test_only_a_pruned_corpus_keeps_checkpoints(experiment: Experiment) -> None:
    made = [SETTINGS["baseline"](experiment, corpus=name, seed="3") for name in "ab"]
    assert [settings["moments"] for settings in made] == [[40], []]


RANKED = [("gates", None, ""), ("importance", "importance_normalised", "importance")]
RANKED += [("relevance", "relevance", "heads")]


@pytest.mark.parametrize(("criterion", "column", "table"), RANKED)
def test_what_a_criterion_ranks_by(
    experiment: Experiment, criterion: str, column: str | None, table: str
) -> None:
    job = JOB | {"criterion": criterion, "scope": "encoder", "target": "heads6"}
    assert stages.cut(experiment, **job)["column"] == column
    path = f"results/e/a/{table}/baseline/seed3.parquet"
    assert plan.ranking(experiment, **job) == [path] * bool(table)


@pytest.mark.parametrize(
    ("model", "other"),
    [
        ("pruned/encoder_lambda0.01", "pruned/encoder_lambda0"),
        ("pruned/encoder_heads6", "pruned/encoder_lambda0"),
        ("scratch/encoder_heads6", "pruned/encoder_heads6"),
        ("count/all_lambda1e-05", "pruned/all_lambda1e-05"),
        ("continued/all_heads12", "pruned/all_heads12"),
        # other criteria: with the heads that gates keep
        ("cut/importance_encoder_heads6", "cut/gates_encoder_heads6"),
        ("pruned/encoder_lambda0", None),
        ("baseline", None),
        ("checkpoint/update40", None),
        ("cut/gates_encoder_heads6", None),
        ("pruned/all_heads12", None),  # no λ 0 of its scope
    ],
)
def test_which_second_model_one_is_compared_with(
    experiment: Experiment, model: str, other: str | None
) -> None:
    more = changed(experiment, pruning={"encoder": [0, 0.01, 1]})
    files = plan.counterpart_translation(more, corpus="a", model=model, seed="3")
    assert files == [f"results/e/a/models/{other}/seed3/translation.txt"] * bool(other)


# Which source files a stage depends on.


def test_imports_are_followed_and_the_keys_of_the_configuration_are_not() -> None:
    found = {file.relative_to(PACKAGE).as_posix() for file in files_of("pruning.prune")}
    assert {"pruning/prune.py", "model/gates.py", "training/loop.py", "stage.py"} <= found
    assert not found & {"experiment/sections.py", "experiment/configuration.py", "heads/analyse.py"}


def test_the_hash_covers_data_files() -> None:
    before = code("viewer", data=("assets/page.css",))
    assert before == code("viewer", data=("assets/page.css",))
    assert before != code("viewer")
    with pytest.raises(ValueError, match="there is no module viewer.nothing"):
        code("viewer.nothing")


# The rows of figures and tables, and the five tables that they read.

BERT = load(read(ROOT / "config" / "bert_small.yaml"))


def made(experiment: Experiment) -> set[str]:
    files = everything(experiment)
    assert len(set(files)) == len(files)
    return {Path(file).stem for file in files}


def test_each_row_has_a_name_of_its_own_and_a_module_that_takes_its_files_and_settings(
    experiment: Experiment,
) -> None:
    for key in ("label", "stem"):
        assert len({getattr(result, key) for result in RESULTS}) == len(RESULTS)
    for result in RESULTS:
        name, *start = result.module.split()
        module = import_module(f"specialized_heads.report.{name}")
        parts = ("numbers", "draw" if "figures/" in result.stem else "shown")
        numbers, drawn = (getattr(module, "_".join([*start, part])) for part in parts)
        settings = figures.settings(experiment, stem=result.stem)
        taken = list(inspect.signature(numbers).parameters)[1:]
        assert taken == [*result.files, *(key for key in settings if key != "files")]
        assert result.caption == inspect.cleandoc((drawn if start else module).__doc__)


def test_everything_is_what_the_configuration_asks_for(experiment: Experiment) -> None:
    whole = made(experiment)
    plain = made(load({"experiment": "e", "corpora": {"b": experiment.corpora["b"].model_dump()}}))
    of_pruning = {"front", "figure8", "figure10", "table2", "survival"}
    asked = {"figure2", "figure7", "figure9", "moments", "criteria", "controls", "ablation"}
    asked |= of_pruning
    assert {"figure1", "figure3", "relations"} <= plain and not plain & {"gates", *asked}
    assert {"figure1", "claims", "index", "models", *asked} <= whole
    assert not whole & {"relevance", "tasks", "emergence"}
    # With λ 0 alone, no model loses heads; with one scope, the figures of the other would be empty.
    one = experiment.model_dump(include={"experiment", "corpora"})
    none, some = (
        made(load(one | {"pruning": {"encoder": [0, *more], "all": [0]}})) for more in ([], [0.01])
    )
    assert not none & {"figure7", "gates", *of_pruning}
    assert {"figure7", "gates", *of_pruning} - some == {"figure10"}
    of_tasks = made(BERT)
    assert {"claims", "tasks", "task_pruning", "ablation", "moments", "task_speed"} <= of_tasks
    assert not of_tasks & {"figure1", "front", "data_card", "heads", "relations", "systematic"}


def test_the_environment_waits_for_everything_else_and_the_page_of_results_for_it(
    experiment: Experiment,
) -> None:
    shown = set(everything(experiment)) - {"results/e/index.html"}
    assert set(figures.shown_files(experiment)) == shown
    assert set(figures.files(experiment, stem=figures.LAST)["needs"]) == shown - {
        "results/e/tables/environment.md"
    }


def test_the_tables_have_the_files_of_all_models(experiment: Experiment) -> None:
    files = {table: figures.table_files(experiment, table=table) for table in figures.TABLES}
    for name in ("cut/gates_encoder_heads2", "checkpoint/update40", "baseline"):
        folder = f"results/e/a/models/{name}/seed4"
        assert f"{folder}/score.json" in files["models"]
        logged = [f"{folder}/log.jsonl" in files[table] for table in ("logs", "models")]
        assert logged == [name == "baseline"] * 2  # the others are not trained
    assert "results/e/a/systematic/checkpoint/update40/seed3.parquet" in files["ablation"]
    assert not any("/b/" in path for path in files["ablation"])  # which is not pruned
    several = changed(experiment, heads={"relevance_rules": ["z_plus", "epsilon"]})
    by_rule = {f"results/e/{corpus}/relevance/baseline/seed4.json" for corpus in ("a", "b")}
    assert by_rule <= set(figures.table_files(several, table="heads")) - set(files["heads"])
    assert figures.table_settings(several, table="heads")["by_rule"] == ["a", "b"]


def test_the_tables_know_what_is_the_same_in_a_corpus(experiment: Experiment) -> None:
    values = experiment.model_dump(include={"experiment", "corpora"})
    values |= BERT.model_dump(include={"classification"})
    values |= {"pruning": {"all": [0.01]}, "ablation": {"single": True}}
    both, facts = load(values), {}
    for table in figures.TABLES:
        settings = json.loads(json.dumps(figures.table_settings(both, table=table)))
        facts[table] = Settings.model_validate(settings).corpora
        assert facts[table].keys() == {"a", "b", *both.tasks} and facts[table]["a"]["title"] == "A"
    assert facts["models"]["a"]["source"] == "embedded"
    assert isinstance(facts["models"]["a"]["beam"], int)
    seconds = {name: same["second"] for name, same in facts["ablation"].items()}
    assert seconds == dict.fromkeys("ab", "development set") | dict.fromkeys(
        both.tasks, "mismatched test set"
    )
