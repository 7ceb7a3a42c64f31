"""Source opensubtitles: film subtitles from OPUS, kept where both sides are on the screen at the same time (appendix B.1).

Which sentences belong together stands in an alignment file (XCES): `linkGrp` names two documents, each `link` the numbers of
their sentences and the share of time that both are shown, `overlap`. A link without this attribute never passes, since nothing
is known of it; OPUS leaves it out mostly where one side is empty. The text is that of the `raw` release, untokenised sentences
as in the film, so that subwords are learned from natural text; several sentences of a link are joined with a space.

A film is never divided between splits: the document of a pair is its year and film, `1999/0133093` of
`en/1999/0133093/3660124.xml.gz`, since a film may have several subtitles.

Files of other people's making are parsed here, so nothing is expanded or fetched: a declaration of entities is refused.
Neither the alignment nor the text is ever held as a whole, only the two documents at hand.
"""

import gzip
import xml.parsers.expat as expat
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads.corpus.fetch.datasets import known
from specialized_heads.corpus.pairs import blocks
from specialized_heads.corpus.readers.archives import open_packed, refuse_damage
from specialized_heads.corpus.sources import OpenSubtitles
from specialized_heads.stage import UserError, log

CHUNK = 1 << 16
LARGEST = 64 << 20  # bytes of one document, or of one element; subtitles of a film have some hundred thousand


class BrokenDocument(Exception):
    """A document that is no well-formed XML: its links are dropped, since one of many thousands is no reason to stop."""


@dataclass(frozen=True, slots=True)
class Link:
    """Sentences that belong together: numbers in two documents. `overlap` is None where the attribute is missing."""

    documents: tuple[str, str]
    sentences: tuple[list[str], list[str]]
    overlap: float | None


