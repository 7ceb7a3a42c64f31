"""Sources from OPUS: opus, any of its corpora in Moses format, and opensubtitles, film subtitles
(appendix B.1).

Moses format is a zip archive with one plain-text file per language, aligned line by line. The two
files end in `.<pair>.<language>`, the pair in alphabetical order.

Subtitles are kept if both sides are on the screen at the same time. An alignment file (XCES) says
which sentences belong together: `linkGrp` names two documents, each `link` the numbers of their
sentences and the share of time that both are shown, `overlap`. The attribute is missing mostly in
links with an empty side; links without it are dropped. The text is that of the `raw` release,
untokenised, so that subwords are learned from natural text; the sentences of a link are joined by a
space.

A film is never divided between splits, whichever of its subtitles are used: the document of a pair
is its year and film, `1999/0133093` of `en/1999/0133093/3660124.xml.gz`.

The XML is not trusted: nothing is expanded or fetched, and a declaration of entities is refused.
Only the two documents that are being aligned are in memory, never the whole alignment or text.
"""

import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from specialized_heads.corpus.normalise import single_spaces
from specialized_heads.corpus.pairs import Blocks, blocks
from specialized_heads.corpus.readers import archives
from specialized_heads.corpus.readers.archives import open_packed, refuse_damage
from specialized_heads.experiment.sources import OpenSubtitles, Opus, known, name_of_pair
from specialized_heads.stage import UserError, log

OVERLAP = 0.9  # minimum share of time of a link (appendix B.1)
# Nothing is expanded or fetched; comments would divide the text.
SAFE = {"resolve_entities": False, "load_dtd": False, "no_network": True}
SAFE |= {"remove_comments": True, "remove_pis": True}


def read_moses(
    source: Opus, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]
) -> Blocks:
    """The pairs of the archive, in order. Nothing is dropped here."""
    (archive,) = files
    pair = name_of_pair(languages)
    with ExitStack() as opened:

        def of(language: str) -> Iterator[str]:
            """The lines of the only file of a language."""
            end = f".{pair}.{language}"
            names = [name for name in archives.members(archive) if name.endswith(end)]
            if len(names) != 1:
                raise UserError(f"{archive}: {len(names) or 'no'} files end in {end}, not one")
            return archives.lines(opened.enter_context(archives.member(archive, names[0])))

        rows = archives.aligned(*map(of, languages), name=f"{archive}: the two sides of {pair}")
        yield from blocks((*row, "") for row in rows)


class BrokenDocument(Exception):
    """A document that is not well-formed XML; one of thousands, so only its links are dropped."""


class Link(NamedTuple):
    """Sentences that belong together: their numbers in two documents. `overlap` is None where the
    attribute is missing."""

    documents: tuple[str, str]
    sentences: tuple[list[str], list[str]]
    overlap: float | None


def read_opensubtitles(
    source: OpenSubtitles,
    files: Sequence[Path],
    *,
    languages: tuple[str, str],
    counts: Counter[str],
) -> Blocks:
    """The pairs of the links that pass, in the order of the alignment file; the others are counted
    by reason."""
    alignment, *texts = files
    # OPUS stores a pair of languages in alphabetical order.
    sides = (0, 1) if languages[0] < languages[1] else (1, 0)
    with ExitStack() as opened:
        zips = []
        for path in texts:
            with refuse_damage(path):
                zips.append(opened.enter_context(zipfile.ZipFile(path)))
        yield from blocks(_pairs(alignment, zips, sides=sides, counts=counts))


