"""A baseline that is stored and given to another experiment: to which one, and the same model or a
clear refusal."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from specialized_heads.exchange import folder
from specialized_heads.exchange.export import load_exported
from specialized_heads.exchange.folder import GIVEN, LOG, SPLITS, WEIGHTS
from specialized_heads.experiment.configuration import FACTS, Experiment
from specialized_heads.experiment.file import load as load_experiment
from specialized_heads.experiment.inputs import check_given
from specialized_heads.model.checkpoint import load, save, write_tensors
from specialized_heads.stage import UserError, file_hash, read_json, write_json

ROOT = Path(__file__).parents[2]
CORPUS = "tatoeba_en_fr"
keep = runpy.run_path(str(ROOT / "resources" / "keep_baseline.py"))["keep"]


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The smoke experiment on one corpus."""
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
    return values | {"corpora": {CORPUS: values["corpora"][CORPUS]}}


@pytest.fixture
def experiment(values: dict[str, Any]) -> Experiment:
    return load_experiment(values)


@pytest.fixture
def results(experiment: Experiment, tiny_model, token_file, sentences) -> Path:
    """The results of the experiment, as far as a baseline is stored from them."""
    results = Path("results/smoke", CORPUS)
    (results / "corpus/tokens").mkdir(parents=True)
    for number, split in enumerate(SPLITS):
        made = token_file(split, *sentences(12, seed=number))
        made.rename(results / "corpus/tokens" / f"{split}.safetensors")
    for side in ("source", "target"):
        (results / f"corpus/bpe.{side}.model").write_bytes(side.encode())
    trained = results / "models/baseline/seed1"
    trained.mkdir(parents=True)
    settings = experiment.model_dump(include={"vocabulary", "model", "training"})
    training = settings | {"seed": 1, "data_hash": "hash", "matmul_precision": "fp32"}
    save(tiny_model(), trained / WEIGHTS, training=training)
    (trained / LOG).write_text('{"update": 3, "loss": 1.0}\n', encoding="utf-8")
    return results


@pytest.fixture
def given(results: Path, experiment: Experiment) -> Path:
    """The baseline, stored for seed 1."""
    keep(experiment, CORPUS, Path("stored/seed1"), seed=1, hours=2.0)
    return Path("stored/seed1")


@pytest.fixture
def take(results: Path, given: Path, call):
    """Run the stage with this baseline, and other tokens of some splits."""

    def run(**others: Path) -> Path:
        tokens = {split: results / f"corpus/tokens/{split}.safetensors" for split in SPLITS}
        files = {"weights": given / WEIGHTS, "facts": given / FACTS} | tokens | others
        call(folder.given, **files, output=Path("m.safetensors"), records=Path("log.jsonl"))
        return Path("m.safetensors")

    return run


def test_the_stage_gives_the_stored_model_rounded_to_bf16(
    results: Path, given: Path, take, experiment: Experiment
) -> None:
    original, taken = load(results / "models/baseline/seed1" / WEIGHTS), load(take())
    pairs = zip(original.named_parameters(), taken.parameters(), strict=True)
    for (name, weight), rounded in pairs:
        assert torch.equal(weight.bfloat16().float(), rounded), name
    training = read_json(Path("m.json"))["training"]
    assert training["training"] == experiment.training.model_dump()
    assert (training["matmul_precision"], training["data_hash"]) == ("fp32", "hash")
    assert Path("log.jsonl").read_bytes() == (given / LOG).read_bytes()


@pytest.mark.parametrize("split", SPLITS)
def test_another_split_is_refused_by_name(split: str, take, token_file, sentences) -> None:
    with pytest.raises(UserError, match=f"not the {split} set of the baseline.*from_scratch"):
        take(**{split: token_file("other", *sentences(12, seed=99))})


