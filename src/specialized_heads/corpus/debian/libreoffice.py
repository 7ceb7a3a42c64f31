"""LibreOffice help: paragraphs and headings with the same id in both languages are translations of each other.

Where a text depends on the system or the application, the default is used. Program listings are skipped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from lxml import etree

from specialized_heads.corpus.readers.archives import walk
from specialized_heads.corpus.readers.sentences import divide

PAGE = re.compile(r".*?libreoffice/help/.*?/text/(?P<page>.+)\.html")
CODE = {"code", "codeintable", "smathcode"}


def paragraphs(html: str) -> dict[str, str]:
    """The non-empty paragraphs and headings of a page by id, the first one if an id occurs twice."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    page = etree.HTML(html.replace("\0", "").encode(), parser)
    texts: dict[str, str] = {}
    for element in () if page is None else page.iter(etree.Element):
        name = element.get("id", "")
        if name.startswith(("par_", "hd_")) and element.get("class") not in CODE:
            texts.setdefault(name, " ".join(_text(element).split()))
    return {name: text for name, text in texts.items() if text}


def _text(element: etree._Element) -> str:
    """The text of an element.

    Of an inline switch (`<span class="switchinline">` with one hidden `<span>` per system or application) only the default
    is used, or the first option if there is none.
    """
    if element.tag == "br":
        return " "
    options = [child for child in element if "hidden" in child.attrib and element.get("class") == "switchinline"]
    parts = [element.text or ""]
    for child in element:
        parts += ["" if child in options else _text(child), child.tail or ""]
    if options:
        parts.append(_text(max(options, key=lambda option: option.get("id", "").startswith("default"))))
    return "".join(parts)


def align(source: dict[str, str], target: dict[str, str], *, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sentences of one page, whose paragraphs are given by id; `counts` gains `paragraph_without_translation`."""
    for name, text in source.items():
        if name in target:
            yield from divide(text, target[name])
        else:
            counts["paragraph_without_translation"] += 1


def rows(paths: Sequence[Path], *, language: str, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs with their page, in the order of the pages' names.

    Args:
        paths: text of the help packages of English and of the other `language`, as `debian_package` writes it.
        counts: gains `page_without_translation` and what `align` counts.
    """
    originals, translations = map(_pages, paths)
    for page, html in sorted(originals.items()):
        if page not in translations:
            counts["page_without_translation"] += 1
            continue
        for pair in align(paragraphs(html), paragraphs(translations[page]), counts=counts):
            yield *pair, f"libreoffice/{page}"


def _pages(path: Path) -> dict[str, str]:
    """HTML by name of the page, from usr/share/libreoffice/help/<language>/text/<page>.html."""
    pages = {}
    for name, stream in walk(path):
        if place := PAGE.fullmatch(name):
            pages[place["page"]] = stream.read().decode("utf-8", errors="replace")
    return pages
