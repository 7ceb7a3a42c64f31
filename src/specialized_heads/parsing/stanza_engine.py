"""Trees from Stanza: one tree per analysis sentence, with the character offsets of its words in that sentence.

Sentences are never split (`tokenize_no_ssplit`), because relations are counted within the translation model's sentences. Models
are loaded from disk without network access; the stage fetch (`parsing/fetch.py`) downloads missing ones beforehand. Since release
1.15, these processors open every file with `torch.load(weights_only=True)`, which runs no code from it.
"""

from collections.abc import Container
from pathlib import Path

import stanza
from stanza.resources.common import DEFAULT_MODEL_DIR, download_resources_json, load_resources_json

from specialized_heads.languages import without_region
from specialized_heads.parsing.words import Word, word_spans
from specialized_heads.stage import UserError, file_hash, log, progress

PROCESSORS = ("tokenize", "pos", "lemma", "depparse")  # Stanza adds `mwt` where the package has it
BATCH = 100  # sentences per call: enough to fill batches, few enough for the progress bar to move


def load_pipeline(*, language: str, directory: str | None, package: str) -> stanza.Pipeline:
    """Load a pipeline from disk, without network access.

    Args:
        language: of the text; a region ("pt_BR") is ignored if Stanza has no models for it.
        directory: Stanza resources directory; None for Stanza's own.
        package: name of a package of models.

    Raises:
        UserError: there are no such models, or they are damaged.
    """
    directory = _resources(directory)
    try:
        return _build(language=language, directory=directory, package=package, method=None)
    except Exception as error:  # a damaged model can raise anything
        raise UserError(
            f"no {_what(language, directory, package)}: {_sentence(error)} Run snakemake with --forcerun parser_models and "
            "parser.download: true, or check parser.directory and parser.package"
        ) from error


def fetch(*, language: str, directory: str | None, package: str, download: bool) -> stanza.Pipeline:
    """Load a pipeline, downloading missing models.

    Args:
        language, directory, package: as for `load_pipeline`.
        download: whether missing models may be downloaded.

    Raises:
        UserError: there are no such models, and they may not or cannot be downloaded.
    """
    directory = _resources(directory)
    what = _what(language, directory, package)
    try:
        return _build(language=language, directory=directory, package=package, method=None)
    except Exception as error:  # as above
        if not download:
            raise UserError(
                f"no {what}: {_sentence(error)} Set parser.download: true, or check parser.directory and parser.package"
            ) from error
    log.info("fetching %s", what)
    try:
        return _build(language=language, directory=directory, package=package, method="reuse_resources")
    except Exception as error:  # the network layers below Stanza share no base class
        raise UserError(
            f"no {what}, and they could not be fetched: {_sentence(error)} Fetch them where there is a network (python -c "
            f"\"import stanza; stanza.download('{language}', model_dir='DIR', package='{package}', "
            f"processors='{','.join(PROCESSORS)}')\"), copy the folder here and set parser.directory to it"
        ) from error


def _resources(directory: str | None) -> str:
    return str(Path(directory).expanduser()) if directory else DEFAULT_MODEL_DIR


def _what(language: str, directory: str, package: str) -> str:
    return f"Stanza models for {language!r}, package {package!r}, in {directory}"


def _sentence(error: Exception) -> str:
    """The first line of an error's text, with one full stop at the end."""
    text = str(error).strip() or type(error).__name__
    return f"{text.splitlines()[0].rstrip('. ')}."


def _build(*, language: str, directory: str, package: str, method: str | None) -> stanza.Pipeline:
    if method is not None:  # look the code up in the newest list
        download_resources_json(directory)
    pipeline = stanza.Pipeline(
        _code(language, known=load_resources_json(directory)),
        dir=directory,
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
    """Stanza's code of a language: the whole one ("zh-hant"), or else the part before the region."""
    whole = language.lower().replace("_", "-")
    return next((code for code in (language.lower(), whole, without_region(language)) if code in known), whole)


def parse_sentences(pipeline: stanza.Pipeline, texts: list[str]) -> list[list[Word]]:
    """Parse sentences.

    Args:
        pipeline: from `load_pipeline`.
        texts: one sentence each.

    Returns:
        the words of each sentence, in order, possibly none. If a blank line inside a text makes Stanza split it, the trees
        follow each other, each with its own root.
    """
    parses = []
    for first in progress(range(0, len(texts), BATCH), what="parse", unit="batch"):
        batch = texts[first : first + BATCH]
        for text, document in zip(batch, pipeline.bulk_process(batch), strict=True):
            words: list[Word] = []
            for sentence in document.sentences:
                before = len(words)
                for token in sentence.tokens:
                    forms = [word.text for word in token.words]
                    spans = word_spans(forms, text=text, start=token.start_char, end=token.end_char)
                    words += [
                        Word(
                            form=word.text,
                            start=start,
                            end=end,
                            head=word.head + before if word.head else 0,
                            relation=word.deprel.lower(),
                            upos=word.upos,
                        )
                        for word, (start, end) in zip(token.words, spans, strict=True)
                    ]
            parses.append(words)
    return parses


def describe(pipeline: stanza.Pipeline, *, package: str) -> dict[str, str]:
    """The origin of the trees: engine, version, model, command (without the directory, which has no effect)."""
    models = ", ".join(f"{name} {specification.package}" for name, (specification, *_) in pipeline.load_list)
    return {
        "engine": "stanza",
        "version": stanza.__version__,
        "model": f"{pipeline.lang}/{package} ({models})",
        "command": f'stanza.Pipeline("{pipeline.lang}", package="{package}", processors="{",".join(PROCESSORS)}", '
        "tokenize_no_ssplit=True)",
    }


def hashes(pipeline: stanza.Pipeline) -> dict[str, str]:
    """SHA-256 of every file of a pipeline, including word vectors, by processor and name."""
    files = {
        f"{name}/{Path(value).name}": Path(value)
        for name, processor in pipeline.processors.items()
        for key, value in processor.config.items()
        if key.endswith("_path") and isinstance(value, str) and Path(value).is_file()
    }
    return {name: file_hash(files[name]) for name in sorted(files)}
