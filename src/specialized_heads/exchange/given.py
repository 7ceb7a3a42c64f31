"""Stage: take a baseline that was trained before, in place of training one.

An imported model is taken as it is, with its loss on the development set for a log.

A given baseline is a folder per seed: weights in bf16, both BPE models, the log of its training,
the logits of a few sentences, and `baseline.json`, which says what it was trained on and how. It is
used only if everything that determined its training is the same (the tokens of all splits, the
vocabularies and the architecture), and if it computes the same logits here as on the machine where
it was trained. `resources/keep_baseline.py` writes such a folder from a finished experiment.
"""

import json
import shutil
from pathlib import Path

import torch

from specialized_heads import stage
from specialized_heads.experiment.given import DESCRIPTION, Given, read_given
from specialized_heads.model.checkpoint import architecture_in, assemble, load, read_tensors, save
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch
from specialized_heads.training.loop import load_data
from specialized_heads.training.objective import evaluate

SPLITS = ("train", "dev", "test", "analysis")
WEIGHTS, LOGITS, LOG = "model.safetensors", "logits.safetensors", "log.jsonl"
VOCABULARIES = ("bpe.source.model", "bpe.target.model")
# largest difference of a logit; machines and versions of torch sum in different order
TOLERANCE = 1e-3


def check_files(folder: Path, about: Given) -> None:
    """Raise a `UserError` if a file of the folder is missing or differs from its hash."""
    for name, expected in about.sha256.items():
        path = folder / name
        if not path.is_file() or stage.file_hash(path) != expected:
            raise stage.UserError(
                f"{path}: missing or changed; restore the folder from the repository"
            )


def check_tokens(folder: Path, about: Given, tokens: dict[str, Path]) -> None:
    """Raise a `UserError` if a split is not the one that the baseline was trained or evaluated
    on."""
    for split, path in tokens.items():
        if stage.file_hash(path) != about.tokens[split]:
            raise stage.UserError(
                f"{path}: not the {split} set of the baseline in {folder}; its source, filters, "
                f"split and vocabulary must "
                f"be those of {folder / DESCRIPTION}, or leave out `baseline` to train one "
                f"(config/studies/from_scratch.yaml)"
            )


@torch.inference_mode()
def logits(model: Transformer, batch: Batch) -> torch.Tensor:
    """The logits (B, T, V) of a batch."""
    return model.logits(model(batch.source, batch.target_in))


def check_logits(folder: Path, model: Transformer) -> None:
    """Raise a `UserError` if the model computes other logits here than on the machine where it was
    trained."""
    stored = read_tensors(folder / LOGITS)
    try:
        batch = Batch(stored["source"], stored["target_in"], stored["target_in"])
        difference = float((logits(model, batch) - stored["logits"]).abs().max())
    except (KeyError, IndexError, RuntimeError):
        raise stage.UserError(
            f"{folder / LOGITS}: not of this model; restore the folder from the repository"
        ) from None
    if not difference <= TOLERANCE:
        raise stage.UserError(
            f"{folder}: its logits differ here by {difference:.2g}, at most {TOLERANCE:g} is "
            f"accepted; check the installation "
            f"of torch, or leave out `baseline` to train one (config/studies/from_scratch.yaml)"
        )


def load_given(folder: Path) -> tuple[Given, Transformer]:
    """A given baseline and its description, after all checks that need no corpus."""
    about = read_given(folder)
    check_files(folder, about)
    tensors = {name: tensor.float() for name, tensor in read_tensors(folder / WEIGHTS).items()}
    files = {"weights": folder / WEIGHTS, "like": folder / DESCRIPTION}
    remedy = "restore the folder from the repository"
    architecture = architecture_in(files["like"], vars(about), remedy=remedy)
    model = assemble(architecture, tensors, **files, remedy=remedy).eval()
    check_logits(folder, model)
    return about, model


def take_imported(weights: Path, train: Path, dev: Path, *, output: Path, records: Path) -> None:
    """Write an imported model as the baseline, and its development loss as the only line of the
    log."""
    prepare_cpu()
    model, data = load(weights), load_data(train, dev)
    training = stage.read_json(weights.with_suffix(".json"))["training"]
    save(model, output, training={**training, "matmul_precision": "fp32", "data_hash": data.hash})
    loss = evaluate(model, data.dev)
    record = {
        "update": 0,
        "epoch": 0,
        "tokens": 0,
        "learning_rate": 0.0,
        "loss": loss,
        "dev_loss": loss,
    }
    stage.write_file(records, json.dumps(record) + "\n")
    stage.log.info("development loss %.3f", loss)


@stage.command("given", *SPLITS, "output", "records")
def main(files: stage.Files) -> None:
    folder = files.given.parent
    if files.given.name != DESCRIPTION:
        take_imported(
            folder / WEIGHTS, files.train, files.dev, output=files.output, records=files.records
        )
        return
    about, model = load_given(folder)
    check_tokens(folder, about, {split: getattr(files, split) for split in SPLITS})
    training = {**about.settings, **about.model_dump(include={"matmul_precision", "data_hash"})}
    save(model, files.output, training=training)
    with stage.atomic(files.records) as temporary:
        shutil.copyfile(folder / LOG, temporary)
    stage.log.info("%s: %.1f hours of training on %s", folder, about.hours, about.machine)
