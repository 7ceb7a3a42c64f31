"""Sources of parallel text and of classification tasks: the kinds of `source` in the configuration,
the keys of each, and the files that it is read from.

A function in `corpus/readers` reads these files into blocks of pairs. Files that are published are
rows of `resources/datasets.csv`, with their addresses and licences; those without an address are
placed by hand in the folder of downloads.
"""

import csv
import difflib
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from specialized_heads.stage import Section, UserError, read_json

TABLE = Path(__file__).parents[3] / "resources" / "datasets.csv"
OPENSUBTITLES = "v2018"  # release of OPUS that the paper uses
Unit = Literal["document", "sentence"]
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"  # becomes part of an address and of a path
LIMIT = "maximum number of pairs, drawn at random but the same in every run; null: all"


def _file_path(path: str) -> str:
    if not path or set("{}\0") & set(path):
        raise ValueError(
            "a path must not be empty or contain braces (of Snakemake); rename the file, or link "
            "to it"
        )
    if path.startswith("~"):
        raise ValueError("~ is not expanded here; write the whole path")
    return re.sub("//+", "/", path)  # Snakemake would not find a file by a doubled slash


FilePath = Annotated[str, AfterValidator(_file_path)]


def _on_one_line(title: str) -> str:
    """Collapse white space, so that the title fits on one line of a figure or a table."""
    title = " ".join(title.split())
    controls = [letter for letter in title if unicodedata.category(letter) == "Cc"]
    if controls or not any(map(str.isprintable, title)):
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


@dataclass(frozen=True)
class Dataset:
    """A row of `resources/datasets.csv`. Sizes are in bytes, hashes are SHA-256; None: unknown, so
    recorded and not checked.

    A file may hold several datasets (the news test sets of many years, or the language pairs of
    Europarl). `name` is used in configurations; `file` is the path below the folder of downloads;
    `member` tells what to read in the file, see `corpus/readers/wmt.py`. The languages are empty if
    the dataset exists in the pair of any corpus. Braces are filled in with the corpus, the version,
    the language or the pair of languages; in OPUS a pair is in alphabetical order.
    """

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

    def filled(self, **fields: str) -> "Dataset":
        """With these names in place of the braces."""
        return replace(self, url=self.url.format(**fields), file=self.file.format(**fields))


@cache
def known() -> dict[str, Dataset]:
    """All rows of the table by name."""
    with open(TABLE, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, restval=""))
    for row in rows:
        row["bytes"] = int(row["bytes"]) if row["bytes"] else None
        row["sha256"] = row["sha256"] or None
    return {row["name"]: Dataset(**row) for row in rows}


def named(name: str) -> Dataset:
    """The WMT dataset with this name; a `UserError` names the nearest one if there is none."""
    choices = [dataset.name for dataset in known().values() if dataset.kind == "wmt"]
    if name not in choices:
        near = difflib.get_close_matches(name, choices, n=1, cutoff=0.0)[0]
        raise UserError(
            f"unknown wmt dataset {name!r}; nearest known: {near}; resources/datasets.csv lists all"
        )
    return known()[name]


def glue_files(task: str) -> list[Dataset]:
    """The files of a GLUE task: one archive, or the training and the test set of MRPC."""
    return [each for each in known().values() if (each.kind, each.member) == ("glue", task)]


def name_of_pair(languages: tuple[str, str]) -> str:
    """The name of a pair of languages in OPUS, which is the same in both directions."""
    return "-".join(sorted(languages))


class TextSource(Section):
    """A kind of source: its keys, which files it is read from, and the function in `corpus/readers`
    that reads them."""

    reader: ClassVar[str]  # module.function
    kind: str

    def files(self, resources: str) -> list[str]:
        """The files that are there already, in the order that its reader expects; embedded corpora
        are in `resources`."""
        return []

    def datasets(self, languages: tuple[str, str]) -> list[Dataset]:
        """The files that are fetched, or placed by hand in the folder of downloads, in that order;
        a kind has these or `files`.

        An unknown dataset, or one in languages other than the corpus's, is a `UserError`.
        """
        return []

    def provenance(self, files: Sequence[Path]) -> dict[str, Any]:
        """What the card of the corpus says of its origin, beside what is known of the datasets."""
        return {}