def _pairs(
    alignment: Path,
    zips: Sequence[zipfile.ZipFile],
    *,
    sides: tuple[int, int],
    counts: Counter[str],
) -> Iterator[tuple[str, str, str]]:
    """Source, target and film of each link that passes."""
    current: tuple[str, str] | None = None
    texts: list[dict[str, str]] = []
    missing = ""  # why the current documents have no text
    for link in links(alignment):
        if not all(link.sentences):
            counts["one_side_empty"] += 1
            continue
        if link.overlap is None:
            counts["no_overlap_attribute"] += 1
            continue
        if not link.overlap >= OVERLAP:  # also true for NaN
            counts["overlap_below_threshold"] += 1
            continue
        if link.documents != current:
            current, missing = link.documents, ""
            try:
                texts = [
                    read_document(archive, current[side])
                    for archive, side in zip(zips, sides, strict=True)
                ]
            except KeyError as error:
                missing = "no_document"
                log.warning("no document %s in the archive; its links are dropped", error.args[0])
            except BrokenDocument as error:
                missing = "broken_document"
                log.warning("%s; its links are dropped", error)
        numbers = [link.sentences[side] for side in sides]
        if missing or any(
            number not in text for text, side in zip(texts, numbers) for number in side
        ):
            counts[missing or "no_sentence"] += 1
            continue
        first, second = (
            " ".join(filter(None, map(text.get, side))) for text, side in zip(texts, numbers)
        )
        if first and second:
            yield first, second, film(current[sides[0]])
        else:
            counts["no_text"] += 1


def film(document: str) -> str:
    """Year and number of the film, from the path of a document; otherwise the path itself."""
    return "/".join(document.split("/")[1:-1]) or document


def links(path: Path) -> Iterator[Link]:
    """The links of an alignment file, in order; what is not well-formed XCES is a `UserError` with
    the line."""
    documents: tuple[str, ...] = ()
    with open_packed(path) as stream:
        try:
            for event, element in etree.iterparse(stream, events=("start", "end"), **SAFE):
                if event == "start":
                    if element.getparent() is None:
                        refuse_entities(element, name=str(path))
                    if element.tag == "linkGrp":
                        documents = element.attrib["fromDoc"], element.attrib["toDoc"]
                    elif element.tag == "link":
                        first, second = element.attrib["xtargets"].split(";")
                        overlap = element.get("overlap")
                        overlap = None if overlap is None else float(overlap)
                        source, target = documents
                        yield Link((source, target), (first.split(), second.split()), overlap)
                    continue
                if element.tag == "linkGrp":
                    documents = ()
                # Only the elements that are open are kept in memory.
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise UserError(
                f"{path}: not well-formed XML ({error}); delete it and fetch it again"
            ) from None
        except (KeyError, ValueError):
            attributes = [f'{name}="{value}"' for name, value in element.attrib.items()]
            shown = " ".join([element.tag, *attributes])[:200]
            raise UserError(
                f"{path}: line {element.sourceline}: <{shown}> is not as in OPUS's alignments: "
                f'linkGrp with fromDoc and toDoc, in it link with xtargets="1 2;3" and a number '
                f"as overlap"
            ) from None


def read_document(archive: zipfile.ZipFile, document: str) -> dict[str, str]:
    """The sentences, by their number, of the document with this path in the alignment file; a
    `KeyError` without such one."""
    # Members lack the .gz of the alignment's paths, and in some releases the folders above, too.
    plain, folder = document.removesuffix(".gz"), known()["opensubtitles_text"].member
    names = (folder + plain, f"{folder}{plain}.gz", plain, document)
    name = next(filter(archive.NameToInfo.__contains__, names), None)
    if name is None:
        raise KeyError(f"{archive.filename}: {document}")
    shown = f"{archive.filename}: {name}"
    with refuse_damage(Path(archive.filename)), archive.open(name) as member:
        data = archives.document(member, name=shown)
    return sentences(data, name=shown)


def sentences(data: bytes, *, name: str) -> dict[str, str]:
    """The text of each `s` element by its `id`, with single spaces, also between the tokens of a
    tokenised document."""
    try:
        root = etree.fromstring(data, etree.XMLParser(**SAFE))
    except etree.XMLSyntaxError as error:
        raise BrokenDocument(f"{name}: not well-formed XML ({error})") from None
    refuse_entities(root, name=name)
    return {
        element.get("id", ""): single_spaces("".join(element.itertext()))
        for element in root.iter("s")
    }


def refuse_entities(element: etree._Element, *, name: str) -> None:
    """Refuse entities, by which a small file could expand without bound or read other files."""
    dtd = element.getroottree().docinfo.internalDTD
    declared = () if dtd is None else dtd.iterentities()
    if [*declared, *element.iter(etree.Entity)]:
        raise UserError(
            f"{name}: declares or uses entities of its own; no release of OPUS does, get it "
            f"elsewhere"
        )
