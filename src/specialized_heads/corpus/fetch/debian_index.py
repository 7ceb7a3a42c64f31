"""Stage debian_index: the package indices of the system's sources, and the package descriptions in all wanted languages.

The indices stay in a folder as apt's state, from which packages are fetched. The descriptions go into one archive, a file
per language and index, with `index.json` beside them: which releases they are of, and their hashes.
"""

import json
from pathlib import Path

from specialized_heads.corpus.fetch.apt import Apt, stanzas
from specialized_heads.corpus.fetch.debian_package import pack
from specialized_heads.stage import Section, arguments, file_hash, log, run

RELEASE = ("Origin", "Suite", "Codename", "Version", "Date")


class Settings(Section):
    """The languages of the descriptions."""

    languages: list[str]


def releases(lists: Path) -> list[dict[str, str]]:
    """What the archives say of themselves, one entry per release file."""
    found = []
    for path in sorted([*lists.glob("*InRelease"), *lists.glob("*_Release")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        fields = {name: value for record in stanzas(text.splitlines()) for name, value in record.items()}
        found.append({name.lower(): fields[name] for name in RELEASE if name in fields})
    return found


def main() -> None:
    """Write `--index` (a folder) and `--descriptions` (a .tar.gz)."""
    files = arguments(__doc__, files=["index", "descriptions"])
    languages = Settings.model_validate(files.settings).languages
    apt = Apt(files.index)
    apt.update(languages=languages)

    lists = files.index / "lists"
    texts = {f"{path.name.partition('_i18n_')[2]}/{path.name}": path for path in sorted(lists.glob("*_i18n_*"))}
    hashes = {name: file_hash(path) for name, path in texts.items()}
    card = {"releases": releases(lists), "files": hashes}
    contents = [
        ("index.json", json.dumps(card, indent=2).encode()),
        *((name, p.read_bytes()) for name, p in texts.items()),
    ]
    pack(files.descriptions, contents)
    log.info("debian_index: %s; descriptions: %s", card["releases"], ", ".join(texts) or "none")


if __name__ == "__main__":
    run(main)