def read(
    source: OpenSubtitles, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of the links that pass, in the order of the alignment file.

    Raises:
        UserError: a damaged file, an alignment file that is no well-formed XCES, or XML that declares entities.
    """
    alignment, *texts = files
    # OPUS stores a pair in the order of the alphabet.
    sides = (0, 1) if source_language < target_language else (1, 0)
    with subtitles(texts[0]) as sources, subtitles(texts[1]) as targets:
        rows = _pairs(alignment, (sources, targets), sides=sides, least=source.overlap, counts=counts)
        yield from blocks(rows)


def _pairs(
    alignment: Path,
    archives: tuple["Subtitles", "Subtitles"],
    *,
    sides: tuple[int, int],
    least: float,
    counts: Counter[str],
) -> Iterator[tuple[str, str, str]]:
    """Source, target and film of each link that passes; the others are counted by reason."""
    at_hand: tuple[str, str] | None = None
    texts: tuple[dict[str, str], ...] | str = ""  # of the documents at hand, or why there are none
    for link in links(alignment):
        if not all(link.sentences):
            counts["one_side_empty"] += 1
            continue
        if link.overlap is None:
            counts["no_overlap_attribute"] += 1
            continue
        if not link.overlap >= least:  # also where it is no number
            counts["overlap_below_threshold"] += 1
            continue
        if link.documents != at_hand:
            at_hand = link.documents
            try:
                texts = tuple(archive.read(at_hand[side]) for archive, side in zip(archives, sides, strict=True))
            except KeyError as error:
                texts = "no_document"
                log.warning("no document %s in the archive; its links are dropped", error.args[0])
            except BrokenDocument as error:
                texts = "broken_document"
                log.warning("%s; its links are dropped", error)
        if isinstance(texts, str):
            counts[texts] += 1
            continue
        numbers = [link.sentences[side] for side in sides]
        if any(number not in text for text, side in zip(texts, numbers, strict=True) for number in side):
            counts["no_sentence"] += 1
            continue
        first, second = (" ".join(filter(None, map(text.get, side))) for text, side in zip(texts, numbers, strict=True))
        if not first or not second:
            counts["no_text"] += 1
            continue
        yield first, second, film(at_hand[sides[0]])


def film(document: str) -> str:
    """Year and number of the film in the path of a document; the path itself where it has no such parts."""
    return "/".join(document.split("/")[1:-1]) or document


def links(path: Path) -> Iterator[Link]:
    """The links of an alignment file, in order.

    Raises:
        UserError: damaged, not well-formed, a link outside of a group or without its attributes (with the line).
    """
    found: list[Link] = []
    group: list[str] = []
    parser = _parser(str(path))

    def start(element: str, attributes: dict[str, str]) -> None:
        try:
            if element == "linkGrp":
                group[:] = attributes["fromDoc"], attributes["toDoc"]
            elif element == "link":
                first, second = attributes["xtargets"].split(";")
                overlap = float(attributes["overlap"]) if "overlap" in attributes else None
                found.append(Link((group[0], group[1]), (first.split(), second.split()), overlap))
        except (KeyError, IndexError, ValueError):
            shown = " ".join([element, *(f'{name}="{value}"' for name, value in attributes.items())])
            raise UserError(
                f"{path}: line {parser.CurrentLineNumber}: <{shown[:200]}> is not as in OPUS's alignments: "
                'linkGrp with fromDoc and toDoc, in it link with xtargets="1 2;3" and a number as overlap'
            ) from None

    def end(element: str) -> None:
        if element == "linkGrp":
            group.clear()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    with open_packed(path) as stream:
        waiting = 0
        while chunk := stream.read(CHUNK):
            _parse(parser, chunk, path)
            # The parser keeps an element until it ends.
            waiting = 0 if found else waiting + len(chunk)
            if waiting > LARGEST:
                raise UserError(f"{path}: line {parser.CurrentLineNumber}: {LARGEST} bytes without a link")
            yield from found
            found.clear()
        _parse(parser, b"", path, last=True)


def _parse(parser: Any, chunk: bytes, path: Path, *, last: bool = False) -> None:
    try:
        parser.Parse(chunk, last)
    except expat.ExpatError as error:
        raise UserError(f"{path}: not well-formed XML ({error}); delete it and fetch it again") from None


@contextmanager
def subtitles(path: Path) -> Iterator["Subtitles"]:
    """The documents of one language, in a zip archive that stays open: its list of files is long."""
    with refuse_damage(path):
        archive = zipfile.ZipFile(path)
    with archive:
        yield Subtitles(path, archive)


@dataclass(frozen=True)
class Subtitles:
    """The documents of one language."""

    path: Path
    archive: zipfile.ZipFile

    def read(self, document: str) -> dict[str, str]:
        """The sentences of a document by their number, with single spaces.

        Args:
            document: its path in the alignment file, such as `en/1999/0133093/3660124.xml.gz`.

        Raises:
            KeyError: no such document.
            BrokenDocument: it is no well-formed XML.
            UserError: the archive is damaged, or the document declares entities or is too large to be subtitles.
        """
        # Members lack the .gz of the alignment's paths, and in some releases the folders above, too.
        plain = document.removesuffix(".gz")
        folder = known()["opensubtitles_text"].member
        names = [
            name for name in (folder + plain, f"{folder}{plain}.gz", plain, document) if name in self.archive.NameToInfo
        ]
        if not names:
            raise KeyError(f"{self.path}: {document}")
        shown = f"{self.path}: {names[0]}"
        with refuse_damage(self.path), self.archive.open(names[0]) as member:
            data = (gzip.GzipFile(fileobj=member) if names[0].endswith(".gz") else member).read(LARGEST + 1)
        if len(data) > LARGEST:
            raise UserError(
                f"{shown}: larger than {LARGEST} bytes; these are no subtitles, get the file from elsewhere"
            )
        return sentences(data, name=shown)


def sentences(data: bytes, *, name: str) -> dict[str, str]:
    """The text of each `s` element by its `id`: of a raw document, or the tokens of a tokenised one with spaces between.

    Raises:
        BrokenDocument: no well-formed XML.
        UserError: it declares entities.
    """
    found: dict[str, str] = {}
    number: list[str] = []
    text: list[str] = []

    def start(element: str, attributes: dict[str, str]) -> None:
        if element == "s":
            number[:] = [attributes.get("id", "")]
            text.clear()

    def end(element: str) -> None:
        if element == "s" and number:
            found[number[0]] = " ".join("".join(text).split())
            number.clear()

    def characters(some: str) -> None:
        if number:
            text.append(some)

    parser = _parser(name)
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BrokenDocument(f"{name}: not well-formed XML ({error})") from None
    return found


def _parser(name: str) -> Any:
    """A parser that refuses what lets a small file expand to a large one, or reads other files."""

    def refuse(*_: Any) -> None:
        raise UserError(f"{name}: declares or uses entities of its own; no release of OPUS does, get it from elsewhere")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.SkippedEntityHandler = refuse
    return parser
