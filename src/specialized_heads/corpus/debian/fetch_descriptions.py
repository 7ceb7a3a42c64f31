"""Stage debian_descriptions: the package descriptions of the system's sources, in English and one other language.

One archive per language holds a file per language and index, and `index.json` with the releases that they belong to and their
hashes.
"""

import json
import tempfile
from pathlib import Path

from specialized_heads.corpus.debian.apt import Apt, stanzas
from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import Section, arguments, file_hash, log, run

RELEASE = ("Origin", "Suite", "Codename", "Version", "Date")


class Settings(Section):
    """The language beside English."""

    language: str


def releases(lists: Path) -> list[dict[str, str]]:
    """Origin, suite and date of each release file."""
    entries = []
    for path in sorted([*lists.glob("*InRelease"), *lists.glob("*_Release")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        fields = {name: value for record in stanzas(text.splitlines()) for name, value in record.items()}
        entries.append({name.lower(): fields[name] for name in RELEASE if name in fields})
    return entries


def main() -> None:
    """Write `--output` (a .tar.gz)."""
    files = arguments(__doc__, files=["output"])
    language = Settings.model_validate(files.settings).language
    with tempfile.TemporaryDirectory() as folder:
        Apt(Path(folder) / "index").update(languages=["en", language])
        lists = Path(folder) / "index" / "lists"
        texts = {f"{path.name.partition('_i18n_')[2]}/{path.name}": path for path in sorted(lists.glob("*_i18n_*"))}
        card = {"releases": releases(lists), "files": {name: file_hash(path) for name, path in texts.items()}}
        contents = [(name, path.read_bytes()) for name, path in texts.items()]
        pack(files.output, [("index.json", json.dumps(card, indent=2).encode()), *contents])
    log.info("debian_descriptions: %s; %s", card["releases"], ", ".join(texts) or "none")


if __name__ == "__main__":
    run(main)
