"""A baseline that is kept and given to another experiment: to which one, and the same model or a
clear refusal."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from specialized_heads.exchange import given
from specialized_heads.exchange.given import SPLITS, check_tokens, load_given
from specialized_heads.experiment.configuration import load as load_experiment
from specialized_heads.experiment.given import CORPUS, DESCRIPTION, check_given
from specialized_heads.model.checkpoint import load, save, write_tensors
from specialized_heads.stage import UserError, file_hash, read_json, write_json

ROOT = Path(__file__).parents[2]
keep = runpy.run_path(str(ROOT / "resources" / "keep_baseline.py"))["keep"]
TRAINING = {
    "seed": 1,
    "vocabulary": {"source": 20},
    "model": {"layers": 2},
    "training": {"updates": 3},
}


@pytest.fixture
def results(tmp_path: Path, tiny_model, token_file, sentences) -> Path:
    """The results of an experiment for one corpus, as far as a baseline is kept from them."""
    corpus = tmp_path / "corpus"
    (corpus / "tokens").mkdir(parents=True)
    for number, split in enumerate(SPLITS):
        token_file(split, *sentences(12, seed=number)).rename(
            corpus / "tokens" / f"{split}.safetensors"
        )
    for name in given.VOCABULARIES:
        (corpus / name).write_bytes(name.encode())
    trained = tmp_path / "models" / "baseline" / "seed1"
    trained.mkdir(parents=True)
    save(
        tiny_model(),
        trained / given.WEIGHTS,
        training={**TRAINING, "data_hash": "hash", "matmul_precision": "fp32"},
    )
    (trained / given.LOG).write_text('{"update": 3, "loss": 1.0}\n', encoding="utf-8")
    return tmp_path


@pytest.fixture
def kept(results: Path) -> Path:
    keep(results, results / "kept", seed=1, settings={"filters": {"max_words": 30}}, hours=2.0)
    return results / "kept"


def tokens(results: Path) -> dict[str, Path]:
    return {split: results / "corpus" / "tokens" / f"{split}.safetensors" for split in SPLITS}


def refused(kept: Path) -> str:
    with pytest.raises(UserError) as error:
        load_given(kept)
    return str(error.value)


def test_the_stage_gives_the_kept_model_rounded_to_bf16(results: Path, kept: Path, call) -> None:
    files = {
        "given": kept / DESCRIPTION,
        "output": results / "m.safetensors",
        "records": results / "log.jsonl",
    }
    call(given, **files, **tokens(results))

    original = load(results / "models/baseline/seed1" / given.WEIGHTS)
    pairs = zip(original.named_parameters(), load(files["output"]).parameters(), strict=True)
    for (name, weight), kept_weight in pairs:
        assert torch.equal(weight.bfloat16().float(), kept_weight), name
    description = json.loads((results / "m.json").read_text(encoding="utf-8"))
    assert description["training"]["training"] == TRAINING["training"]
    assert files["records"].read_bytes() == (kept / given.LOG).read_bytes()


@pytest.mark.parametrize("split", SPLITS)
def test_another_split_is_refused_by_name(
    results: Path, kept: Path, split: str, token_file, sentences
) -> None:
    other = tokens(results) | {split: token_file("other", *sentences(12, seed=99))}
    with pytest.raises(UserError, match=f"not the {split} set of the baseline.*from_scratch"):
        check_tokens(kept, load_given(kept)[0], other)


@pytest.mark.parametrize("name", [given.WEIGHTS, given.LOGITS, given.LOG, *given.VOCABULARIES])
def test_a_changed_or_missing_file_is_refused_by_name(kept: Path, name: str) -> None:
    content = (kept / name).read_bytes()
    (kept / name).write_bytes(content[:-1])
    assert name in refused(kept) and "changed" in refused(kept)
    (kept / name).unlink()
    assert name in refused(kept)


def test_a_model_that_computes_other_logits_is_refused(kept: Path, tiny_model) -> None:
    other = {name: p.detach().bfloat16() for name, p in tiny_model(seed=2).named_parameters()}
    write_tensors(kept / given.WEIGHTS, other)
    rehash(kept, given.WEIGHTS)
    assert "logits differ here by" in refused(kept)
    write_tensors(kept / given.LOGITS, {"source": torch.zeros(1, 1)})
    rehash(kept, given.LOGITS)
    assert "logits.safetensors: not of this model; restore" in refused(kept)


def rehash(kept: Path, name: str) -> None:
    """Make a changed file the one that the description expects."""
    description = json.loads((kept / DESCRIPTION).read_text(encoding="utf-8"))
    description["sha256"][name] = file_hash(kept / name)
    write_json(kept / DESCRIPTION, description)


def test_a_description_of_something_else_is_refused(kept: Path) -> None:
    about = read_json(kept / DESCRIPTION)
    about["architecture"]["encoder"][0] = [1, 1]
    write_json(kept / DESCRIPTION, about)
    assert "encoder.0: Value error, each head of a layer needs a number of its own" in refused(kept)
    write_json(kept / DESCRIPTION, {"format": 2})
    assert "baseline.json: " in refused(kept)


# Which configurations can be given it: those that its training followed from, and no others.

CORPORA = "corpora tatoeba_en_fr"


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The smoke experiment on one corpus, given a baseline that was kept from it for seed 1."""
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
    values["corpora"] = {"tatoeba_en_fr": values["corpora"]["tatoeba_en_fr"]}
    experiment = load_experiment(values, origin="smoke")
    dumped = experiment.model_dump(mode="json")
    del dumped["model"]["head_width"]  # as if the key were newer than the baseline
    kept = {
        "format": 1,
        "version": "1.0.0",
        "data_hash": "",
        "hours": 1.0,
        "machine": "",
        "matmul_precision": "fp32",
    }
    kept |= dict.fromkeys(("architecture", "tokens", "sha256"), {})
    kept["corpus"] = {name: dumped["corpora"]["tatoeba_en_fr"][name] for name in CORPUS}
    kept["settings"] = {"seed": 1} | {
        name: dumped[name] for name in ("vocabulary", "model", "training")
    }
    folder = tmp_path / "kept" / "seed1"
    folder.mkdir(parents=True)
    (folder / DESCRIPTION).write_text(json.dumps(kept), encoding="utf-8")
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "kept"}
    return values


