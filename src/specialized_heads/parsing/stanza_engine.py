"""Trees from Stanza: one tree per analysis sentence, with the character offsets of its words in
that sentence.

Sentences are never split (`tokenize_no_ssplit`), because relations are counted within the
translation model's sentences. Since release 1.15, these processors open every file with
`torch.load(weights_only=True)`, which runs no code from it.

As a stage: download the models that an experiment needs, in one job before any corpus is parsed.
Parse jobs run concurrently, possibly on cluster nodes without a network; they only load models from
disk. The manifest has the hash of each file.
"""

from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from specialized_heads import stage
from specialized_heads.languages import without_region
from specialized_heads.parsing.words import Word, word_spans

with stage.optional("stanza"):
    import stanza
    from stanza.resources.common import (
        DEFAULT_MODEL_DIR,
        download_resources_json,
        load_resources_json,
    )

PROCESSORS = ("tokenize", "pos", "lemma", "depparse")  # Stanza adds `mwt` where the package has it
BATCH = 100  # sentences per call: enough to fill batches, few enough for the progress bar to move


class Models(stage.Section):
    """One pipeline: keys of `parser`, and the language of a corpus."""

    language: str
    directory: str | None
    package: str
    download: bool


class Settings(stage.Section):
    models: list[Models] = Field(min_length=1)


def load_pipeline(
    *, language: str, directory: str | None, package: str, download: bool = False
) -> stanza.Pipeline:
    """Load a pipeline from disk; a `UserError` if there are no such models, or they are damaged.

    A region ("pt_BR") is ignored if Stanza has no models for it. `directory`: None for Stanza's
    own. `download`: fetch what is missing; otherwise the network is not used.
    """
    folder = str(Path(directory).expanduser()) if directory else DEFAULT_MODEL_DIR
    what = f"Stanza models for {language!r}, package {package!r}, in {folder}"
    for method in (None, "reuse_resources") if download else (None,):
        if method:
            stage.log.info("fetching %s", what)
        try:
            return _build(language, folder, package, method=method)
        except Exception as error:  # of a damaged model or of the network: they share no base class
            problem = error
    failed = "They could not be fetched. " if download else ""
    reason = (str(problem).strip() or type(problem).__name__).splitlines()[0].rstrip(". ")
    options = f"model_dir='{folder}', package='{package}', processors='{','.join(PROCESSORS)}'"
    code = without_region(language)
    with suppress(Exception):  # there may be no list, or a damaged one
        code = _code(language, known=load_resources_json(folder))
    download_it = f"import stanza; stanza.download('{code}', {options})"
    raise stage.UserError(
        f"no {what}: {reason}. {failed}Fetch them where there is a network (python -c "
        f'"{download_it}"), and check parser.directory, package and download; or parse English '
        f"text without them by resources/make_parses.py (docs/parsing.md)"
    ) from problem


def _build(language: str, folder: str, package: str, *, method: str | None) -> stanza.Pipeline:
    """A pipeline; with a `method`, missing models are downloaded."""
    if method is not None:  # look the code up in the newest list
        download_resources_json(folder)
    pipeline = stanza.Pipeline(
        _code(language, known=load_resources_json(folder)),
        dir=folder,
        package=package,
        processors=",".join(PROCESSORS),
        download_method=method,
        tokenize_no_ssplit=True,
        use_gpu=False,  # results on a GPU vary from run to run
        verbose=False,
    )
    # Stanza skips processors that a package lacks, with no more than a log line.
    if missing := [name for name in PROCESSORS if name not in pipeline.processors]:
        raise ValueError(f"the package has no {', '.join(missing)}")
    return pipeline


def _code(language: str, *, known: Container[str]) -> str:
    """Stanza's code of a language: the whole one ("zh-hant"), or the part before the region."""
    whole, short = language.lower().replace("_", "-"), without_region(language)
    parts = whole.split("-")[1:]
    script = next((part for part in parts if len(part) == 4), "")
    script = "hant" if {"tw", "hk", "mo"} & set(parts) else script
    codes = (language.lower(), whole, f"{short}-{script}", short)
    return next(filter(known.__contains__, codes), whole)


def parse_sentences(pipeline: stanza.Pipeline, texts: list[str]) -> list[list[Word]]:
    """The words of each sentence, in order, possibly none.

    If a blank line inside a text makes Stanza split it, the trees follow each other, each with its
    own root.
    """
    parses = []
    for first in stage.progress(range(0, len(texts), BATCH), what="parse", unit="batch"):
        batch = texts[first : first + BATCH]
        for text, document in zip(batch, pipeline.bulk_process(batch), strict=True):
            words: list[Word] = []
            for sentence in document.sentences:
                before = len(words)
                for token in sentence.tokens:
                    forms = [word.text for word in token.words]
                    spans = word_spans(forms, text=text, start=token.start_char, end=token.end_char)
                    for word, span in zip(token.words, spans, strict=True):
                        head = word.head + before if word.head else 0
                        words.append(Word(word.text, *span, head, word.deprel.lower(), word.upos))
            parses.append(words)
    return parses


def describe(pipeline: stanza.Pipeline, *, package: str) -> dict[str, str]:
    """Engine, version, model and command, without the directory, which has no effect."""
    models = ", ".join(
        f"{name} {specification.package}" for name, (specification, *_) in pipeline.load_list
    )
    return {
        "engine": "stanza",
        "version": stanza.__version__,
        "model": f"{pipeline.lang}/{package} ({models})",
        "command": f'stanza.Pipeline("{pipeline.lang}", package="{package}", '
        f'processors="{",".join(PROCESSORS)}", tokenize_no_ssplit=True)',
    }


def hashes(pipeline: stanza.Pipeline) -> dict[str, str]:
    """SHA-256 of every file of a pipeline, including word vectors, by processor and name."""
    files = {
        f"{name}/{Path(value).name}": Path(value)
        for name, processor in pipeline.processors.items()
        for key, value in processor.config.items()
        if key.endswith("_path") and isinstance(value, str) and Path(value).is_file()
    }
    return {name: stage.file_hash(files[name]) for name in sorted(files)}


@stage.command("output", settings=Settings)
def main(args: stage.Files, settings: Settings) -> None:
    manifest = []
    for wanted in settings.models:
        pipeline = load_pipeline(**wanted.model_dump())
        manifest.append(describe(pipeline, package=wanted.package) | {"sha256": hashes(pipeline)})
        stage.log.info("Stanza models for %r: %s", wanted.language, manifest[-1]["model"])
    stage.write_json(args.output, manifest)
