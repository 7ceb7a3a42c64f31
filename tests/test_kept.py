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
    "section, key, value",
    [
        ("vocabulary", "source", 900),
        ("model", "layers", 1),
        ("model", "head_width", 4),
        ("training", "updates", 61),
        ("training", "optimizer", "muon"),
        ("corpora", "filters", {"max_words": 9}),
        ("corpora", "split", {"dev": 99, "test": 100, "analysis": 300}),
    ],
)
def test_what_it_cannot_honour_is_an_error_that_names_the_key(values, section: str, key: str, value: object) -> None:
    place = values["corpora"]["tatoeba_en_fr"] if section == "corpora" else values[section]
    place[key] = value
    name = next(iter(value)) if isinstance(value, dict) else key
    with pytest.raises(UserError, match=rf"baseline: \w+\.{name} differs .*config/from_scratch.yaml"):
        check(values)


@pytest.mark.parametrize(
    "source", [{"kind": "local", "path": "text.tsv"}, {"kind": "embedded", "name": "tatoeba_en_de"}]
)
def test_another_source_is_an_error_that_names_it(values: dict[str, Any], source: dict[str, str]) -> None:
    values["corpora"]["tatoeba_en_fr"]["source"] = source
    values["parser"] = {"engine": "stanza"}
    with pytest.raises(UserError, match=r"baseline: source(\.name)? differs from that of the baseline"):
        check(values)


def test_moments_of_a_corpus_that_is_not_pruned_ask_for_no_checkpoints(values: dict[str, Any]) -> None:
    values["ablation"] = {"systematic": True, "moments": [10]}
    with pytest.raises(UserError, match=r"empty ablation\.moments"):
        check(values)
    values["corpora"]["tatoeba_en_fr"]["prune"] = False
    check(values)


def test_another_language_or_seed_and_checkpoints_are_errors(values: dict[str, Any]) -> None:
    corpus = values["corpora"]["tatoeba_en_fr"]
    for changed, said in (
        ({"corpora": {"tatoeba_en_fr": corpus | {"target_language": "de"}}}, "target_language differs"),
        ({"seeds": [1, 2]}, "no .*seed2, the baseline of seed 2"),
        ({"heads": values["heads"] | {"checkpoints": [10, 20]}}, r"no checkpoints of its .*; empty heads\.checkpoints"),
    ):
        with pytest.raises(UserError, match=said):
            check(values | changed)


def test_a_bert_that_does_not_exist_is_an_error_that_names_the_key() -> None:
    values = {"experiment": "e", "classification": {"model": "no/such/folder", "tasks": {}}}
    values["classification"]["tasks"] = {"a": {"title": "t", "source": {"kind": "shift"}}}
    with pytest.raises(UserError, match="classification.model: there is no folder no/such/folder"):
        check(values)
