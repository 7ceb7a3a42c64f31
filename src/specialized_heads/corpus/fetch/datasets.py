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
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from specialized_heads.experiment.sources import OpenSubtitles, Opus, Source, Wmt
from specialized_heads.stage import UserError

TABLE = Path(__file__).parents[4] / "resources" / "datasets.csv"
OPENSUBTITLES = "v2018"  # release of OPUS that the paper uses


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

    @property
    def languages(self) -> set[str]:
        """Both languages; empty strings for a dataset of any pair."""
        return {self.source_language, self.target_language}

    def filled(self, **fields: str) -> "Dataset":
        """With these names in place of the braces."""
        return replace(self, url=self.url.format(**fields), file=self.file.format(**fields))


@cache
def known() -> dict[str, Dataset]:
    """All rows of the table by name."""
    with open(TABLE, encoding="utf-8", newline="") as stream:
        rows = [
            row | {"bytes": int(row["bytes"]) if row["bytes"] else None, "sha256": row["sha256"] or None}
            for row in csv.DictReader(stream, restval="")
        ]
    return {row["name"]: Dataset(**row) for row in rows}


def named(name: str) -> Dataset:
    """The WMT dataset with this name; a `UserError` names the nearest one if there is none."""
    choices = [dataset.name for dataset in known().values() if dataset.kind == "wmt"]
    if name not in choices:
        near = difflib.get_close_matches(name, choices, n=1, cutoff=0.0)[0]
        raise UserError(f"unknown wmt dataset {name!r}; nearest known: {near}; resources/datasets.csv lists all")
    return known()[name]


def files_of(source: Source, languages: tuple[str, str]) -> list[Dataset]:
    """The files that a source reads, one dataset each, in the order that its reader expects.

    None for a source that is not fetched by address; the `url` is empty for a file that is placed by hand. An unknown dataset, or
    one in languages other than the corpus's, is a `UserError`.
    """
    pair = "-".join(sorted(languages))
    match source:
        case Opus():
            return [known()["opus"].filled(corpus=source.corpus, version=source.version, pair=pair)]
        case OpenSubtitles():
            alignment, text = known()["opensubtitles_alignment"], known()["opensubtitles_text"]
            texts = [text.filled(version=OPENSUBTITLES, language=language) for language in languages]
            return [alignment.filled(version=OPENSUBTITLES, pair=pair), *texts]
        case Wmt():
            pairs = [(named(name), set(languages)) for name in (*source.train, *source.dev, *source.test)]
            return _by_file([*pairs, *((named(name), {languages[0]}) for name in source.analysis)])
    return []


def glue_files(task: str) -> list[Dataset]:
    """The files of a GLUE task: one archive, or the training and the test set of MRPC."""
    return [dataset for dataset in known().values() if dataset.kind == "glue" and dataset.member == task]


def _by_file(wanted: list[tuple[Dataset, set[str]]]) -> list[Dataset]:
    """One entry per file of datasets with the languages wanted of each; the names and citations in a file are joined."""
    files: dict[str, list[Dataset]] = {}
    for dataset, languages in wanted:
        if dataset.source_language and not languages <= dataset.languages:
            raise UserError(
                f"dataset {dataset.name} is {'-'.join(sorted(dataset.languages))}, but the corpus needs "
                f"{'-'.join(sorted(languages))}; choose one of its languages from resources/datasets.csv"
            )
        files.setdefault(dataset.file, []).append(dataset)
    joined = {"name": ", ", "citation": "; "}
    return [
        replace(
            group[0], **{key: mark.join(dict.fromkeys(getattr(d, key) for d in group)) for key, mark in joined.items()}
        )
        for group in files.values()
    ]
