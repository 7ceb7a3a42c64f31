"""Folders of models that were trained here: exported models, and given baselines, which are
exported models with facts of their training. Stage `given`: take a baseline instead of training it.

Both kinds hold the weights, both vocabularies and `model.json`, which describes them. A given
baseline also has `baseline.json`, which says what it was trained on and how, the log of its
training, and the logits of a few sentences; its weights are rounded to bf16. It is used only if the
tokens of all splits are those that it was trained and evaluated on, and if it computes the same
logits here. `resources/keep_baseline.py` writes such a folder from a finished experiment.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pydantic
import torch

from specialized_heads import __version__, stage
from specialized_heads.experiment.configuration import FACTS, Facts
from specialized_heads.experiment.sections import Decoding, Mode
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import load, read_tensors, save
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch
from specialized_heads.training.loop import load_data
from specialized_heads.training.objective import evaluate

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
SOURCE, TARGET = "source.model", "target.model"
LOGITS, LOG = "logits.safetensors", "log.jsonl"
EXPORTED, GIVEN = (WEIGHTS, SOURCE, TARGET), (WEIGHTS, SOURCE, TARGET, LOGITS, LOG)
FORMER = {"entities": True, "length_penalty": 1.0}  # keys of earlier descriptions
SPLITS = ("train", "dev", "test", "analysis")
# largest difference of a logit; machines and versions of torch sum in different order
TOLERANCE = 1e-3


class Settings(stage.Section):
    """The part of the description that does not come from the model's own files."""

    experiment: str
    corpus: str
    model: str
    seed: int
    source_language: str
    target_language: str
    preprocess: Mode
    decoding: Decoding


class Scores(stage.Section):
    """Scores on the test set; see `evaluation`."""

    bleu: float
    bleu_low: float
    bleu_high: float
    chrf: float
    p_value: float | None  # None: the baseline itself
    sentences: int
    signature: str


class Card(Settings):
    """The description of a folder."""

    format: Literal[1]
    version: str  # of the package that wrote it
    architecture: Architecture
    parameters: int
    bytes: int  # of the weight file
    scores: Scores | None  # None: a given baseline
    data_hash: str  # of the training and development data
    sha256: dict[str, str]  # of the other files


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = f"cannot be made ({error.strerror}); name another folder"
        raise stage.UserError(f"{path}: {said}") from None


def write_card(
    folder: Path,
    settings: Settings,
    trained: dict[str, Any],
    *,
    files: Iterable[str] = EXPORTED,
    scores: Scores | None = None,
) -> Card:
    """Describe a folder with these files; `trained`: the description beside the model's weights in
    the results."""
    card = Card(
        format=1,
        **settings.model_dump(),
        version=__version__,
        architecture=trained["architecture"],
        parameters=trained["parameters"],
        bytes=(folder / WEIGHTS).stat().st_size,
        scores=scores,
        data_hash=trained["training"]["data_hash"],
        sha256={name: stage.file_hash(folder / name) for name in files},
    )
    stage.write_json(folder / DESCRIPTION, card.model_dump())
    return card


def read_card(folder: Path) -> Card:
    """The description of a folder, which may come from anywhere; anything else is a `UserError`."""
    path = folder / DESCRIPTION
    if not folder.is_dir():
        raise stage.UserError(f"{folder}: no such folder")
    if not path.exists():
        said = "no such file; name the folder of a model that the rule `export` made, or of one "
        said += "given baseline (`specialized-heads analyse` reads published models)"
        raise stage.UserError(f"{path}: {said}")
    if path.is_file() and path.stat().st_size > 1_000_000:
        raise stage.UserError(f"{path}: too large for the description of a model")
    try:
        return Card.model_validate(_without_former(stage.read_json(path)))
    except pydantic.ValidationError as error:
        said = f"not the description of an exported model ({stage.first_line(error)})"
        raise stage.UserError(f"{path}: {said}; the rule `export` makes one") from None


def _without_former(values: Any) -> Any:
    """Leave out the keys in `FORMER` that say what holds now."""
    if not isinstance(values, dict):
        return values
    kept = [item for item in values.items() if item not in FORMER.items()]
    return {key: _without_former(value) for key, value in kept}


def check_files(folder: Path, names: Iterable[str] = EXPORTED) -> Card:
    """The description of a folder; a `UserError` if a file is missing or not the one that it
    describes."""
    card, remedy = read_card(folder), "copy or export the model again"
    for path in (folder / name for name in names):
        if not path.is_file():
            raise stage.UserError(f"{path}: no such file; {remedy}")
        if stage.file_hash(path) != card.sha256.get(path.name):
            raise stage.UserError(f"{path}: not the file that {DESCRIPTION} describes; {remedy}")
    return card


@torch.inference_mode()
def logits(model: Transformer, batch: Batch) -> torch.Tensor:
    """The logits (B, T, V) of a batch."""
    return model.logits(model(batch.source, batch.target_in))


def check_logits(folder: Path, model: Transformer) -> None:
    """Raise a `UserError` if the model computes other logits here than on the machine where it was
    trained."""
    stored = read_tensors(folder / LOGITS)
    batch = Batch(stored["source"], stored["target_in"], stored["target_in"])
    difference = float((logits(model, batch) - stored["logits"]).abs().max())
    if not difference <= TOLERANCE:
        raise stage.UserError(
            f"{folder}: its logits differ here by {difference:.2g}, at most {TOLERANCE:g} is "
            f"accepted; check the installation of torch, or leave out `baseline` to train one "
            f"(config/studies/from_scratch.yaml)"
        )


def check_tokens(folder: Path, facts: Facts, tokens: dict[str, Path]) -> None:
    """Raise a `UserError` if a split is not the one that the baseline was trained or evaluated
    on."""
    for split, path in tokens.items():
        if stage.file_hash(path) != facts.tokens[split]:
            raise stage.UserError(
                f"{path}: not the {split} set of the baseline in {folder}; its source, filters, "
                f"split and vocabulary must be those of {folder / FACTS}, or leave out `baseline` "
                f"to train one (config/studies/from_scratch.yaml)"
            )


def take_imported(files: stage.Files) -> None:
    """Write an imported model as the baseline, and its development loss as the only line of the
    log."""
    prepare_cpu()
    model, data = load(files.weights), load_data(files.train, files.dev)
    training = stage.read_json(files.weights.with_suffix(".json"))["training"]
    training |= {"matmul_precision": "fp32", "data_hash": data.hash}
    save(model, files.output, training=training)
    loss = evaluate(model, data.dev)
    record = dict.fromkeys(("update", "epoch", "tokens"), 0) | {"learning_rate": 0.0}
    stage.write_file(files.records, json.dumps(record | {"loss": loss, "dev_loss": loss}) + "\n")
    stage.log.info("development loss %.3f", loss)


@stage.command("weights", *SPLITS, "output", "records", optional=["facts"])
def given(files: stage.Files) -> None:
    if not files.facts:
        take_imported(files)
        return
    folder, facts = files.facts.parent, Facts.model_validate(stage.read_json(files.facts))
    card, model = check_files(folder, GIVEN), load(folder / WEIGHTS)
    check_logits(folder, model)
    check_tokens(folder, facts, {split: getattr(files, split) for split in SPLITS})
    of_training = {"data_hash": card.data_hash, "matmul_precision": facts.matmul_precision}
    save(model, files.output, training=facts.settings | of_training)
    with stage.atomic(files.records) as temporary:
        shutil.copyfile(folder / LOG, temporary)
    stage.log.info("%s: %.1f hours of training on %s", folder, facts.hours, facts.machine)


stage.no_stage(__name__)
