"""Manuals in several languages: pages whose paths differ only in the language, paired block by block.

Manuals are translated message by message (po4a, itstool), so a translated page has the structure of its original, unless
it belongs to another version. Pages are compared section by section (a heading and what follows it). If both have the same
sequence of kinds of blocks, the blocks are paired and divided into sentences; other sections are dropped, and their blocks
counted. The clean stage drops blocks that are still in English.

A page, in HTML or Mallard (GNOME), is a sequence of blocks: headings, paragraphs, items and cells. The text of a block excludes
that of the blocks inside it. Listings, navigation and tables of contents are skipped.
"""

import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lxml import etree

from specialized_heads.corpus.readers.archives import document, members, walk
from specialized_heads.corpus.readers.sentences import divide, has_letters
from specialized_heads.stage import UserError

Block = tuple[str, str]  # kind and text; the text is empty if the page shows words that the file lacks

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
BLOCKS = HEADINGS | {"p", "li", "dt", "dd", "td", "th", "caption", "figcaption"}
SKIPPED = {"script", "style", "pre", "nav", "title", "textarea", "svg"}
SKIPPED_CLASSES = re.compile(
    r"nav(header|footer)|docnav|toc|related|sphinxsidebar|footer|headerlink|index|screen|programlisting"
)

MALLARD_BLOCKS = {"p", "title", "desc"}
MALLARD_SKIPPED = {"credit", "comment", "screen", "listing", "revision"}
# Separators of the items of a menu path, and of keys pressed together.
JOINED = {"guiseq": " ▸ ", "keyseq": "+"}

ENGLISH = {"C", "en", "en-US", "en_US"}
PAGE = re.compile(r".+\.(html|page)(\.gz)?")
# What a stylesheet puts before a title ("6.13.2.", "Figure 15.23."), and marks of footnotes.
LABEL = re.compile(r"(?:[^\W\d_]+ )?(?:[A-Z]\.)?\d+(?:\.\d+)*\.(?: |$)")
FOOTNOTE = re.compile(r" ?\[\d+\]")
# What unpacking and the parsers raise for a broken page.
BROKEN = (ElementTree.ParseError, UnicodeDecodeError, OSError, EOFError, zlib.error, RecursionError)


