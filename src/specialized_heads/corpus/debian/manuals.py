"""Manuals in several languages: pages whose paths differ only in the language, paired block by block.

Manuals are translated message by message (po4a, itstool), so a translated page has the structure of its original, unless
it belongs to another version. Pages are compared section by section (a heading and what follows it). If both have the same
sequence of kinds of blocks, the blocks are paired and divided into sentences; other sections are dropped, and their blocks
counted. The clean stage drops blocks that are still in English.
"""

import gzip
import io
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from specialized_heads.corpus.debian.pages import HEADINGS, Block, html, mallard
from specialized_heads.corpus.readers.archives import members, walk
from specialized_heads.corpus.readers.sentences import divide, has_letters
from specialized_heads.stage import UserError

ENGLISH = {"C", "en", "en-US", "en_US"}
PAGE = re.compile(r".+\.(html|page)(\.gz)?")
# What a stylesheet puts before a title ("6.13.2.", "Figure 15.23."), and marks of footnotes.
LABEL = re.compile(r"(?:[^\W\d_]+ )?(?:[A-Z]\.)?\d+(?:\.\d+)*\.(?: |$)")
FOOTNOTE = re.compile(r" ?\[\d+\]")
LARGEST = 64 << 20  # bytes of one unpacked page
# What unpacking and the parsers raise for a broken page.
BROKEN = (ElementTree.ParseError, UnicodeDecodeError, OSError, EOFError, zlib.error, AssertionError, RecursionError)


def rows(paths: Sequence[Path], *, language: str, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs with their page. A page is yielded once it has been read in both languages.

    Args:
        paths: text of packages, as `debian_package` writes it; the two languages may be in one package or in two.
        language: of the translations, such as "ru".
        counts: gains `page_without_original`, `broken_page`, and what `align` counts.

    Raises:
        UserError: no page in this language, or one that unpacks to too much.
    """
    names = {f"{language}{mark}{language.upper()}" for mark in "_-"}
    names |= {language, language.replace("-", "_"), language.replace("_", "-")}
    places: tuple[dict[str, str], dict[str, str]] = ({}, {})  # of originals and of translations, by the page's name
    for path in paths:
        for name in filter(PAGE.fullmatch, members(path)):
            key = without_language(name, languages=names)
            if key is not None:
                places[1][name] = key
            else:
                places[0][name] = without_language(name, languages=ENGLISH) or name.removesuffix(".gz")
    both = set(places[0].values()) & set(places[1].values())
    if not both:
        raise UserError(
            f"{', '.join(map(str, paths))}: no page in English and in {language}; name the package of the translation "
            "in manuals, too"
        )
    counts["page_without_original"] += len(set(places[1].values()) - both)

    waiting: dict[str, tuple[int, list[Block]]] = {}
    for path in paths:
        for name, stream in walk(path):
            side = int(name in places[1])
            key = places[side].get(name)
            if key not in both or key in waiting and waiting[key][0] == side:
                continue
            try:
                blocks = _read(path, name, stream.read())
            except BROKEN:
                counts["broken_page"] += 1
                continue
            if key not in waiting:
                waiting[key] = (side, blocks)
                continue
            both.remove(key)
            sides = (blocks, waiting.pop(key)[1])
            for pair in align(*(reversed(sides) if side else sides), counts=counts):
                yield *pair, f"manuals/{key}"


def without_language(name: str, *, languages: set[str]) -> str | None:
    """The path of a page without its language; None if it is in none of these languages.

    The language is a folder (help/ru/x.page), before the suffix (x.ru.html) or after a package (doc/maint-guide-ru/x.html).
    """
    parts = PurePosixPath(name).parts
    kept = []
    for part in parts[:-1]:
        package = next((part.removesuffix(f"-{code}") for code in languages if part.endswith(f"-{code}")), part)
        if part not in languages:
            kept.append(package)
    stem, dot, suffix = parts[-1].partition(".")
    code, _, rest = suffix.partition(".")
    last = f"{stem}.{rest}" if code in languages and rest else parts[-1]
    key = "/".join([*kept, last]).removesuffix(".gz")
    return key if [*kept, last] != list(parts) else None


def _read(path: Path, name: str, data: bytes) -> list[Block]:
    packed = io.BytesIO(data)
    page = (gzip.GzipFile(fileobj=packed) if name.endswith(".gz") else packed).read(LARGEST + 1)
    if len(page) > LARGEST:
        raise UserError(
            f"{path}: {name}: larger than {LARGEST} bytes; so this is not a manual; fetch the package again"
        )
    text = page.decode("utf-8")
    return mallard(text) if name.removesuffix(".gz").endswith(".page") else html(text)


def align(source: list[Block], target: list[Block], *, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sentences of a page and its translation.

    Args:
        counts: gains blocks, `structure_differs` and `no_text` (one side has no text, or only part of what a reader sees).
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
