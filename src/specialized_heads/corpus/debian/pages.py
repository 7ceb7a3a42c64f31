"""Pages of documentation as a sequence of blocks: headings, paragraphs, items and cells, in HTML or Mallard (GNOME).

A block's text excludes that of the blocks inside it. Listings, navigation and tables of contents are skipped.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

Block = tuple[str, str]  # kind and text; the text is empty if the page shows words that the file lacks

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
BLOCKS = HEADINGS | {"p", "li", "dt", "dd", "td", "th", "caption", "figcaption"}
SKIPPED = {"script", "style", "pre", "nav", "title", "textarea", "svg"}
SKIPPED_CLASSES = re.compile(
    r"nav(header|footer)|docnav|toc|related|sphinxsidebar|footer|headerlink|index|screen|programlisting"
)
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}

MALLARD_BLOCKS = {"p", "title", "desc"}
MALLARD_SKIPPED = {"credit", "comment", "screen", "listing", "revision"}
# Separators of the items of a menu path, and of keys pressed together.
JOINED = {"guiseq": " ▸ ", "keyseq": "+"}


class Html(HTMLParser):
    """Collects the blocks of an HTML page, in `blocks`, in the order of their starts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, list[str]]] = []
        self.open: list[tuple[str, bool]] = []  # tags of the open elements, and whether they are blocks
        self.tags = Counter[str]()  # of the open elements: pages may have thousands, and end tags without a start
        self.within: list[int] = []  # positions in `blocks` of the open blocks
        self.skipping: int | None = None  # number of open elements outside the skipped one

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            self.handle_data(" " if tag == "br" else "")
            return
        attributes = dict(attrs)
        styles = (attributes.get("class") or "").split()
        is_block = tag in BLOCKS or (tag == "div" and "para" in styles)  # the latter in Publican's books
        # HTML lets these elements end without an end tag.
        last = self.open[-1][0] if self.open else ""
        if (is_block and last == "p") or tag == last == "li":
            self.handle_endtag(last)
        is_block = is_block and self.skipping is None
        self.open.append((tag, is_block))
        self.tags[tag] += 1
        if self.skipping is None and (
            tag in SKIPPED
            or attributes.get("role") == "navigation"
            or any(SKIPPED_CLASSES.fullmatch(style) for style in styles)
        ):
            self.skipping = len(self.open) - 1
        if is_block:
            self.within.append(len(self.blocks))
            self.blocks.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.tags[tag]:
            return
        while True:
            ended, was_block = self.open.pop()
            self.tags[ended] -= 1
            if was_block:
                self.within.pop()
            if len(self.open) == self.skipping:
                self.skipping = None
            if ended == tag:
                return

    def handle_data(self, data: str) -> None:
        if self.skipping is None and self.within:
            self.blocks[self.within[-1]][1].append(data)


def html(text: str) -> list[Block]:
    """The blocks of an HTML page; a marked section (`<![...[`) that Python's parser does not know is an `AssertionError`."""
    page = Html()
    page.feed(text)
    return [(kind, " ".join("".join(parts).split())) for kind, parts in page.blocks]


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