def rows(paths: Sequence[Path], *, language: str, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs with their page. A page is yielded once it has been read in both languages.

    Args:
        paths: text of packages, as `debian_package` writes it; the two languages may be in one package or in two.
        counts: gains `page_without_original`, `broken_page`, and what `align` counts.

    Raises:
        UserError: no page in this language, or one that unpacks to too much.
    """
    names = {f"{language}{mark}{language.upper()}" for mark in "_-"}
    names |= {language, language.replace("-", "_"), language.replace("_", "-")}
    sides: dict[str, tuple[int, str]] = {}  # of each page: 0 or 1 for a translation, and its name without the language
    for name in (name for path in paths for name in members(path) if PAGE.fullmatch(name)):
        if (key := without_language(name, languages=names)) is not None:
            sides[name] = 1, key
        else:
            sides[name] = 0, without_language(name, languages=ENGLISH) or name.removesuffix(".gz")
    originals, translations = ({key for side, key in sides.values() if side == wanted} for wanted in (0, 1))
    both = originals & translations
    if not both:
        raise UserError(
            f"{', '.join(map(str, paths))}: no page in English and in {language}; name the package of the translation "
            "in manuals, too"
        )
    counts["page_without_original"] += len(translations - both)

    waiting: dict[str, dict[int, list[Block]]] = defaultdict(dict)  # blocks of the pages read so far, by key and side
    for path, (name, stream) in ((package, file) for package in paths for file in walk(package)):
        side, key = sides.get(name, (0, None))
        if key not in both or side in waiting[key]:
            continue
        try:
            waiting[key][side] = _read(f"{path}: {name}", stream)
        except BROKEN:
            counts["broken_page"] += 1
            continue
        if len(waiting[key]) == 2:
            both.remove(key)
            blocks = waiting.pop(key)
            for pair in align(blocks[0], blocks[1], counts=counts):
                yield *pair, f"manuals/{key}"


def without_language(name: str, *, languages: set[str]) -> str | None:
    """The path of a page without its language; None if it is in none of these languages.

    The language is a folder (help/ru/x.page), before the suffix (x.ru.html) or after a package (doc/maint-guide-ru/x.html).
    """
    *folders, last = PurePosixPath(name).parts
    kept = [
        next((folder.removesuffix(f"-{code}") for code in languages if folder.endswith(f"-{code}")), folder)
        for folder in folders
        if folder not in languages
    ]
    stem, _, suffix = last.partition(".")
    code, _, rest = suffix.partition(".")
    kept.append(f"{stem}.{rest}" if code in languages and rest else last)
    return None if kept == [*folders, last] else "/".join(kept).removesuffix(".gz")


def _read(name: str, stream: BinaryIO) -> list[Block]:
    text = document(stream, name=name, remedy="fetch the package again").decode("utf-8")
    return mallard(text) if name.removesuffix(".gz").endswith(".page") else html(text)


def align(source: list[Block], target: list[Block], *, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sentences of a page and its translation.

    `counts` gains blocks: `structure_differs`, and `no_text` (one side has no text, or only part of what a reader sees).
    """
    ours, theirs = _sections(source), _sections(target)
    # Sections are compared one by one only if the headings match.
    if [section[0][0] for section in ours] != [section[0][0] for section in theirs]:
        counts["structure_differs"] += len(source)
        return
    for section, translation in zip(ours, theirs):
        if [kind for kind, _ in section] != [kind for kind, _ in translation]:
            counts["structure_differs"] += len(section)
            continue
        for (_, text), (_, other) in zip(section, translation):
            labels = LABEL.match(text), LABEL.match(other)
            if all(labels):
                text, other = text[labels[0].end() :], other[labels[1].end() :]
            text, other = FOOTNOTE.sub("", text).strip(), FOOTNOTE.sub("", other).strip()
            if has_letters(text) and has_letters(other):
                yield from divide(text, other)
            else:
                counts["no_text"] += 1


def _sections(blocks: list[Block]) -> list[list[Block]]:
    sections: list[list[Block]] = []
    for block in blocks:
        if block[0] in HEADINGS or not sections:
            sections.append([])
        sections[-1].append(block)
    return sections


def html(text: str) -> list[Block]:
    """The blocks of an HTML page, in the order of their starts."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    page = etree.HTML(text.replace("\0", "").encode(), parser)
    blocks: list[tuple[str, list[str]]] = []
    if page is not None:
        _visit(page, [], blocks)
    return [(kind, " ".join("".join(parts).split())) for kind, parts in blocks]


def _visit(element: etree._Element, text: list[str], blocks: list[tuple[str, list[str]]]) -> None:
    """Append the text of an element to that of the block around it, or to a block of its own."""
    styles = element.get("class", "").split()
    skipped = element.tag in SKIPPED or element.get("role") == "navigation"
    if skipped or any(map(SKIPPED_CLASSES.fullmatch, styles)):
        return
    if element.tag == "br":
        text.append(" ")
    if element.tag in BLOCKS or (element.tag == "div" and "para" in styles):  # the latter in Publican's books
        text = []
        blocks.append((element.tag, text))
    text.append(element.text or "")
    for child in element:
        _visit(child, text, blocks)
        text.append(child.tail or "")


def mallard(text: str) -> list[Block]:
    """The blocks of a Mallard page.

    Raises:
        ElementTree.ParseError: it is not well-formed, or its entities expand too far. RecursionError: it is nested too deeply.
    """
    return list(_blocks(ElementTree.fromstring(text)))


def _blocks(element: ElementTree.Element) -> Iterator[Block]:
    tag = _tag(element)
    if tag in MALLARD_SKIPPED:
        return
    if tag in MALLARD_BLOCKS:
        kind = "h1" if tag == "title" else tag
        yield kind, "" if element.get("type") or _has_gap(element) else " ".join(_text(element).split())
        return
    for child in element:
        yield from _blocks(child)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"


def _has_gap(element: ElementTree.Element) -> bool:
    """Whether it has a link without words, where the page shows the title of another page."""
    return any(_tag(child) == "link" and not "".join(child.itertext()).strip() for child in element.iter())


def _text(element: ElementTree.Element) -> str:
    if between := JOINED.get(_tag(element)):
        return between.join(" ".join(_text(child).split()) for child in element)
    parts = [element.text or ""]
    for child in element:
        if _tag(child) != "comment":
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)
