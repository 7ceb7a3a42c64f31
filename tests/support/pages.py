"""The Markdown pages of the repository, taken apart: prose, blocks of code, code in the text,
links, anchors."""

import re
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "specialized_heads"
FOLDERS = ("benchmarks", "config", "docs", "resources")
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "results/README.md",
    *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md")),
]
PAGES.sort()
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", flags=re.MULTILINE | re.DOTALL)


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, *languages: str) -> list[str]:
    """The blocks of code of a page in one of these languages; "" for those without one."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(block) for language, block in found if language in languages]


def code(page: Path) -> list[str]:
    """What stands between backticks in the text of a page."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def links(page: Path) -> list[str]:
    """Where the links and images of a page lead."""
    text = re.sub(r"`[^`]*`", "", prose(page))
    places = (r"\]\(([^)\s]+)\)", r"<(https?:[^>\s]*)>", r'(?:src|href)="([^"]*)"')
    return [link for place in places for link in re.findall(place, text)]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page get where repositories are shown."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in texts}
