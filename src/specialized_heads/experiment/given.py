"""Models that an experiment does not train itself: where their files are, and whether they fit its
configuration.

A given baseline was trained by another experiment of this project and has a folder per seed. Any
other folder, or a name on the Hugging Face hub, is a model to import: as the baseline of a corpus
(`corpora.*.baseline`), or as the BERT that all tasks fine-tune (`classification.model`). Functions
that take a corpus are about this BERT where the name is empty. `root` is the folder of the project.
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from specialized_heads.experiment.classification import Classification
from specialized_heads.experiment.configuration import Baseline, Experiment
from specialized_heads.stage import Section, UserError, first_line, read_json

DESCRIPTION = "baseline.json"
# that jobs read of a given baseline
FILES = (DESCRIPTION, "model.safetensors", "bpe.source.model", "bpe.target.model")
# a folder with one of them is a model to import
MODEL_FILES = ("config.json", "model.json", "card.json")
# suffixes of the files of an imported model
IMPORTED_FILES = (".json", ".safetensors", ".model", ".spm", ".txt")
REMEDY = (
    "train the baseline instead: leave out `baseline`, as config/studies/from_scratch.yaml does"
)
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")  # owner/model
# What decides the splits of a corpus.
CORPUS = ("source", "source_language", "target_language", "filters", "split")
# Keys of a training that change its result by rounding alone or, as the cut into micro-batches,
# only as another seed would.
IMMATERIAL = {"micro_batch_tokens", "precision", "log_every", "evaluate_every"}


class Given(Section):
    """What a given baseline was made from."""

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


def read_given(folder: Path) -> Given:
    """Read the description of a given baseline; a `UserError` if it is missing or invalid."""
    path = folder / DESCRIPTION
    try:
        return Given.model_validate(read_json(path))
    except ValidationError as error:
        raise UserError(
            f"{path}: {first_line(error)}; restore the folder from the repository"
        ) from None


def imported_folder(experiment: Experiment, corpus: str = "", *, root: str | Path) -> Path | None:
    """The folder of the model that a corpus imports; None if it imports none.

    A model on the hub has a folder below that of downloads, named after it and its revision. BERTs
    on the hub may have names without an owner, such as bert-base-uncased. A `UserError` if there is
    no such folder.
    """
    wanted = _wanted(experiment, corpus)
    if wanted is None or wanted.model is None:
        return None
    path = _existing(wanted.model, root)
    if path.is_dir():
        return None if any(path.glob(f"seed*/{DESCRIPTION}")) else path
    place = f"corpora.{corpus}.baseline" if corpus else "classification.model"
    if not (
        HUB_NAME.fullmatch(wanted.model) or (not corpus and re.fullmatch(r"[\w.-]+", wanted.model))
    ):
        said = (
            f"there is no folder {wanted.model}, and a model on the hub has a name like owner/model"
        )
        raise UserError(
            f"{place}: {said}; check it, or {REMEDY if corpus else 'remove it to pre-train one'}"
        )
    # A path such as data/model is not a model on the hub.
    if path.exists() or _existing(wanted.model.split("/")[0], root).is_dir():
        raise UserError(f"{place}: there is no folder {wanted.model}; check the path")
    return _hub_folder(experiment, wanted)


def _wanted(experiment: Experiment, corpus: str) -> Baseline | Classification | None:
    return experiment.corpora[corpus].baseline if corpus else experiment.classification


def _existing(name: str, root: str | Path) -> Path:
    """A path that is relative to the working directory or, if there is no such file, to the
    project."""
    path = Path(name)
    return path if path.exists() else Path(root, path)


def _hub_folder(experiment: Experiment, wanted: Baseline | Classification) -> Path:
    name = "@".join(part.replace("/", "--") for part in (wanted.model, wanted.revision) if part)
    return Path(experiment.downloads.directory, "models", name)


def hub_models(experiment: Experiment, *, root: str | Path) -> dict[Path, dict[str, str | None]]:
    """Name and revision of each model that is fetched from the hub, by its folder."""
    models = [(_wanted(experiment, corpus), corpus) for corpus in ("", *experiment.corpora)]
    return {
        _hub_folder(experiment, wanted): wanted.model_dump(include={"model", "revision"})
        for wanted, corpus in models
        if wanted
        and wanted.model
        and imported_folder(experiment, corpus, root=root) == _hub_folder(experiment, wanted)
    }


def imported_files(
    experiment: Experiment, /, *, root: str | Path, corpus: str = "", **_: str
) -> list[str]:
    """The files of the model that a corpus imports; for one on the hub the card of its download.
    None if it imports none."""
    folder = imported_folder(experiment, corpus, root=root)
    if folder is None:
        return []
    if folder in hub_models(experiment, root=root):
        return [str(folder / "card.json")]
    return sorted(str(path) for path in folder.iterdir() if path.suffix in IMPORTED_FILES)


def fetch_settings(
    experiment: Experiment, /, *, name: str, root: str | Path, **_: str
) -> dict[str, str | None]:
    """What to fetch from the hub into the folder `name`."""
    return hub_models(experiment, root=root)[Path(experiment.downloads.directory, "models", name)]


def given_folder(experiment: Experiment, corpus: str, seed: int, *, root: str | Path) -> Path:
    given = experiment.corpora[corpus].baseline
    assert given
    return _existing(given.model, root) / f"seed{seed}"


def given_file(
    experiment: Experiment,
    /,
    *,
    corpus: str,
    name: str,
    root: str | Path,
    seed: str | None = None,
    **_: str,
) -> str:
    """A file of the baseline that a corpus is given or imports. Vocabularies do not depend on the
    seed."""
    if imported_folder(experiment, corpus, root=root):
        return (
            f"results/{experiment.experiment}/{corpus}/imported/{name.replace('baseline', 'model')}"
        )
    number = experiment.seeds[0] if seed is None else int(seed)
    return str(given_folder(experiment, corpus, number, root=root) / name)


def imported_file(
    experiment: Experiment, /, *, corpus: str, name: str, root: str | Path, **_: str
) -> list[str]:
    """A file of an imported model; none if the baseline of the corpus is not imported."""
    imported = imported_folder(experiment, corpus, root=root)
    return [given_file(experiment, corpus=corpus, name=name, root=root)] if imported else []


def check_given(experiment: Experiment, *, root: str | Path) -> None:
    """Raise a `UserError` if a model that is not trained here does not exist or does not fit the
    configuration."""
    imported_folder(experiment, root=root)
    for corpus, values in experiment.corpora.items():
        if values.baseline is None:
            continue
        merged, place = experiment.for_corpus(corpus), f"corpora.{corpus}.baseline"
        moments = merged.ablation.moments if values.prune else []
        if moments or merged.heads.checkpoints:
            key = "ablation.moments" if moments else "heads.checkpoints"
            raise UserError(
                f"{place}: a given baseline has no checkpoints; empty {key}, or {REMEDY}"
            )
        if folder := imported_folder(experiment, corpus, root=root):
            _check_imported(experiment, corpus, folder, place)
        else:
            _check_trained(experiment, corpus, place, root=root)


def _check_imported(experiment: Experiment, corpus: str, folder: Path, place: str) -> None:
    """Raise a `UserError` if a folder has no model, or the configuration sets what the model
    determines, or cannot do."""
    if folder.is_dir() and not any((folder / name).is_file() for name in MODEL_FILES):
        if (folder / DESCRIPTION).is_file():
            raise UserError(
                f"{place}: {folder} is the baseline of one seed; name its parent, with a folder "
                f"per seed"
            )
        raise UserError(
            f"{place}: {folder} holds no given baseline and no model; check the path, or {REMEDY}"
        )
    merged, override = experiment.for_corpus(corpus), experiment.corpora[corpus].override
    others = [values for values in experiment.corpora.values() if values.baseline is None]
    for name in ("vocabulary", "model"):
        # Not the keys that were set: the configuration that a run writes has all keys.
        common = getattr(experiment, name).model_dump(exclude_defaults=True)
        keys = set(override.get(name, ())) | (set() if others else common.keys())
        if keys := keys - {"dropout"}:
            raise UserError(
                f"{place}: an imported model has its own {name}; remove {name}.{min(keys)}"
            )
    if merged.vocabulary.preprocess != "none":
        raise UserError(
            f"{place}: an imported model reads raw text; override vocabulary.preprocess: none for "
            f"{corpus}"
        )
    if merged.training.join > 1:
        raise UserError(
            f"{place}: an imported model reads single sentences; override training.join: 1 for "
            f"{corpus}"
        )


def _check_trained(experiment: Experiment, corpus: str, place: str, *, root: str | Path) -> None:
    """Raise a `UserError` if a given baseline lacks a seed or was trained in another way than the
    configuration says."""
    values, merged = experiment.corpora[corpus], experiment.for_corpus(corpus)
    for key in ("revision", "source_tag", "target_tag"):
        if getattr(values.baseline, key) is not None:
            raise UserError(f"{place}.{key}: given baselines have none; remove it")
    sections = {name: getattr(merged, name) for name in ("vocabulary", "model", "training")}
    sections |= {name: getattr(values, name) for name in CORPUS}
    for seed in experiment.seeds:
        folder = given_folder(experiment, corpus, seed, root=root)
        if not folder.is_dir():
            raise UserError(
                f"{place}: there is no {folder} for seed {seed}; remove the seed, or {REMEDY}"
            )
        given = read_given(folder)
        stored = given.corpus | given.settings
        for name, section in sections.items():
            if (key := _difference(section, stored.get(name))) is not None:
                raise UserError(
                    f"{place}: {name}{key} differs from that of the baseline in {folder}; set it "
                    f"to the value in "
                    f"{folder / DESCRIPTION}, or {REMEDY}"
                )


def _difference(configured: Any, stored: Any) -> str | None:
    """The first key that differs, as `.key`; "" where the values are no sections; None if nothing
    differs."""
    if not isinstance(configured, Section):
        return None if configured == stored else ""
    known = {
        key: value for key, value in (stored or {}).items() if key in type(configured).model_fields
    }
    try:  # a key that is newer than the baseline had its default
        before = type(configured).model_validate(known)
    except ValidationError:  # of another kind, or written by another version
        return ""
    different = [
        f".{key}"
        for key, value in configured
        if key not in IMMATERIAL and value != getattr(before, key)
    ]
    return different[0] if different else None