@pytest.mark.parametrize("name", GIVEN)
def test_a_changed_or_missing_file_is_refused_by_name(given: Path, take, name: str) -> None:
    (given / name).write_bytes((given / name).read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{name}: not the file that model.json describes"):
        take()
    (given / name).unlink()
    with pytest.raises(UserError, match=f"{name}: no such file"):
        take()


def test_a_model_that_computes_other_logits_is_refused(given: Path, take, tiny_model) -> None:
    other = {name: p.detach().bfloat16() for name, p in tiny_model(seed=2).named_parameters()}
    write_tensors(given / WEIGHTS, other)
    card = read_json(given / "model.json")
    card["sha256"][WEIGHTS] = file_hash(given / WEIGHTS)
    write_json(given / "model.json", card)
    with pytest.raises(UserError, match="logits differ here by"):
        take()


@pytest.mark.parametrize("path", sorted((ROOT / "resources/baselines").glob("*/*")), ids=str)
def test_embedded_baselines_are_complete_and_translate(path: Path) -> None:
    card = folder.check_files(path, GIVEN)
    folder.check_logits(path, load(path / WEIGHTS))
    assert (card.corpus, card.seed) == (f"tatoeba_{path.parent.name[-5:]}", int(path.name[4:]))
    if card.seed == 1:
        assert load_exported(path, device="cpu", beam=1)("Where is the dog?").endswith("?")


# Which configurations can be given it: those that its training followed from, and no others.


@pytest.fixture
def asking(values: dict[str, Any], given: Path) -> dict[str, Any]:
    """The values of an experiment that is given the baseline, which lacks a newer key."""
    facts = read_json(given / FACTS)
    del facts["settings"]["model"]["head_width"]
    write_json(given / FACTS, facts)
    values["corpora"][CORPUS]["baseline"] = {"model": "stored"}
    return values


def check(values: dict[str, Any]) -> None:
    check_given(load_experiment(values), root=ROOT)


def test_the_experiment_that_trained_it_is_given_it(asking: dict[str, Any]) -> None:
    check(asking)
    asking["training"] |= {"log_every": 7, "precision": "bf16"}  # neither changes what was learned
    asking["pruning"]["updates"] = 50
    check(asking)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("vocabulary source", 900, "vocabulary.source differs .*config/studies/from_scratch.yaml"),
        ("model head_width", 4, "model.head_width differs"),
        ("training updates", 61, "training.updates differs"),
        (f"corpora {CORPUS} filters", {"max_words": 9}, "filters.max_words differs"),
        (f"corpora {CORPUS} source", {"kind": "local", "path": "text.tsv"}, "source differs"),
        (f"corpora {CORPUS} target_language", "de", "target_language differs"),
        ("pruning heads", [100], "pruning.heads: 100 heads requested, but"),
        ("seeds", [1, 2], "no .*seed2 for seed 2"),
        ("heads checkpoints", [10, 20], r"no checkpoints; empty heads\.checkpoints"),
        ("ablation", {"systematic": True, "moments": [10]}, r"empty ablation\.moments"),
    ],
)
def test_what_it_cannot_honour_is_an_error_that_names_the_key(
    asking, path: str, value: object, said: str
) -> None:
    *parents, last = path.split()
    section = asking
    for key in parents:
        section = section[key]
    section[last] = value
    asking["parser"] = {"engine": "stanza"}
    with pytest.raises(UserError, match=f"corpora.{CORPUS}.baseline: .*{said}"):
        check(asking)
    asking["corpora"][CORPUS]["prune"] = False
    if path == "ablation":  # asks for no checkpoints then
        check(asking)


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ({"model": "data/mine"}, "there is no folder data/mine; check the path"),
        ({"model": "opus-mt"}, "opus-mt, and a model on the hub has a name like owner/model"),
        ({"model": "stored/seed1"}, "is the baseline of one seed; name its parent"),
        ({"model": "results"}, "results holds no given baseline and no model"),
        ({"model": "results", "revision": "v1"}, "results is a folder, which has no revision"),
        ({"model": "stored", "target_tag": "fra"}, "given baselines have no target_tag; remove it"),
    ],
)
def test_a_folder_that_is_no_baseline_is_told(
    asking: dict[str, Any], baseline: dict[str, str], said: str
) -> None:
    Path("data").mkdir()  # so that data/mine is not taken for a model on the hub
    asking["corpora"][CORPUS]["baseline"] = baseline
    with pytest.raises(UserError, match=f"corpora.{CORPUS}.baseline: .*{said}"):
        check(asking)


def test_a_baseline_of_an_earlier_version_is_told(asking: dict[str, Any], given: Path) -> None:
    write_json(given / FACTS, read_json(given / FACTS) | {"format": 1})
    with pytest.raises(UserError, match="baseline.json: format: .*resources/keep_baseline.py"):
        check(asking)


def test_a_bert_that_does_not_exist_is_an_error_that_names_the_key() -> None:
    tasks = {"a": {"title": "t", "source": {"kind": "shift"}}}
    classification = {"model": "no/such/folder", "tasks": tasks}
    with pytest.raises(UserError, match="classification.model: there is no folder no/such/folder"):
        check({"experiment": "e", "classification": classification})


@pytest.mark.parametrize("section", ["vocabulary", "model"])
def test_what_an_imported_model_brings_with_it_is_not_configured(
    values: dict[str, Any], section: str
) -> None:
    Path("theirs").mkdir()
    Path("theirs/config.json").touch()
    values["corpora"][CORPUS]["baseline"] = {"model": "theirs"}
    own = {name: values.pop(name) for name in ("vocabulary", "model")}
    check(values)
    said = f"baseline: an imported model has its own {section}; remove {section}"
    with pytest.raises(UserError, match=said):
        check(values | {section: own[section]})


def test_a_download_of_a_model_that_has_just_begun_is_no_folder_without_a_model(
    values: dict[str, Any],
) -> None:
    del values["vocabulary"], values["model"]
    values["corpora"][CORPUS]["baseline"] = {"model": "owner/theirs"}
    Path("data/models/owner--theirs").mkdir(parents=True)
    check(values)


def test_beside_models_that_are_trained_or_given_the_sections_are_theirs(
    asking: dict[str, Any],
) -> None:
    Path("theirs").mkdir()
    Path("theirs/config.json").touch()
    theirs = asking["corpora"][CORPUS] | {"title": "Theirs", "baseline": {"model": "theirs"}}
    asking["corpora"]["imported"] = theirs | {"override": {"vocabulary": {"preprocess": "none"}}}
    check(asking)
    asking["corpora"][CORPUS]["baseline"] = None
    asking["vocabulary"]["preprocess"] = "paper"
    check(asking)
