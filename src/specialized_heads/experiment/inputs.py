"""The files that jobs read, as far as they depend on the configuration: text, trees, and models
that are not trained here. `plan` has those of other models.

A baseline may be given or imported. A given one was trained by another experiment of this project
and has a folder per seed. Any other folder, or a name on the Hugging Face hub, is a model to
import: as the baseline of a corpus (`corpora.*.baseline`), or as the BERT that all tasks fine-tune
(`classification.model`).

`root` is the folder of the project. A stage that does not need a file gets an empty list. Results
are relative to the working directory.
"""

import os
import re
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from specialized_heads.experiment.configuration import (
    FACTS,
    SPLITTING,
    Baseline,
    Classification,
    Experiment,
    Facts,
    enough_heads,
)
from specialized_heads.experiment.sources import Dataset, Glue, glue_files
from specialized_heads.stage import Section, UserError, file_hash, first_line, read_json

# Folders of resources/ with text for learning, and for the second test set of a task; a BERT is
# pre-trained on both.
MATCHED, MISMATCHED = ("tatoeba_en_fr", "tatoeba_en_de"), ("libreoffice_en_ru",)
# what jobs read of a given baseline
GIVEN_FILES = (FACTS, "model.json", "model.safetensors", "source.model", "target.model")
# a folder with one of them is a model to import
MODEL_FILES = ("config.json", "model.json", "card.json")
# suffixes of the files of an imported model
IMPORTED_FILES = (".json", ".safetensors", ".model", ".spm", ".txt")
HUB_NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"  # owner/model
REMEDY = (
    "train the baseline instead: leave out `baseline`, as config/studies/from_scratch.yaml does"
)
# Keys of a training that change its result by rounding alone or, as the cut into micro-batches,
# only as another seed would.
IMMATERIAL = {"micro_batch_tokens", "precision", "log_every", "evaluate_every"}


# Text and trees.


def datasets(experiment: Experiment, corpus: str) -> list[Dataset]:
    """The known datasets that a corpus is read from."""
    values = experiment.corpora[corpus]
    try:
        return values.source.datasets((values.source_language, values.target_language))
    except UserError as error:
        raise UserError(f"corpora.{corpus}.source: {error}") from None


def fetched(experiment: Experiment) -> dict[str, Dataset]:
    """The datasets that are fetched by their address, by the path of their file below the folder of
    downloads."""
    found = [each for corpus in experiment.corpora for each in datasets(experiment, corpus)]
    for task in experiment.tasks.values():
        found += glue_files(task.source.kind)
    return {dataset.file: dataset for dataset in found if dataset.url}


def download_settings(experiment: Experiment, /, *, file: str, **more: Any) -> dict[str, Any]:
    """Address, size and hash of a file, as far as they are known, and `more` settings."""
    dataset = fetched(experiment)[file]
    return {"url": dataset.url, "sha256": dataset.sha256, "bytes": dataset.bytes} | more


def downloaded(experiment: Experiment, files: list[Dataset], *, cards: bool = False) -> list[str]:
    """The files, or the cards beside those that are fetched, which is what the rule declares."""
    folder = experiment.downloads.directory
    return [os.path.join(folder, f.file + ".json" * (cards and bool(f.url))) for f in files]


def corpus_files(
    experiment: Experiment, /, *, corpus: str, resources: str, cards: bool = False, **_: str
) -> list[str]:
    """The files that a corpus is read from, in the order in which its reader takes them; or what to
    wait for, its own and the `cards` of those that are fetched."""
    files = experiment.corpora[corpus].source.files(resources)
    return files + downloaded(experiment, datasets(experiment, corpus), cards=cards)


def task_texts(
    experiment: Experiment, /, *, corpus: str, resources: str, domain: tuple[str, ...], **_: str
) -> list[str]:
    """The text of the embedded corpora of a domain, for a made-up task."""
    made = not isinstance(experiment.tasks[corpus].source, Glue)
    return [f"{resources}/{name}/corpus.parquet" for name in domain if made]