def check(values: dict[str, Any]) -> None:
    check_given(load_experiment(values, origin="config"), root=ROOT)


def test_the_experiment_that_it_was_kept_from_is_given_it(values: dict[str, Any]) -> None:
    check(values)
    values["training"] |= {"log_every": 7, "precision": "bf16"}  # neither changes what was learned
    values["pruning"]["updates"] = 50
    check(values)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("vocabulary source", 900, "vocabulary.source differs .*config/studies/from_scratch.yaml"),
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
def test_what_it_cannot_honour_is_an_error_that_names_the_key(
    values, path: str, value: object, said: str
) -> None:
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


def test_a_folder_that_is_missing_is_not_taken_for_a_model_on_the_hub(
    values, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "data/my_baseline"}
    with pytest.raises(
        UserError, match="corpora.tatoeba_en_fr.baseline: there is no folder data/my_baseline"
    ):
        check(values)
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "opus-mt-en-fr"}
    with pytest.raises(
        UserError,
        match="there is no folder opus-mt-en-fr, and a model on the hub has a name like "
        "owner/model",
    ):
        check(values)


def test_a_kept_baseline_is_named_by_its_parent_and_has_no_tags(values) -> None:
    corpus = values["corpora"]["tatoeba_en_fr"]
    corpus["baseline"] = {"model": "kept/seed1"}
    with pytest.raises(UserError, match="kept/seed1 is the baseline of one seed; name its parent"):
        check(values)
    corpus["baseline"] = {"model": "kept", "target_tag": "fra"}
    with pytest.raises(
        UserError, match="baseline.target_tag: given baselines have none; remove it"
    ):
        check(values)


def test_a_bert_that_does_not_exist_is_an_error_that_names_the_key() -> None:
    values = {"experiment": "e", "classification": {"model": "no/such/folder", "tasks": {}}}
    values["classification"]["tasks"] = {"a": {"title": "t", "source": {"kind": "shift"}}}
    with pytest.raises(UserError, match="classification.model: there is no folder no/such/folder"):
        check(values)


@pytest.mark.parametrize("section", ["vocabulary", "model"])
def test_what_an_imported_model_brings_with_it_is_not_configured(
    values, tmp_path: Path, section: str
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/config.json").touch()
    values["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "theirs"}
    own = {name: values.pop(name) for name in ("vocabulary", "model")}
    check(values)
    with pytest.raises(
        UserError, match=f"baseline: an imported model has its own {section}; remove {section}"
    ):
        check(values | {section: own[section]})