class Embedded(TextSource):
    """A corpus in the repository, with the parses of its analysis sentences."""

    reader = "local.read_embedded"
    kind: Literal["embedded"]
    name: str = Field(pattern=NAME, description="folder under resources/")

    def files(self, resources: str) -> list[str]:
        return [f"{resources}/{self.name}/{name}" for name in ("corpus.parquet", "provenance.json")]

    def provenance(self, files: Sequence[Path]) -> dict[str, Any]:
        about = read_json(files[1])
        return {"made_from": about["packages"], "licence": about["licence"], "citation": ""}


class Local(TextSource):
    """Your own text: one file of pairs (TSV), or two files with one sentence per line."""

    reader = "local.read_local"
    kind: Literal["local"]
    path: FilePath | None = Field(
        None,
        description="TSV (source TAB target, optionally TAB document), plain or .gz, .xz; relative "
        "to the working directory",
    )
    columns: Distinct[Annotated[int, Field(ge=1)]] = Field(
        [1, 2, 3],
        min_length=2,
        max_length=3,
        description="of TSV files, from 1: source, target and, for group_by, document",
    )
    source_path: FilePath | None = Field(
        None, description="instead of path: source sentences, one per line"
    )
    target_path: FilePath | None = Field(None, description="their translations, on the same lines")
    dev: FilePath | None = Field(
        None, description="your development set, in the same format; null: held out"
    )
    test: FilePath | None = Field(None, description="your test set, in the same format")
    analysis: FilePath | None = Field(
        None,
        description="your analysis set, in the same format; targets are optional, but the first "
        "line has one if any has",
    )
    group_by: Unit = Field(
        "sentence",
        description="unit that is never divided between splits: 'document', or 'sentence' (all "
        "pairs linked by equal sentences)",
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
            raise ValueError(
                "columns are those of TSV files; exchange source_path and target_path to swap "
                "languages"
            )
        if len(set(map(os.path.realpath, self.by_key().values()))) < len(self.by_key()):
            raise ValueError(
                "the same file is named twice; training text and each held-out set need files of "
                "their own"
            )
        if self.group_by == "document" and self.path is None:
            raise ValueError(
                "group_by document needs path: files of sentences have no column of documents"
            )
        if self.group_by == "document" and len(self.columns) < 3:
            raise ValueError(
                "group_by document needs a third number in columns, that of the document"
            )
        return self

    def files(self, resources: str) -> list[str]:
        return list(self.by_key().values())

    def by_key(self) -> dict[str, str]:
        """The files by key, in the order in which they are read."""
        keys = ("path", "source_path", "target_path", "dev", "test", "analysis")
        return {key: getattr(self, key) for key in keys if getattr(self, key) is not None}


class Opus(TextSource):
    """A corpus of the OPUS collection, in Moses format (two aligned plain-text files in a zip
    archive)."""

    reader = "opus.read_moses"
    kind: Literal["opus"]
    corpus: str = Field(
        pattern=NAME, description="name in OPUS, such as Tatoeba or News-Commentary"
    )
    version: str = Field(pattern=NAME, description="release, such as v2023-04-12")
    limit: int | None = Field(None, ge=1, description=LIMIT)

    def datasets(self, languages: tuple[str, str]) -> list[Dataset]:
        names = {"corpus": self.corpus, "version": self.version, "pair": name_of_pair(languages)}
        return [known()["opus"].filled(**names)]


class OpenSubtitles(TextSource):
    """OpenSubtitles v2018 from OPUS, as XML with time overlaps of the aligned subtitles
    (appendix B.1)."""

    reader = "opus.read_opensubtitles"
    kind: Literal["opensubtitles"]
    limit: int | None = Field(6_000_000, ge=1, description=LIMIT)

    def datasets(self, languages: tuple[str, str]) -> list[Dataset]:
        alignment, text = known()["opensubtitles_alignment"], known()["opensubtitles_text"]
        texts = [text.filled(version=OPENSUBTITLES, language=language) for language in languages]
        return [alignment.filled(version=OPENSUBTITLES, pair=name_of_pair(languages)), *texts]


class Wmt(TextSource):
    """News text of the WMT shared tasks, with newstest sets for dev and test (appendix B.1)."""

    reader = "wmt.read_wmt"
    kind: Literal["wmt"]
    train: Distinct[str] = Field(
        min_length=1, description="names of datasets in resources/datasets.csv"
    )
    dev: Distinct[str] = Field(
        min_length=1, description="newstest sets in resources/datasets.csv, for development"
    )
    test: Distinct[str] = Field(min_length=1, description="newstest sets for BLEU")
    analysis: Distinct[str] = Field(
        [],
        description="datasets from whose source side 50,000 analysis sentences are drawn (section "
        "5.2), never used for training; empty: held out from train",
    )
    limit: int | None = Field(2_500_000, ge=1, description=LIMIT)

    @model_validator(mode="after")
    def _dev_is_not_test(self) -> "Wmt":
        if both := set(self.dev) & set(self.test):
            raise ValueError(f"{min(both)} is listed under dev and test; remove it from one")
        return self

    def datasets(self, languages: tuple[str, str]) -> list[Dataset]:
        """One entry per file; the names and citations of the datasets in a file are joined."""
        wanted = [(name, set(languages)) for name in (*self.train, *self.dev, *self.test)]
        wanted += [(name, {languages[0]}) for name in self.analysis]
        files: dict[str, list[Dataset]] = {}
        for name, needed in wanted:
            dataset = named(name)
            has = {dataset.source_language, dataset.target_language}
            if dataset.source_language and not needed <= has:
                pair, needs = ("-".join(sorted(each)) for each in (has, needed))
                raise UserError(
                    f"dataset {name} is {pair}, but the corpus needs {needs}; choose one of its "
                    f"languages from resources/datasets.csv"
                )
            files.setdefault(dataset.file, []).append(dataset)
        return [
            replace(
                own[0],
                name=", ".join(dict.fromkeys(each.name for each in own)),
                citation="; ".join(dict.fromkeys(each.citation for each in own)),
            )
            for own in files.values()
        ]


Source = Annotated[Embedded | Local | Opus | OpenSubtitles | Wmt, Field(discriminator="kind")]


LABELS = {  # names of the labels of each kind of task, in the order of their ids
    "shift": ("original", "shifted"),
    "halves": ("different", "same"),
    "mnli": ("entailment", "neutral", "contradiction"),
    "sst2": ("negative", "positive"),
    "cola": ("unacceptable", "acceptable"),
    "mrpc": ("not_equivalent", "equivalent"),
}


class _Examples(Section):
    """Where the examples of a task come from."""

    kind: str

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS[self.kind]

    @property
    def metric(self) -> str:
        """As in GLUE; MRPC has accuracy beside F1, of which the paper's script takes the latter."""
        return {"cola": "matthews", "mrpc": "f1"}.get(self.kind, "accuracy")

    @property
    def second(self) -> bool:
        """Whether there is a second test set: LibreOffice help, or MNLI's mismatched one."""
        return self.kind in ("shift", "halves", "mnli")


class Made(_Examples):
    """A task made from the English sentences of the embedded corpora, by a published recipe
    (`classification/tasks.py`)."""

    kind: Literal["shift", "halves"] = Field(
        description="are two neighbouring words swapped? (Conneau et al. 2018); are the segments "
        "halves of one sentence?"
    )
    train: int = Field(60_000, ge=2, description="most examples to train on")
    test: int = Field(2_000, ge=2, description="most examples of each test set")


class Glue(_Examples):
    """A task of GLUE (Wang et al. 2019), in the files that its mirror serves."""

    kind: Literal["mnli", "sst2", "cola", "mrpc"]
    dev: int = Field(
        2_000, ge=2, description="training examples held out for the loss and for importance"
    )


TaskSource = Annotated[Made | Glue, Field(discriminator="kind")]


class Downloads(Section):
    """How files are fetched."""

    directory: Annotated[FilePath, AfterValidator(os.path.normpath)] = Field(
        "data", description="folder for downloaded files, relative to the working directory"
    )
    mirrors: dict[str, str] = Field({}, description="maps the start of a URL to its replacement")
