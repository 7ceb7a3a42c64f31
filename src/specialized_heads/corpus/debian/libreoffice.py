"""LibreOffice help: paragraphs and headings with the same id in both languages are translations of each other.

Where a text depends on the system or the application, the default is used. Program listings are skipped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

from specialized_heads.corpus.readers.archives import walk
from specialized_heads.corpus.readers.sentences import divide

PAGE = re.compile(r".*?libreoffice/help/.*?/text/(?P<page>.+)\.html")
CODE = {"code", "codeintable", "smathcode"}


class Paragraphs(HTMLParser):
    """Collects the text of paragraphs and headings by id, in `texts`.

    Of an inline switch (`<span class="switchinline">` with one hidden `<span>` per system or application) only the default
    is used, or the first option if there is none.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: dict[str, str] = {}
        self.open_element: tuple[str, str] | None = None  # tag and id of the paragraph being read
        self.text: list[str] = []
        # The open spans: kind, and for a switch its options (whether it is the default, and its text), for an option the text
        # around it.
        self.spans: list[tuple[str, list]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name, style = attributes.get("id") or "", attributes.get("class") or ""
        if self.open_element is None:
            if name.startswith(("par_", "hd_")) and style not in CODE:
                self.open_element, self.text, self.spans = (tag, name), [], []
        elif tag == "br":
            self.text.append(" ")
        elif tag == "span" and style == "switchinline":
            self.spans.append(("switch", []))
        elif tag == "span" and "hidden" in attributes and any(kind == "switch" for kind, _ in self.spans):
            self.spans.append(("default" if name.startswith("default") else "option", self.text))
            self.text = []
        elif tag == "span":
            self.spans.append(("plain", []))

    def handle_endtag(self, tag: str) -> None:
        if self.open_element is None:
            return
        if tag == self.open_element[0]:
            self.texts.setdefault(self.open_element[1], " ".join("".join(self.text).split()))
            self.open_element = None
        elif tag == "span" and self.spans:
            kind, parts = self.spans.pop()
            if kind in ("default", "option"):
                options = next(parts for kind, parts in reversed(self.spans) if kind == "switch")
                options.append((kind == "default", "".join(self.text)))
                self.text = parts
            elif kind == "switch" and parts:
                self.text.append(max(parts, key=lambda option: option[0])[1])

    def handle_data(self, data: str) -> None:
        if self.open_element is not None:
            self.text.append(data)


def paragraphs(html: str) -> dict[str, str]:
    """The non-empty paragraphs of a page by id, the first one if an id occurs twice."""
    page = Paragraphs()
    page.feed(html)
    return {name: text for name, text in page.texts.items() if text}


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
        counts: gains `page_without_translation`, `broken_page` and what `align` counts.
    """
    originals, translations = map(_pages, paths)
    for page, html in sorted(originals.items()):
        if page not in translations:
            counts["page_without_translation"] += 1
            continue
        try:
            sides = paragraphs(html), paragraphs(translations[page])
        except AssertionError:  # a marked section that Python's parser does not know
            counts["broken_page"] += 1
            continue
        for pair in align(*sides, counts=counts):
            yield *pair, f"libreoffice/{page}"


def _pages(path: Path) -> dict[str, str]:
    """HTML by name of the page, from usr/share/libreoffice/help/<language>/text/<page>.html."""
    pages = {}
    for name, stream in walk(path):
        if place := PAGE.fullmatch(name):
            pages[place["page"]] = stream.read().decode("utf-8", errors="replace")
    return pages
