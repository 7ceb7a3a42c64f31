"""Baselines that an experiment is given (`corpora.*.baseline`): which can be, and their descriptions.

A kept baseline comes from another experiment of this project, with a folder per seed. Any other folder, or a name on the hub, is
a model to import.
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from specialized_heads.experiment.configuration import Experiment
from specialized_heads.stage import Section, UserError, first_line, read_json

DESCRIPTION = "baseline.json"
MODEL_FILES = ("config.json", "model.json", "card.json")  # a folder with one of them is a model to import
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")  # owner/model
# What decides the splits of a corpus.
CORPUS = ("source", "source_language", "target_language", "filters", "split")
# Keys of a training that change its result by rounding alone or, as the cut into micro-batches, only as another seed would.
IMMATERIAL = {"micro_batch_tokens", "precision", "log_every", "evaluate_every"}


class Kept(Section):
    """What a kept baseline was made from."""

    format: Literal[1]
    version: str  # of this package
    corpus: dict[str, Any]  # its keys `CORPUS`, as configured
    settings: dict[str, Any]  # seed, vocabulary, model and training, as configured
    architecture: dict[str, Any]  # as in model.json
    tokens: dict[str, str]  # SHA-256 of the token file of each split
    data_hash: str  # of training and development set, as in model.json
    sha256: dict[str, str]  # of the other files of the folder
    hours: float  # of training
    machine: str  # that trained it
    matmul_precision: Literal["bf16", "fp32"]  # that it was trained with


def read_kept(folder: Path) -> Kept:
    """Read the description of a kept baseline; a `UserError` if it is missing or invalid."""
    path = folder / DESCRIPTION
    try:
        return Kept.model_validate(read_json(path))
    except ValidationError as error:
        raise UserError(f"{path}: {first_line(error)}; restore the folder from the repository") from None


def imported_folder(experiment: Experiment, corpus: str, *, root: str | Path) -> Path | None:
    """The folder of the model that a corpus imports as its baseline; None if it imports none.

    A model on the hub has a folder below that of downloads, named after it and its revision.
    """
    given = experiment.corpora[corpus].baseline
    if given is None:
        return None
    path = _existing(given.model, root)
    if path.is_dir():
        return None if any(path.glob(f"seed*/{DESCRIPTION}")) else path
    if not HUB_NAME.fullmatch(given.model):
        return None
    # A path such as data/model is not a model on the hub.
    if path.exists() or _existing(given.model.split("/")[0], root).is_dir():
        raise UserError(f"corpora.{corpus}.baseline: there is no folder {given.model}; check the path")
    return hub_folder(experiment, given.model, given.revision)


def _existing(name: str, root: str | Path) -> Path:
    """A path that is relative to the working directory or, if there is no such file, to the project."""
    path = Path(name)
    return path if path.exists() else Path(root, path)


def hub_folder(experiment: Experiment, model: str, revision: str | None) -> Path:
    """Where a model on the hub is fetched to."""
    name = model.replace("/", "--") + (f"@{revision.replace('/', '--')}" if revision else "")
    return Path(experiment.downloads.directory, "models", name)


def bert_folder(experiment: Experiment, *, root: str | Path) -> Path:
    """The folder of the BERT that the tasks fine-tune.

    Names without an owner, such as bert-base-uncased, are models of the hub too; any other name is a `UserError`.
    """
    bert = experiment.classification
    assert bert and bert.model
    path = _existing(bert.model, root)
    if path.is_dir():
        return path
    if not (HUB_NAME.fullmatch(bert.model) or re.fullmatch(r"[\w.-]+", bert.model)):
        raise UserError(f"classification.model: there is no folder {bert.model}; check the path")
    return hub_folder(experiment, bert.model, bert.revision)


def given_folder(experiment: Experiment, corpus: str, seed: int, *, root: str | Path) -> Path:
    """The folder of the baseline that a corpus is given for a seed."""
    given = experiment.corpora[corpus].baseline
    assert given
    return _existing(given.model, root) / f"seed{seed}"


def check_given(experiment: Experiment, *, root: Path) -> None:
    """Raise a `UserError` if a given model does not exist or was trained in another way than the configuration says."""
    if experiment.classification and experiment.classification.model:
        bert_folder(experiment, root=root)
    remedy = "train the baseline instead: leave out `baseline`, as config/studies/from_scratch.yaml does"
    for corpus, values in experiment.corpora.items():
        if values.baseline is None:
            continue
        merged, place = experiment.for_corpus(corpus), f"corpora.{corpus}.baseline"
        moments = merged.ablation.moments if values.prune else []
        if moments or merged.heads.checkpoints:
            key = "ablation.moments" if moments else "heads.checkpoints"
            raise UserError(f"{place}: a given baseline has no checkpoints; empty {key}, or {remedy}")
        if model := imported_folder(experiment, corpus, root=root):
            if model.is_dir() and not any((model / name).is_file() for name in MODEL_FILES):
                if (model / DESCRIPTION).is_file():
                    raise UserError(
                        f"{place}: {model} is the baseline of one seed; name its parent, with a folder per seed"
                    )
                raise UserError(f"{place}: {model} holds no kept baseline and no model; check the path, or {remedy}")
            _check_imported(experiment, corpus, place)
            continue
        given = values.baseline
        if not _existing(given.model, root).is_dir():
            said = f"there is no folder {given.model}, and a model on the hub has a name like owner/model"
            raise UserError(f"{place}: {said}; check it, or {remedy}")
        if keys := [key for key in ("revision", "source_tag", "target_tag") if getattr(given, key) is not None]:
            raise UserError(f"{place}.{keys[0]}: kept baselines have none; remove it")
        sections = {"vocabulary": merged.vocabulary, "model": merged.model, "training": merged.training}
        sections |= {name: getattr(values, name) for name in CORPUS}
        for seed in experiment.seeds:
            folder = given_folder(experiment, corpus, seed, root=root)
            if not folder.is_dir():
                raise UserError(f"{place}: there is no {folder} for seed {seed}; remove the seed, or {remedy}")
            kept = read_kept(folder)
            stored = kept.corpus | kept.settings
            for name, section in sections.items():
                if (key := _difference(section, stored.get(name))) is not None:
                    raise UserError(
                        f"{place}: {name}{key} differs from that of the baseline in {folder}; set it to the value in "
                        f"{folder / DESCRIPTION}, or {remedy}"
                    )


def _check_imported(experiment: Experiment, corpus: str, place: str) -> None:
    """Raise a `UserError` if the configuration sets what an imported model determines itself, or cannot do."""
    merged, override = experiment.for_corpus(corpus), experiment.corpora[corpus].override
    others = [values for values in experiment.corpora.values() if values.baseline is None]
    for name in ("vocabulary", "model"):
        # Not the keys that were set: the configuration that a run writes has all keys.
        common = getattr(experiment, name).model_dump(exclude_defaults=True)
        keys = set(override.get(name, ())) | (set() if others else common.keys())
        if keys := keys - {"dropout"}:
            raise UserError(f"{place}: an imported model has its own {name}; remove {name}.{min(keys)}")
    if merged.vocabulary.preprocess != "none":
        raise UserError(f"{place}: an imported model reads raw text; override vocabulary.preprocess: none for {corpus}")
    if merged.training.join > 1:
        raise UserError(f"{place}: an imported model reads single sentences; override training.join: 1 for {corpus}")


def _difference(configured: Any, stored: Any) -> str | None:
    """The first key that differs, as `.key`; "" where the values are no sections; None if nothing differs."""
    if not isinstance(configured, Section):
        return None if configured == stored else ""
    known = {key: value for key, value in (stored or {}).items() if key in type(configured).model_fields}
    try:  # a key that is newer than the baseline had its default
        before = type(configured).model_validate(known)
    except ValidationError:  # of another kind, or written by another version
        return ""
    different = [f".{key}" for key, value in configured if key not in IMMATERIAL and value != getattr(before, key)]
    return different[0] if different else None
