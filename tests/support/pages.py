"""The Markdown pages of the repository, taken apart: prose, blocks of code, code in the text, links, anchors."""

import re
import textwrap
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "specialized_heads"
GENERATED = ("results", "data", "build")  # and hidden folders: what others put there is not ours
FOLDERS = [
    path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name not in GENERATED
]
PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "results" / "README.md", *(page for folder in FOLDERS for page in folder.rglob("*.md"))]
)
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
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found
