"""Sources of parallel text: the kinds of `source` in the configuration, and the keys of each.

The module `corpus/readers/<kind>.py` reads the files of a kind into blocks of pairs; the raw stage writes them to one parquet
file. `resources/datasets.csv` lists the downloads with their addresses and licences.
"""

import os
import unicodedata
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from specialized_heads.stage import Section

Unit = Literal["document", "sentence"]
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"  # becomes part of an address and of a path
LIMIT = "maximum number of pairs, drawn at random but the same in every run; null: all"


def _file_path(path: str) -> str:
    if not path or set("{}\0") & set(path):
        raise ValueError("a path must not be empty or contain braces (of Snakemake); rename the file, or link to it")
    if path.startswith("~"):
        raise ValueError("~ is not expanded here; write the whole path")
    return path


FilePath = Annotated[str, AfterValidator(_file_path)]


def _on_one_line(title: str) -> str:
    """Collapse white space, so that the title fits on one line of a figure or a table."""
    title = " ".join(title.split())
    if not any(map(str.isprintable, title)) or any(unicodedata.category(letter) == "Cc" for letter in title):
        raise ValueError(f"{title!r} cannot be shown; use visible characters")
    return title


Title = Annotated[str, Field(min_length=1), AfterValidator(_on_one_line)]
Item = TypeVar("Item")


def _distinct(values: list[Item]) -> list[Item]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} occurs more than once; keep one")
    return values


Distinct = Annotated[list[Item], AfterValidator(_distinct)]


class Embedded(Section):
    """A corpus in the repository, with the parses of its analysis sentences."""

    kind: Literal["embedded"]
    name: str = Field(pattern=NAME, description="folder under resources/")


class Local(Section):
    """Your own text: one file of pairs (TSV), or two files with one sentence per line."""

    kind: Literal["local"]
    path: FilePath | None = Field(
        None,
        description="TSV (source TAB target, optionally TAB document), plain or .gz, .xz; relative to the working directory",
    )
    columns: Distinct[Annotated[int, Field(ge=1)]] = Field(
        [1, 2, 3],
        min_length=2,
        max_length=3,
        description="of TSV files, from 1: source, target and, for group_by, document",
    )
    source_path: FilePath | None = Field(None, description="instead of path: source sentences, one per line")
    target_path: FilePath | None = Field(None, description="their translations, on the same lines")
    dev: FilePath | None = Field(None, description="your development set, in the same format; null: held out")
    test: FilePath | None = Field(None, description="your test set, in the same format")
    analysis: FilePath | None = Field(None, description="your analysis set, in the same format; targets are optional")
    group_by: Unit = Field(
        "sentence",
        description="unit that is never divided between splits: 'document', or 'sentence' (all pairs linked by equal sentences)",
    )
    limit: int | None = Field(None, ge=1, description=LIMIT)

    @model_validator(mode="after")
    def _one_way(self) -> "Local":
        given = tuple(path is not None for path in (self.path, self.source_path, self.target_path))
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError("give either path, or source_path and target_path")
        # Not whether columns were set: a stage gets all keys, also those left at their defaults.
        others = self.columns != type(self).model_fields["columns"].default
        if others and not (self.path or self.dev or self.test or self.analysis):
            raise ValueError("columns are those of TSV files; exchange source_path and target_path to swap languages")
        if len(set(self.files().values())) < len(self.files()):
            raise ValueError(
                "the same file is named twice; training text and each held-out set need files of their own"
            )
        if self.group_by == "document" and self.path is None:
            raise ValueError("group_by document needs path: files of sentences have no column of documents")
        if self.group_by == "document" and len(self.columns) < 3:
            raise ValueError("group_by document needs a third number in columns, that of the document")
        return self

    def files(self) -> dict[str, str]:
        """The files of the configuration by key, in the order in which they are read."""
        keys = ("path", "source_path", "target_path", "dev", "test", "analysis")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


class Opus(Section):
    """A corpus of the OPUS collection, in Moses format (two aligned plain-text files in a zip archive)."""

    kind: Literal["opus"]
    corpus: str = Field(pattern=NAME, description="name in OPUS, such as Tatoeba or News-Commentary")
    version: str = Field(pattern=NAME, description="release, such as v2023-04-12")
    limit: int | None = Field(None, ge=1, description=LIMIT)


class OpenSubtitles(Section):
    """OpenSubtitles v2018 from OPUS, as XML with time overlaps of the aligned subtitles (appendix B.1)."""

    kind: Literal["opensubtitles"]
    limit: int | None = Field(6_000_000, ge=1, description=LIMIT)


class Wmt(Section):
    """News text of the WMT shared tasks, with newstest sets for dev and test (appendix B.1)."""

    kind: Literal["wmt"]
    train: Distinct[str] = Field(min_length=1, description="names of datasets in resources/datasets.csv")
    dev: Distinct[str] = Field(min_length=1, description="newstest sets in resources/datasets.csv, for development")
    test: Distinct[str] = Field(min_length=1, description="newstest sets for BLEU")
    analysis: Distinct[str] = Field(
        [],
        description="datasets from whose source side 50,000 analysis sentences are drawn (section 5.2), never used for "
        "training; empty: held out from train",
    )
    limit: int | None = Field(2_500_000, ge=1, description=LIMIT)

    @model_validator(mode="after")
    def _dev_is_not_test(self) -> "Wmt":
        if both := set(self.dev) & set(self.test):
            raise ValueError(f"{min(both)} is listed under dev and test; remove it from one")
        return self


Source = Annotated[Embedded | Local | Opus | OpenSubtitles | Wmt, Field(discriminator="kind")]


class Downloads(Section):
    """How files are fetched."""

    directory: Annotated[FilePath, AfterValidator(os.path.normpath)] = Field(
        "data", description="folder for downloaded files, relative to the working directory"
    )
    mirrors: dict[str, str] = Field({}, description="maps the start of a URL to its replacement")
