"""What a user meets in the configuration: shipped files that load, messages that name the mistake,
the schema in step."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from specialized_heads.experiment import file as config
from specialized_heads.experiment.file import read
from specialized_heads.stage import UserError

ROOT = Path(__file__).parents[1]
SHIPPED = [
    ROOT / "config.yaml",
    *sorted(path for path in (ROOT / "config").rglob("*.yaml") if not path.is_symlink()),
]
SCHEMA = ROOT / "workflow/schemas/config.schema.json"


@pytest.fixture
def values() -> dict[str, Any]:
    """A valid configuration with one corpus of each kind."""
    return {
        "experiment": "test",
        "corpora": {
            "first": {
                "title": "One",
                "source": {"kind": "embedded", "name": "first"},
                "target_language": "fr",
            },
            "second": {
                "title": "Two",
                "source": {"kind": "local", "path": "pairs.tsv"},
                "target_language": "de",
            }
            | {"override": {"parser": {"engine": "stanza"}}},
        },
        "pruning": {"encoder": [0.01], "all": [0.1]},
    }


def assign(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of `values` with another value at `path`, its keys separated by spaces."""
    result = copy.deepcopy(values)
    *parents, last = path.split()
    section = result
    for key in parents:
        section = section.setdefault(key, {})
    section[last] = value
    return result


