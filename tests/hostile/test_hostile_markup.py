"""Hostile files out of packages: descriptions and pages that were written to harm their reader."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import read_json

LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi"))
BOMB = f'<!DOCTYPE d [<!ENTITY a "haha">{LAUGHS}]>'
OTHER_FILE = '<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>'


@pytest.fixture
def debian(run, folder: Path) -> Callable:
    """`debian("gettext", files, ...)`: the raw stage of a source that reads one package with these files."""

    def call(kind: str, files: list[tuple[str, bytes]], *, card: bytes = b'[{"name": "game", "licences": []}]'):
        for name in ("libreoffice-help-en-us", "libreoffice-help-ru") if kind == "libreoffice" else ("game",):
            (folder / "debian").mkdir(exist_ok=True)
            pack(folder / "debian" / f"{name}.tar.gz", [*files, ("packages.json", card)])
        packages = sorted((folder / "debian").iterdir())
        source = {"kind": "debian", kind: True if kind == "libreoffice" else ["game"]}
        settings = {"source": source, "source_language": "en", "target_language": "ru"}
        return run("corpus.raw", settings=settings, resource=packages, output="out/raw.parquet", card="out/raw.json")

    return call


@pytest.mark.parametrize(
    "card", [b"{", b"5", b"[5]", b'[{"name": "game"}]', b"[" * 100_000], ids=["cut", "number", "list", "part", "deep"]
)
def test_packages_that_say_nothing_of_themselves(debian, refused, card: bytes) -> None:
    outcome = debian(
        "gettext", [("ru/LC_MESSAGES/game.mo", struct.pack("<7I", 0x950412DE, 0, 0, 28, 28, 0, 0))], card=card
    )
    refused(outcome, "debian/game.tar.gz: the pipeline did not write its description", "delete the file")


MALLARD = "<page xmlns='http://projectmallard.org/1.0/'><p>{}</p></page>"
PAGES = {
    "billion_laughs.page": BOMB + MALLARD.format("&i;"),
    "external_entity.page": OTHER_FILE + MALLARD.format("&e;"),
    "nested.page": MALLARD.format("<a>" * 100_000 + "</a>" * 100_000),
    "marked_section.html": "<p>one</p><![payload[two]]>",
    "unfinished.html": "<p>one <!DOCTYPE [ <!ENTITY",
    "ends_of_nothing.html": "<div>" * 30_000 + "</p>" * 30_000,
}


def test_pages_that_harm_their_reader_are_counted_and_others_read(debian, folder: Path) -> None:
    texts = PAGES | {"good.html": "<p>One good page.</p>"}
    files = [(f"help/{place}/{name}", text.encode()) for place in ("C", "ru") for name, text in texts.items()]
    packed = gzip.compress(b"<p>one</p>" * 10)[:-9]
    files += [(f"help/{place}/cut.html.gz", packed) for place in ("C", "ru")]
    outcome = debian("manuals", files)
    assert (outcome.status, outcome.said) == (0, "")
    card = read_json(folder / "out" / "raw.json")
    # Three in Mallard and the cut one, in both languages; newer releases of Python read the one with a marked section.
    assert card["dropped"]["manuals_broken_page"] in (8, 10)
    texts = pq.read_table(folder / "out" / "raw.parquet")["source"].to_pylist()
    assert {"One good page.", "one"} >= set(texts) >= {"One good page."}


def test_a_page_that_unfolds_too_far(debian, refused) -> None:
    files = [(f"help/{place}/a.html.gz", gzip.compress(bytes(65 << 20), 1)) for place in ("C", "ru")]
    refused(debian("manuals", files), "help/C/a.html.gz: larger than 67108864 bytes", "fetch the package again")