def task_archive(
    experiment: Experiment, /, *, corpus: str, cards: bool = False, **_: str
) -> list[str]:
    """The files of a GLUE task, or what to wait for: the cards of those that are fetched."""
    kind = experiment.tasks[corpus].source.kind
    return downloaded(experiment, glue_files(kind), cards=cards)


def second_set(experiment: Experiment, /, *, corpus: str, instead: str = "", **_: str) -> list[str]:
    """The token ids of a task's second test set, or if it has none those of another set, if one is
    named."""
    name = "second" if experiment.tasks[corpus].source.second else instead
    path = f"results/{experiment.experiment}/{corpus}/corpus/tokens/{name}.safetensors"
    return [path] if name else []


def given_parses(
    experiment: Experiment, /, *, corpus: str, resources: str, **_: str
) -> str | list[str]:
    """The trees in the repository, or the user's own, if that is what the parser's engine reads."""
    parser = experiment.for_corpus(corpus).parser
    if parser.engine == "embedded":
        return f"{resources}/{experiment.corpora[corpus].source.name}/parses.conllu.gz"
    return str(parser.path) if parser.engine == "conllu" else []


def parser_description(
    experiment: Experiment, /, *, corpus: str, resources: str, **_: str
) -> str | list[str]:
    """The description of the trees in the repository, or of the models that parse."""
    engine = experiment.for_corpus(corpus).parser.engine
    if engine == "embedded":
        return f"{resources}/{experiment.corpora[corpus].source.name}/parses.json"
    return f"results/{experiment.experiment}/parser_models.json" if engine == "stanza" else []


def stanza_models(experiment: Experiment) -> list[dict[str, Any]]:
    """Every pipeline of Stanza that some corpus is parsed with, once."""
    pipelines: list[dict[str, Any]] = []
    for name, corpus in experiment.corpora.items():
        parser = experiment.for_corpus(name).parser
        pipeline = {"language": corpus.source_language}
        pipeline |= parser.model_dump(include={"directory", "package", "download"})
        if parser.engine == "stanza" and pipeline not in pipelines:
            pipelines.append(pipeline)
    return pipelines


def stanza_lists(experiment: Experiment) -> list[str]:
    """Hashes of Stanza's lists of models in directories that the user fills; what is downloaded is
    not known yet."""
    filled = [each for each in stanza_models(experiment) if not each["download"]]
    directories = dict.fromkeys(each["directory"] for each in filled if each["directory"])
    lists = [Path(directory).expanduser() / "resources.json" for directory in directories]
    return [file_hash(path) for path in lists if path.is_file()]


def required(experiment: Experiment, *, resources: str, root: str) -> dict[str, str]:
    """The files that no rule makes, and the key that asks for each.

    Snakemake takes a result whose input is missing for an input itself, and would show results of
    another text.
    """
    files = dict.fromkeys(imported_files(experiment, root=root), "classification.model")
    for name, values in experiment.corpora.items():
        key, place = f"corpora.{name}", {"corpus": name, "resources": resources}
        files |= dict.fromkeys(corpus_files(experiment, **place, cards=True), f"{key}.source")
        if trees := given_parses(experiment, **place):
            files[str(trees)] = f"{key}, parser.path"
        asked = {"corpus": name, "root": root}
        if values.baseline:
            names = imported_files(experiment, **asked)
            for seed, file in product(experiment.seeds, GIVEN_FILES):
                names += given_file(experiment, **asked, name=file, seed=str(seed), only="given")
            files |= dict.fromkeys(names, f"{key}.baseline")
    made = set(downloaded(experiment, [*fetched(experiment).values()], cards=True))
    made |= {str(folder / "card.json") for folder in hub_models(experiment, root=root)}
    return {path: key for path, key in files.items() if path not in made}


# Models that are not trained here.


