"""The input files of stages that depend on the configuration, and the files that the workflow
fetches.

A stage that does not need a file gets an empty list. Results are relative to the working directory.
"""

import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from specialized_heads.experiment.classification import Glue
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.given import (
    FILES,
    given_file,
    hub_models,
    imported_files,
    imported_folder,
)
from specialized_heads.experiment.names import (
    CONTINUED,
    CONTROLS,
    Name,
    Run,
    Target,
    models,
    paths,
    viewed,
)
from specialized_heads.experiment.sources import Dataset, glue_files
from specialized_heads.stage import UserError, file_hash

MODEL = "{corpus}/models/{model}/seed{seed}/"
HEADS = "{corpus}/heads/{model}/seed{seed}.parquet"
PAGE = "viewer/{corpus}/{model}/seed{seed}.html"


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
    by_file: dict[str, Dataset] = {}
    for corpus in experiment.corpora:
        for dataset in datasets(experiment, corpus):
            if dataset.url:
                by_file[dataset.file] = dataset
    for task in experiment.tasks.values():
        if isinstance(task.source, Glue):
            by_file |= {dataset.file: dataset for dataset in glue_files(task.source.kind)}
    return by_file


def download_settings(experiment: Experiment, /, *, file: str, **more: Any) -> dict[str, Any]:
    """Address, size and hash of a file, as far as they are known, and `more` settings."""
    dataset = fetched(experiment)[file]
    return {"url": dataset.url, "sha256": dataset.sha256, "bytes": dataset.bytes} | more


def corpus_files(experiment: Experiment, /, *, corpus: str, resources: str, **_: str) -> list[str]:
    """The files that a corpus is read from, in the order in which its reader takes them."""
    downloads = [
        os.path.join(experiment.downloads.directory, each.file)
        for each in datasets(experiment, corpus)
    ]
    return experiment.corpora[corpus].source.files(resources) + downloads


def corpus_cards(experiment: Experiment, /, *, corpus: str, resources: str, **_: str) -> list[str]:
    """The files that a corpus waits for: its own, or for a fetched one the card beside it, which is
    what the rule declares."""
    cards = {os.path.join(experiment.downloads.directory, file) for file in fetched(experiment)}
    files = corpus_files(experiment, corpus=corpus, resources=resources)
    return [f"{file}.json" if file in cards else file for file in files]


def required(experiment: Experiment, *, resources: str, root: str) -> dict[str, str]:
    """The files that no rule makes, and the key that asks for each.

    Snakemake takes a result whose input is missing for an input itself, and would show results of
    another text.
    """
    files = dict.fromkeys(imported_files(experiment, root=root), "classification.model")
    for name, values in experiment.corpora.items():
        key, place = f"corpora.{name}", {"corpus": name, "resources": resources}
        files |= dict.fromkeys(corpus_cards(experiment, **place), f"{key}.source")
        if trees := given_parses(experiment, **place):
            files[str(trees)] = f"{key}, parser.path"
        if imported_folder(experiment, name, root=root):
            files |= dict.fromkeys(
                imported_files(experiment, corpus=name, root=root), f"{key}.baseline"
            )
        elif values.baseline:
            for seed, file in product(map(str, experiment.seeds), FILES):
                files[given_file(experiment, corpus=name, name=file, root=root, seed=seed)] = (
                    f"{key}.baseline"
                )
    made = {
        os.path.join(experiment.downloads.directory, f"{file}.json") for file in fetched(experiment)
    }
    made |= {str(folder / "card.json") for folder in hub_models(experiment, root=root)}
    return {path: key for path, key in files.items() if path not in made}


def given_parses(
    experiment: Experiment, /, *, corpus: str, resources: str, **_: str
) -> str | list[str]:
    """The trees in the repository, or the user's own, if that is what the parser's engine reads."""
    parser = experiment.for_corpus(corpus).parser
    match parser.engine:
        case "embedded":
            return f"{resources}/{experiment.corpora[corpus].source.name}/parses.conllu.gz"
        case "conllu":
            return str(parser.path)
        case _:
            return []


def parser_description(
    experiment: Experiment, /, *, corpus: str, resources: str, **_: str
) -> str | list[str]:
    """The description of the trees in the repository, or of the models that parse."""
    match experiment.for_corpus(corpus).parser.engine:
        case "embedded":
            return f"{resources}/{experiment.corpora[corpus].source.name}/parses.json"
        case "stanza":
            return f"results/{experiment.experiment}/parser_models.json"
        case _:
            return []


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
    pipelines = stanza_models(experiment)
    directories = dict.fromkeys(
        each["directory"] for each in pipelines if each["directory"] and not each["download"]
    )
    lists = [Path(directory).expanduser() / "resources.json" for directory in directories]
    return [file_hash(path) for path in lists if path.is_file()]


def baseline_translation(
    experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str
) -> list[str]:
    """The translation that a model's is compared with; none for the baseline itself."""
    compared = [] if model == "baseline" else [Run(corpus, "baseline", int(seed))]
    return paths(experiment, MODEL + "translation.txt", compared)


def counterpart_translation(
    experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str
) -> list[str]:
    """The translation that a model's is also compared with: that of λ 0 with its scope, for a
    control of the pruned model, and for a criterion of the heads that gates keep."""
    name, other = Name.parse(model), model
    if name.criterion:
        other = str(replace(name, criterion="gates"))
    elif name.kind in ("pruned", *CONTROLS):
        other = str(
            Name("pruned", name.scope, Target(lam=0.0) if name.kind == "pruned" else name.target)
        )
    exists = other != model and other in models(experiment, corpus, Name.parse(other).kind)
    return paths(
        experiment, MODEL + "translation.txt", [Run(corpus, other, int(seed))] if exists else []
    )


def first_part(
    experiment: Experiment,
    /,
    *,
    corpus: str,
    control: str,
    scope: str,
    target: str,
    seed: str,
    **_: str,
) -> str:
    """The model that a control in two decays continues to train."""
    model = str(Name(CONTINUED[control], scope, Target.parse(target)))
    return paths(experiment, MODEL + "model.safetensors", [Run(corpus, model, int(seed))])[0]


def ranking(
    experiment: Experiment, /, *, corpus: str, criterion: str, seed: str, **_: str
) -> list[str]:
    """The table of the baseline whose heads a criterion ranks; none for gates and random choice."""
    pattern = {
        "importance": "{corpus}/importance/{model}/seed{seed}.parquet",
        "relevance": HEADS,
        "confidence": HEADS,
    }
    tables = [Run(corpus, "baseline", int(seed))] if criterion in pattern else []
    return paths(experiment, pattern.get(criterion, ""), tables)


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
    source = experiment.tasks[corpus].source
    if not isinstance(source, Glue):
        return []
    ending = ".json" if cards else ""
    return [
        os.path.join(experiment.downloads.directory, each.file + ending)
        for each in glue_files(source.kind)
    ]


def second_set(experiment: Experiment, /, *, corpus: str, instead: str = "", **_: str) -> list[str]:
    """The token ids of a task's second test set, or if it has none those of another set, if one is
    named."""
    name = "second" if experiment.tasks[corpus].source.second else instead
    return (
        [f"results/{experiment.experiment}/{corpus}/corpus/tokens/{name}.safetensors"]
        if name
        else []
    )


def viewed_files(experiment: Experiment, /, *, pattern: str, **_: str) -> list[str]:
    """One file of each model that has a page in the viewer."""
    return paths(experiment, pattern, viewed(experiment))