def message(values: dict[str, Any]) -> str:
    with pytest.raises(UserError) as caught:
        config.load(values, origin="my.yaml")
    return str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_configurations_are_valid(path: Path) -> None:
    experiment = config.load(read(path))
    # What a run writes, and what a stage gets, has all keys.
    assert config.load(experiment.model_dump(mode="json")) == experiment
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    jsonschema.validate(values, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_shipped_experiments_have_folders_of_their_own() -> None:
    names = [read(path)["experiment"] for path in SHIPPED]
    assert len(set(names)) == len(names)


def test_the_schema_file_is_that_of_the_models() -> None:
    command = f"python -m specialized_heads.experiment.file --schema > {SCHEMA.relative_to(ROOT)}"
    assert SCHEMA.read_text(encoding="utf-8") == config.schema_text(), f"run: {command}"


BERT = {"tasks": {"shift": {"title": "Shift", "source": {"kind": "shift"}}}}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("training join", 2, "training.join: shift is a task"),
        ("classification pretraining join", 2, "classification.pretraining.join: "),
        (
            "classification tasks shift title",
            "\x1b",
            "classification.tasks.shift.title: '\\x1b' cannot be shown",
        ),
        ("classification model", "bert-base", "classification.width: bert-base has its own"),
    ],
)
def test_tasks_are_possible(path: str, value: object, said: str) -> None:
    values = {
        "experiment": "test",
        "classification": BERT | {"width": 64},
        "pruning": {"encoder": [], "all": [0.1]},
    }
    values["ablation"] = {"systematic": True}
    config.load(values)
    changed = assign(values, path, value)
    if path.startswith("training"):
        config.load(
            assign(changed, "classification tasks shift override", {"training": {"join": 1}})
        )
    assert said in message(changed)


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("expriment", "experiment"),
        ("training updats", "updates"),
        ("corpora second source groupby", "group_by"),
        ("corpora first override training updats", "updates"),
        ("classification tasks third source tst", "test"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    values: dict[str, Any], path: str, nearest: str
) -> None:
    values["classification"] = {"tasks": {"third": {"title": "Three", "source": {"kind": "shift"}}}}
    said = message(assign(values, path, 1))
    assert said == f"my.yaml: {'.'.join(path.split())}: unknown key; nearest known key: {nearest}"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("pruning all", [float("nan")], "pruning.all.0: Input should be a finite number"),
        ("pruning encoder", [0.01, 1e-2], "pruning.encoder: 0.01 occurs more than once"),
        (
            "pruning",
            {"retrain": [], "controls": ["count"]},
            "pruning: controls need configurations in retrain",
        ),
        (
            "pruning",
            {"all": [0], "controls": ["count"]},
            "pruning: controls need configurations in retrain",
        ),
        (
            "pruning",
            {"all": [0.1], "retrain_updates": 5, "controls": ["count", "continued"]},
            "pruning: controls: continued first trains for as long as the baseline; remove "
            "retrain_updates",
        ),
        (
            "pruning",
            {"all": [0.02], "retrain": ["all_lambda0.1"]},
            "nor a pruned configuration (all_lambda0.02)",
        ),
        (
            "training",
            {"schedule": "linear", "updates": 50, "warmup": 50},
            "training: warmup 50 takes all of the 50",
        ),
        ("seeds", 7, "seeds: not a list; write it in brackets, as in [7]"),
        (
            "pruning encoder",
            None,
            "pruning.encoder: no list; write its values in brackets, or remove the key",
        ),
        ("experiment", 2024, "experiment: '2024' is not text; quote it"),
        ("pruning", None, "pruning: the section is empty; give it keys or remove it"),
        ("training updates", "1e5", "training.updates: '1e5' is not a whole number"),
        ("ablation moments", [10], "ablation: moments need systematic pruning"),
        ("ablation moments", [5, 5], "ablation.moments: 5 occurs more than once"),
        ("model width", 100, "model: width 100 must be a multiple of heads 8"),
        ("corpora", {}, "corpora: "),
        (
            "classification",
            {"revision": "v1", "tasks": {"t": {"title": "T", "source": {"kind": "cola"}}}},
            "classification: revision without a model",
        ),
        (
            "corpora first source",
            {"kind": "locl"},
            "first.source.kind: 'locl' is none of embedded, local, opus, opensubtitles, wmt; "
            "nearest: local",
        ),
        (
            "corpora tasks",
            {"source": {"kind": "locl"}},
            "corpora.tasks.source.kind: 'locl' is none of embedded, local",
        ),
        (
            "corpora tasks",
            {"source": {"kind": "opensubtitles", "version": 1}},
            "tasks.source.version: unknown key",
        ),
        ("corpora first source", {"path": "x"}, "first.source.kind: required key is missing"),
        ("corpora first title", "a\0b", "corpora.first.title: 'a\\x00b' cannot be shown"),
        ("corpora second title", "One\n", "corpora: two have the title 'One'"),
        ("corpora first target_language", "Chinese", "corpora.first.target_language: "),
        (
            "corpora first source_language",
            "jp",
            "source_language: 'jp' is not the code of a language",
        ),
        ("corpora first override", {"device": {}}, "corpora.first.override.device: "),
        ("device", "mps", "my.yaml: device: Apple's GPU (mps) is not supported; set cpu or auto"),
        (
            "corpora first override",
            {"model": {"width": 36}},
            "corpora.first.override.model: width 36",
        ),
        (
            "corpora second override",
            {},
            "corpora.second: only embedded corpora have embedded parses",
        ),
        ("heads relations", ["a/b"], "heads.relations.0: "),
        (
            "parser engine",
            "conllu",
            "parser: engine conllu reads trees from a file: set parser.path",
        ),
        (
            "parser path",
            "trees.conllu",
            "parser: engine embedded reads no path: set parser.engine to conllu",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_place(
    values: dict[str, Any], path: str, value: Any, said: str
) -> None:
    assert said in message(assign(values, path, value))


def test_criteria_need_a_model_that_is_pruned(values: dict[str, Any]) -> None:
    values |= {"pruning": {"encoder": [0]}, "comparison": {"criteria": ["random"]}}
    assert "comparison.criteria: nothing says how many heads of first" in message(values)


FOLDERS = ["../up", "a/b", "", ".hidden", "-rf", "a b", "$(id)", "{x}", "naïve", "a\n"]
FILES = ["README.md", "claims.md", "configuration.yaml"]


@pytest.mark.parametrize("name", FOLDERS + FILES)
def test_names_that_are_no_plain_folder_names_are_rejected(
    values: dict[str, Any], name: str
) -> None:
    said = (
        f"the name {name} becomes a folder, beside files"
        if name in FILES
        else f"the name {name!r} becomes a folder"
    )
    corpora = {name: values["corpora"]["first"]}
    for wrong in (assign(values, "experiment", name), assign(values, "corpora", corpora)):
        assert said in message(wrong)


def test_keys_that_yaml_takes_for_something_else_are_told(values: dict[str, Any]) -> None:
    values["corpora"][False] = values["corpora"]["first"]
    assert "corpora.0: a key that is not text; quote it" in message(values)
    assert "1: a key that is not text; quote it" in message({"experiment": "x", True: 1})


def test_a_title_is_on_one_line_and_may_be_in_any_script(values: dict[str, Any]) -> None:
    for title, shown in ((" T\nU\tV ", "T U V"), ("می\u200cخواهم → 中文", "می\u200cخواهم → 中文")):
        assert (
            config.load(assign(values, "corpora first title", title)).corpora["first"].title
            == shown
        )


def test_an_override_changes_its_corpus_alone(values: dict[str, Any]) -> None:
    override = {"training": {"updates": 7}, "pruning": {"all": []}}
    experiment = config.load(assign(values, "corpora first override", override))
    first, second = experiment.for_corpus("first"), experiment.for_corpus("second")
    assert (first.training.updates, first.pruning.all, first.pruning.encoder) == (7, [], [0.01])
    assert first.training.batch_tokens == second.training.batch_tokens
    assert (second.training.updates, second.pruning.all) == (experiment.training.updates, [0.1])


def test_a_number_that_yaml_reads_as_text_is_a_number(values: dict[str, Any]) -> None:
    """YAML 1.1 takes `1e-3`, without a point, for a string."""
    lambdas = yaml.safe_load("[1e-3, 0.5]")
    assert lambdas == ["1e-3", 0.5]
    assert config.load(assign(values, "pruning encoder", lambdas)).pruning.encoder == [0.001, 0.5]


def test_as_many_heads_and_moments_as_there_are(values: dict[str, Any]) -> None:
    values |= {"model": {"layers": 2, "heads": 4, "width": 32}, "training": {"updates": 50}}
    values["model"]["decoder_layers"] = 1  # 8 encoder heads, 4 of each other type
    possible = {
        "pruning": {"heads": [0, 8], "heads_all": [16]},
        "ablation": {"systematic": True, "moments": [1, 50]},
    }
    config.load(values | possible)
    assert "pruning.heads: 9 heads requested, but" in message(values | {"pruning": {"heads": [9]}})
    assert "pruning.heads_all: 17 heads requested" in message(
        values | {"pruning": {"heads_all": [17]}}
    )
    said = message(values | {"ablation": {"systematic": True, "moments": [51]}})
    assert "ablation.moments: 51 is after the last of the 50 updates" in said
    values["corpora"]["first"]["prune"] = False
    assert "heads.checkpoints: 51 is after the last of" in message(
        values | {"heads": {"checkpoints": [1, 51]}}
    )


def test_the_folder_of_downloads_has_one_spelling(values: dict[str, Any]) -> None:
    for spelling in ("data/", "./data", "data//"):
        assert (
            config.load(values | {"downloads": {"directory": spelling}}).downloads.directory
            == "data"
        )


def test_fine_tuning_and_training_from_scratch_must_fit_their_updates(
    values: dict[str, Any],
) -> None:
    values |= {"training": {"schedule": "linear", "updates": 1000, "warmup": 200}}
    pruning = values["pruning"] | {"updates": 140, "warmup": 20, "retrain_updates": 500}
    experiment = config.load(values | {"pruning": pruning}).for_corpus("first")
    changed = {"updates": 140, "warmup": 20, "learning_rate": 0.4}
    assert experiment.fine_tuning().model_dump() == experiment.training.model_dump() | changed
    # A linear schedule from scratch shrinks as a whole.
    assert experiment.retraining().model_dump() == experiment.training.model_dump() | {
        "updates": 500,
        "warmup": 100,
    }
    said = message(values | {"pruning": pruning | {"warmup": 140}})
    assert (
        said
        == "my.yaml: pruning: warmup 140 takes all of the 140 updates: the rate would end at its "
        "peak"
    )


def test_a_corpus_that_is_not_pruned_may_be_too_small_for_heads_and_moments(
    values: dict[str, Any],
) -> None:
    values["corpora"]["second"]["override"]["training"] = {"updates": 20}
    values["corpora"]["second"]["prune"] = False
    values |= {"training": {"updates": 50}, "ablation": {"systematic": True, "moments": [50]}}
    config.load(values)
    values["corpora"]["second"]["prune"] = True
    assert "updates of the baseline of second" in message(values)