def imported_folder(experiment: Experiment, corpus: str = "", *, root: str | Path) -> Path | None:
    """The folder of the model that a corpus imports, or without a name the tasks; None if they
    import none.

    A model on the hub has a folder below that of downloads, named after it and its revision. BERTs
    on the hub may have names without an owner, such as bert-base-uncased. A `UserError` if there is
    no such folder.
    """
    wanted = experiment.corpora[corpus].baseline if corpus else experiment.classification
    if wanted is None or wanted.model is None:
        return None
    path = _existing(wanted.model, root)
    place = f"corpora.{corpus}.baseline" if corpus else "classification.model"
    if path.is_dir():
        if corpus and any(path.glob(f"seed*/{FACTS}")):
            return None
        if wanted.revision:
            said = f"{place}: {wanted.model} is a folder, which has no revision"
            raise UserError(f"{said}; remove the revision {wanted.revision}")
        return path
    said = f"{place}: there is no folder {wanted.model}"
    if not re.fullmatch(HUB_NAME if corpus else rf"{HUB_NAME}|[\w.-]+", wanted.model):
        remedy = REMEDY if corpus else "remove it to pre-train one"
        hub = "and a model on the hub has a name like owner/model"
        raise UserError(f"{said}, {hub}; check it, or {remedy}")
    # A path such as data/model is not a model on the hub.
    if path.exists() or _existing(wanted.model.split("/")[0], root).is_dir():
        raise UserError(f"{said}; check the path")
    return _hub_folder(experiment, wanted)


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
    baselines = [corpus.baseline for corpus in experiment.corpora.values()]
    return {
        _hub_folder(experiment, wanted): wanted.model_dump(include={"model", "revision"})
        for wanted in (experiment.classification, *baselines)
        if wanted and wanted.model and not _existing(wanted.model, root).is_dir()
    }


def fetch_settings(
    experiment: Experiment, /, *, name: str, root: str | Path, **_: str
) -> dict[str, str | None]:
    """What to fetch from the hub into the folder `name` of downloads."""
    folder = Path(experiment.downloads.directory, "models", name)
    return {"folder": str(folder)} | hub_models(experiment, root=root)[folder]


def imported_files(
    experiment: Experiment, /, *, root: str | Path, corpus: str = "", **_: str
) -> list[str]:
    """The files of the model that a corpus imports; for one on the hub the card of its
    download."""
    folder = imported_folder(experiment, corpus, root=root)
    if folder is None:
        return []
    if folder in hub_models(experiment, root=root):
        return [str(folder / "card.json")]
    files = [path for path in folder.iterdir() if path.suffix in IMPORTED_FILES and path.is_file()]
    # Snakemake would take braces for wildcards; no file of a model has them.
    return sorted(str(path) for path in files if not {*"{}"} & {*path.name})


def given_file(
    experiment: Experiment,
    /,
    *,
    corpus: str,
    name: str,
    root: str | Path,
    seed: str = "",
    only: Literal["given", "imported", ""] = "",
    **_: str,
) -> list[str]:
    """A file of the baseline that a corpus is given or imports; vocabularies do not depend on the
    seed. Nothing for a baseline of another kind than `only`."""
    imported = imported_folder(experiment, corpus, root=root) is not None
    if only and imported != (only == "imported"):
        return []
    if imported:
        return [f"results/{experiment.experiment}/{corpus}/imported/{name}"]
    return [str(_given_folder(experiment, corpus, seed or experiment.seeds[0], root) / name)]


def _given_folder(experiment: Experiment, corpus: str, seed: str | int, root: str | Path) -> Path:
    return _existing(experiment.corpora[corpus].baseline.model, root) / f"seed{seed}"


def check_given(experiment: Experiment, *, root: str | Path) -> None:
    """Raise a `UserError` if a model that is not trained here does not exist or does not fit the
    configuration."""
    imported_folder(experiment, root=root)
    for corpus, values in experiment.corpora.items():
        if values.baseline is None:
            continue
        folder = imported_folder(experiment, corpus, root=root)
        merged = experiment.for_corpus(corpus)
        checkpoints = {"heads.checkpoints": merged.heads.checkpoints}
        if values.prune:
            checkpoints["ablation.moments"] = merged.ablation.moments
        try:
            if asked := [key for key, updates in checkpoints.items() if updates]:
                said = f"a given baseline has no checkpoints; empty {asked[-1]}, or {REMEDY}"
                raise UserError(said)
            if folder:
                _check_imported(experiment, corpus, folder, root=root)
            else:
                _check_trained(experiment, corpus, root=root)
        except UserError as error:
            raise UserError(f"corpora.{corpus}.baseline: {error}") from None


