"""A baseline that is kept and given to another experiment: the same model, or a clear refusal."""

import json
import runpy
from pathlib import Path

import pytest
import torch

from specialized_heads.experiment.kept import DESCRIPTION
from specialized_heads.model.checkpoint import load, save, write_tensors
from specialized_heads.stage import UserError, file_hash, write_json
from specialized_heads.training import given
from specialized_heads.training.given import SPLITS, check_tokens, load_kept

keep = runpy.run_path(str(Path(__file__).parents[2] / "resources" / "keep_baseline.py"))["keep"]
TRAINING = {"seed": 1, "vocabulary": {"source": 20}, "model": {"layers": 2}, "training": {"updates": 3}}


@pytest.fixture
def results(tmp_path: Path, tiny_model, token_file, sentences) -> Path:
    """The results of an experiment for one corpus, as far as a baseline is kept from them."""
    corpus = tmp_path / "corpus"
    (corpus / "tokens").mkdir(parents=True)
    for number, split in enumerate(SPLITS):
        token_file(split, *sentences(12, seed=number)).rename(corpus / "tokens" / f"{split}.safetensors")
    for name in given.VOCABULARIES:
        (corpus / name).write_bytes(name.encode())
    trained = tmp_path / "models" / "baseline" / "seed1"
    trained.mkdir(parents=True)
    save(tiny_model(), trained / given.WEIGHTS, training={**TRAINING, "data_hash": "hash", "matmul_precision": "fp32"})
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
        load_kept(kept)
    return str(error.value)


def test_the_stage_gives_the_kept_model_rounded_to_bf16(results: Path, kept: Path, call) -> None:
    files = {"given": kept / DESCRIPTION, "output": results / "m.safetensors", "records": results / "log.jsonl"}
    call(given, **files, **tokens(results))

    original = load(results / "models/baseline/seed1" / given.WEIGHTS)
    pairs = zip(original.named_parameters(), load(files["output"]).parameters(), strict=True)
    for (name, weight), kept_weight in pairs:
        assert torch.equal(weight.bfloat16().float(), kept_weight), name
    description = json.loads((results / "m.json").read_text(encoding="utf-8"))
    assert description["training"]["training"] == TRAINING["training"]
    assert files["records"].read_bytes() == (kept / given.LOG).read_bytes()


@pytest.mark.parametrize("split", SPLITS)
def test_another_split_is_refused_by_name(results: Path, kept: Path, split: str, token_file, sentences) -> None:
    other = tokens(results) | {split: token_file("other", *sentences(12, seed=99))}
    with pytest.raises(UserError, match=f"not the {split} set of the baseline.*from_scratch"):
        check_tokens(kept, load_kept(kept)[0], other)


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
    description = json.loads((kept / DESCRIPTION).read_text(encoding="utf-8"))
    description["sha256"][given.WEIGHTS] = file_hash(kept / given.WEIGHTS)
    write_json(kept / DESCRIPTION, description)
    assert "logits differ here by" in refused(kept)


def test_a_description_of_something_else_is_refused(kept: Path) -> None:
    write_json(kept / DESCRIPTION, {"format": 2})
    assert "baseline.json: " in refused(kept)
