"""Stage debian_descriptions, and the reader of its archive: package descriptions of Debian and their translations (DDTP).

The stage fetches the descriptions of the system's sources in English and one other language. The archive holds a file per
language and index, and `index.json` with the releases that they belong to and their hashes.

Texts are joined by the hash of the English one, which guarantees that a translation is of exactly this text. The synopsis is one
pair. The long description is paired paragraph by paragraph and item by item if both sides have the same sequence of them;
otherwise it is dropped and counted. Verbatim lines are dropped too. The document is the package.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from specialized_heads.corpus.debian.apt import Apt, stanzas
from specialized_heads.corpus.debian.package import pack
from specialized_heads.corpus.readers.archives import lines, member, members
from specialized_heads.corpus.readers.sentences import divide
from specialized_heads.stage import Files, Section, UserError, command, file_hash, log

RELEASE = ("Origin", "Suite", "Codename", "Version", "Date")
ITEM = re.compile(r"\s*(?:[*+o•·]|--?|–)\s+(?=\S)")


def rows(paths: Sequence[Path], *, language: str, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs with their package, in the order of the English descriptions.

    Args:
        paths: one archive with descriptions in English and `language`, as `debian_descriptions` writes it.
        counts: gains `description_without_original`, `structure_differs` (translations) and `verbatim` (lines).

    Raises:
        UserError: no descriptions in one of the languages.
    """
    (path,) = paths
    translations: dict[str, str] = {}
    for _, key, text in _records(path, language):
        translations.setdefault(key, text)
    for package, key, text in _records(path, "en"):
        if translation := translations.pop(key, None):
            for pair in align(text, translation, counts=counts):
                yield *pair, f"descriptions/{package}"
    counts["description_without_original"] += len(translations)


def _records(path: Path, language: str) -> Iterator[tuple[str, str, str]]:
    """Package, hash of the English text, and description in this language."""
    wanted = ("Package", "Description-md5", f"Description-{language}")
    names = members(path)
    if not (own := [name for name in names if name.startswith(f"Translation-{language}/")]):
        there = sorted({name.partition("/")[0].partition("-")[2] for name in names if "/" in name})
        raise UserError(
            f"{path}: no package descriptions in {language}; there are {', '.join(there) or 'none'}; "
            "set descriptions to false, or delete the file to make it again"
        )
    for name in own:
        for record in stanzas("\n".join(lines(member(path, name)))):
            if record.keys() >= {*wanted}:
                yield tuple(record[field] for field in wanted)


def align(source: str, target: str, *, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a description: synopsis, then paragraphs and items, divided into sentences."""
    (synopsis, *left), (translated, *right) = source.split("\n"), target.split("\n")
    yield synopsis, translated
    ours, theirs = blocks(left), blocks(right)
    if [kind for kind, _ in ours] != [kind for kind, _ in theirs]:
        counts["structure_differs"] += 1
        return
    for (kind, text), (_, translation) in zip(ours, theirs):
        if kind == "verbatim":
            counts["verbatim"] += 1
        else:
            yield from divide(text, translation)


def blocks(lines: list[str]) -> list[tuple[str, str]]:
    """Kind (paragraph, item or verbatim) and text of each part of a long description.

    A line begins with one space; " ." is an empty one. Lines with more spaces are verbatim (Debian policy 5.6.13), unless
    they begin or continue an item.
    """
    parts: list[tuple[str, str]] = []
    new = True
    for line in lines:
        text = line[1:]
        if text.strip() in (".", ""):
            new = True
            continue
        if mark := ITEM.match(text):
            parts.append(("item", text[mark.end() :].strip()))
        elif text.startswith((" ", "\t")) and (new or parts[-1][0] != "item"):
            parts.append(("verbatim", text.strip()))
        elif new or (parts[-1][0] != "paragraph" and not text.startswith((" ", "\t"))):
            parts.append(("paragraph", text.strip()))
        else:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {text.strip()}")
        new = False
    return [(kind, " ".join(text.split())) for kind, text in parts]


class Settings(Section):
    """The language beside English."""

    language: str


def releases(lists: Path) -> list[dict[str, str]]:
    """Origin, suite and date of each release file."""
    entries = []
    for path in sorted([*lists.glob("*InRelease"), *lists.glob("*_Release")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        fields = {name: value for record in stanzas(text) for name, value in record.items()}
        entries.append({name.lower(): fields[name] for name in RELEASE if name in fields})
    return entries


@command("output", settings=Settings)
def main(files: Files, settings: Settings) -> None:
    """Write `--output` (a .tar.gz)."""
    language = settings.language
    with tempfile.TemporaryDirectory() as folder:
        Apt(Path(folder) / "index").update(languages=["en", language])
        lists = Path(folder) / "index" / "lists"
        texts = {f"{path.name.partition('_i18n_')[2]}/{path.name}": path for path in sorted(lists.glob("*_i18n_*"))}
        card = {"releases": releases(lists), "files": {name: file_hash(path) for name, path in texts.items()}}
        contents = [(name, path.read_bytes()) for name, path in texts.items()]
        pack(files.output, [("index.json", json.dumps(card, indent=2).encode()), *contents])
    log.info("debian_descriptions: %s; %s", card["releases"], ", ".join(texts) or "none")