def _check_imported(experiment: Experiment, corpus: str, folder: Path, *, root: str | Path) -> None:
    """Raise a `UserError` if a folder has no model, or the configuration sets what the model
    determines, or cannot do."""
    if (folder / FACTS).is_file():
        said = "is the baseline of one seed; name its parent, with a folder per seed"
        raise UserError(f"{folder} {said}")
    there = folder.is_dir() and folder not in hub_models(experiment, root=root)  # or being fetched
    if there and not any((folder / name).is_file() for name in MODEL_FILES):
        said = f"{folder} holds no given baseline and no model"
        raise UserError(f"{said}; check the path, or {REMEDY}")
    merged, override = experiment.for_corpus(corpus), experiment.corpora[corpus].override
    own = any(imported_folder(experiment, name, root=root) is None for name in experiment.corpora)
    for name in ("vocabulary", "model"):
        # Not the keys that were set: the configuration that a run writes has all keys.
        common = getattr(experiment, name).model_dump(exclude_defaults=True)
        keys = {*override.get(name, ()), *(() if own else common)} - {"dropout", "preprocess"}
        if keys:
            raise UserError(f"an imported model has its own {name}; remove {name}.{min(keys)}")
    for wrong, reads, remedy in (
        (merged.vocabulary.preprocess != "none", "raw text", "vocabulary.preprocess: none"),
        (merged.training.join > 1, "single sentences", "training.join: 1"),
    ):
        if wrong:
            raise UserError(f"an imported model reads {reads}; override {remedy} for {corpus}")


def _check_trained(experiment: Experiment, corpus: str, *, root: str | Path) -> None:
    """Raise a `UserError` if a given baseline lacks a seed or was trained in another way than the
    configuration says."""
    values, merged = experiment.corpora[corpus], experiment.for_corpus(corpus)
    for key in ("revision", "source_tag", "target_tag"):
        if getattr(values.baseline, key) is not None:
            raise UserError(f"given baselines have no {key}; remove it")
    sections = {name: getattr(merged, name) for name in ("vocabulary", "model", "training")}
    sections |= {name: getattr(values, name) for name in SPLITTING}
    for seed in experiment.seeds:
        folder = _given_folder(experiment, corpus, seed, root)
        if not folder.is_dir():
            raise UserError(f"there is no {folder} for seed {seed}; remove the seed, or {REMEDY}")
        try:
            facts = Facts.model_validate(read_json(folder / FACTS))
        except ValidationError as error:
            said = f"{folder / FACTS}: {first_line(error)}"
            raise UserError(f"{said}; store it again with resources/keep_baseline.py") from None
        stored = facts.corpus | facts.settings
        for name, section in sections.items():
            if (key := _difference(section, stored.get(name))) is not None:
                raise UserError(
                    f"{name}{key} differs from that of the baseline in {folder}; set it to the "
                    f"value in {folder / FACTS}, or {REMEDY}"
                )
    if values.prune:
        try:
            enough_heads(merged, whose=corpus)
        except ValueError as error:
            raise UserError(str(error)) from None


def _difference(configured: Any, stored: Any) -> str | None:
    """The first key that differs, as `.key`; "" where the values are no sections; None if nothing
    differs."""
    if not (isinstance(configured, Section) and isinstance(stored, dict)):
        return None if configured == stored else ""
    known = {key: value for key, value in stored.items() if key in type(configured).model_fields}
    try:  # a key that is newer than the baseline had its default
        before = type(configured).model_validate(known)
    except ValidationError:  # of another kind, or written by another version
        return ""
    different = [key for key, value in configured if value != getattr(before, key)]
    return next((f".{key}" for key in different if key not in IMMATERIAL), None)
