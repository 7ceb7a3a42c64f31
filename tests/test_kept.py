"""Which configurations can be given a kept baseline: those that its training followed from, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from specialized_heads.experiment.configuration import load
from specialized_heads.experiment.kept import CORPUS, DESCRIPTION, check_given
from specialized_heads.stage import UserError

ROOT = Path(__file__).parents[1]


CORPORA = "corpora tatoeba_en_fr"


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The smoke experiment on one corpus, given a baseline that was kept from it for seed 1."""
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
    values["corpora"] = {"tatoeba_en_fr": values["corpora"]["tatoeba_en_fr"]}
    experiment = load(values, origin="smoke")
    dumped = experiment.model_dump(mode="json")
    del dumped["model"]["head_width"]  # as if the key were newer than the baseline
    kept = {
        "format": 1,
        "version": "1.0.0",
        "corpus": {name: dumped["corpora"]["tatoeba_en_fr"][name] for name in CORPUS},
        "settings": {"seed": 1} | {name: dumped[name] for name in ("vocabulary", "model", "training")},
        "architecture": {},
        "tokens": {},
        "data_hash": "",
        "sha256": {},
        "hours": 1.0,
        "machine": "",
    }
    folder = tmp_path / "kept" / "seed1"
    folder.mkdir(parents=True)
    (folder / DESCRIPTION).write_text(json.dumps(kept), encoding="utf-8")
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "kept"}
    return values


def check(values: dict[str, Any]) -> None:
    check_given(load(values, origin="config"), root=ROOT)


def test_the_experiment_that_it_was_kept_from_is_given_it(values: dict[str, Any]) -> None:
    check(values)
    values["training"] |= {"log_every": 7, "precision": "bf16"}  # neither changes what was learned
    values["pruning"]["updates"] = 50
    check(values)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("vocabulary source", 900, "vocabulary.source differs .*config/from_scratch.yaml"),
        ("model head_width", 4, "model.head_width differs"),
        ("training updates", 61, "training.updates differs"),
        (f"{CORPORA} filters", {"max_words": 9}, "filters.max_words differs"),
        (f"{CORPORA} source", {"kind": "local", "path": "text.tsv"}, "source differs"),
        (f"{CORPORA} target_language", "de", "target_language differs"),
        ("seeds", [1, 2], "no .*seed2 for seed 2"),
        ("heads checkpoints", [10, 20], r"no checkpoints; empty heads\.checkpoints"),
        ("ablation", {"systematic": True, "moments": [10]}, r"empty ablation\.moments"),
    ],
)
def test_what_it_cannot_honour_is_an_error_that_names_the_key(values, path: str, value: object, said: str) -> None:
    *parents, last = path.split()
    section = values
    for key in parents:
        section = section[key]
    section[last] = value
    values["parser"] = {"engine": "stanza"}
    with pytest.raises(UserError, match=f"baseline: .*{said}"):
        check(values)
    values["corpora"]["tatoeba_en_fr"]["prune"] = False
    if path == "ablation":  # asks for no checkpoints then
        check(values)


def test_a_bert_that_does_not_exist_is_an_error_that_names_the_key() -> None:
    values = {"experiment": "e", "classification": {"model": "no/such/folder", "tasks": {}}}
    values["classification"]["tasks"] = {"a": {"title": "t", "source": {"kind": "shift"}}}
    with pytest.raises(UserError, match="classification.model: there is no folder no/such/folder"):
        check(values)


@pytest.mark.parametrize("section", ["vocabulary", "model"])
def test_what_an_imported_model_brings_with_it_is_not_configured(values, tmp_path: Path, section: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/config.json").touch()
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "theirs"}
    own = {name: values.pop(name) for name in ("vocabulary", "model")}
    check(values)
    with pytest.raises(UserError, match=f"baseline: an imported model has its own {section}; remove {section}"):
        check(values | {section: own[section]})
