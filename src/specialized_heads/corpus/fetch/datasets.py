"""Known datasets: which files a source of parallel text needs, where they are published, and under which terms.

The table is `resources/datasets.csv`, one row per dataset; a file may hold several datasets (the news test sets of many years,
or the language pairs of Europarl). Unknown sizes and hashes are empty; they are recorded, not checked. A dataset without an
address must be placed in the folder of downloads by hand.

Columns: `name` is used in configurations; `file` is the path below the folder of downloads; `member` tells what to read in the
file, see `corpus/readers/wmt.py`; the languages are empty if the dataset exists in the pair of any corpus. Braces are filled in
with the corpus, the version, the language or the pair of languages; in OPUS a pair is in alphabetical order.
"""

import csv
import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from specialized_heads.config.sources import OpenSubtitles, Opus, Source, Wmt
from specialized_heads.stage import UserError

TABLE = Path(__file__).parents[4] / "resources" / "datasets.csv"


@dataclass(frozen=True)
class Dataset:
    """A row of the table, possibly with its braces filled in. Sizes are in bytes, hashes are SHA-256; None: unknown."""

    name: str
    kind: str
    source_language: str
    target_language: str
    url: str
    file: str
    bytes: int | None
    sha256: str | None
    licence: str
    citation: str
    description: str
    member: str


@cache
def known() -> dict[str, Dataset]:
    """All rows of the table by name."""
    with open(TABLE, encoding="utf-8", newline="") as stream:
        rows = [
            row | {"bytes": int(row["bytes"]) if row["bytes"] else None, "sha256": row["sha256"] or None}
            for row in csv.DictReader(stream, restval="")
        ]
    return {row["name"]: Dataset(**row) for row in rows}


def named(name: str, *, kind: str) -> Dataset:
    """The dataset with this name.

    Raises:
        UserError: there is none of this kind; the message names the nearest one.
    """
    choices = [dataset.name for dataset in known().values() if dataset.kind == kind]
    if name not in choices:
        near = difflib.get_close_matches(name, choices, n=1, cutoff=0.0)[0]
        raise UserError(f"unknown {kind} dataset {name!r}; nearest known: {near}; resources/datasets.csv lists all")
    return known()[name]


def files_of(source: Source, *, source_language: str, target_language: str) -> list[Dataset]:
    """The files that a source reads, one dataset each, in the order that its reader expects.

    Returns:
        empty for a source that is not fetched by address; the `url` is empty for a file that is placed by hand.

    Raises:
        UserError: an unknown dataset, or one in languages other than the corpus's.
    """
    pair = "-".join(sorted((source_language, target_language)))
    match source:
        case Opus():
            fields = {"corpus": source.corpus, "version": source.version, "pair": pair}
            return [replace(_filled(known()["opus"], **fields), sha256=source.sha256)]
        case OpenSubtitles():
            alignment = _filled(known()["opensubtitles_alignment"], version=source.version, pair=pair)
            texts = [
                _filled(known()["opensubtitles_text"], version=source.version, language=language)
                for language in (source_language, target_language)
            ]
            return [alignment, *texts]
        case Wmt():
            pairs = [named(name, kind="wmt") for name in (*source.train, *source.dev, *source.test)]
            analysis = [named(name, kind="wmt") for name in source.analysis]
            _check_languages(pairs, {source_language, target_language})
            _check_languages(analysis, {source_language})
            return _by_file([*pairs, *analysis])
    return []


def _by_file(datasets: Iterable[Dataset]) -> list[Dataset]:
    """One entry per file; the names and citations of the datasets in it are joined."""
    files: dict[str, Dataset] = {}
    for dataset in datasets:
        if first := files.get(dataset.file):
            names = dict.fromkeys([*first.name.split(", "), dataset.name])
            citations = dict.fromkeys([*first.citation.split("; "), dataset.citation])
            dataset = replace(first, name=", ".join(names), citation="; ".join(citations))
        files[dataset.file] = dataset
    return list(files.values())


def _filled(dataset: Dataset, **fields: str) -> Dataset:
    return replace(dataset, url=dataset.url.format(**fields), file=dataset.file.format(**fields))


def _check_languages(datasets: Iterable[Dataset], languages: set[str]) -> None:
    """Raise `UserError` for a dataset that lacks one of the languages."""
    for dataset in datasets:
        available = {dataset.source_language, dataset.target_language}
        if dataset.source_language and not languages <= available:
            raise UserError(
                f"dataset {dataset.name} is {'-'.join(sorted(available))}, but the corpus needs {'-'.join(sorted(languages))}; "
                "choose one of its languages from resources/datasets.csv"
            )
