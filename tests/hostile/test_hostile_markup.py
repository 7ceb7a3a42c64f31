"""Hostile files out of packages and releases: XML, message catalogues and pages that were written to harm their reader."""

import gzip
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import read_json

FILM = "1999/1/1.xml.gz"
LINK = '<link xtargets="1;1" overlap="0.99"/>'
GROUP = f'<linkGrp fromDoc="en/{FILM}" toDoc="ru/{FILM}">{{}}</linkGrp>'
SENTENCE = "<document><s id='{}'>{}</s></document>"
LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi"))
BOMB = f'<!DOCTYPE d [<!ENTITY a "haha">{LAUGHS}]>'
OTHER_FILE = '<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
# Alignment and English text of subtitles, and what is said of them.
SUBTITLES = {
    "billion_laughs_in_the_alignment": (
        BOMB + GROUP.format(LINK),
        SENTENCE.format(1, "x"),
        "alignment.xml.gz: declares",
    ),
    "billion_laughs_in_the_text": (GROUP.format(LINK), BOMB + SENTENCE.format(1, "&i;"), "declares or uses entities"),
    "numbers_of_no_sentence": (GROUP.format(LINK), SENTENCE.format(99, "x"), "no pair was read", "'no_sentence': 1"),
}


@pytest.mark.parametrize("name", SUBTITLES)
def test_subtitles(run, refused, folder: Path, name: str) -> None:
    alignment, english, *said = SUBTITLES[name]
    (folder / "alignment.xml.gz").write_bytes(gzip.compress(alignment.encode()))
    for language, text in (("en", english), ("ru", SENTENCE.format(1, "да"))):
        with zipfile.ZipFile(folder / f"{language}.zip", "w") as archive:
            archive.writestr(f"OpenSubtitles/raw/{language}/{FILM.removesuffix('.gz')}", text)
    source = {"kind": "opensubtitles", "version": "v2018", "overlap": 0.9}
    settings = {"source": source, "source_language": "en", "target_language": "ru"}
    files = [folder / name for name in ("alignment.xml.gz", "en.zip", "ru.zip")]
    refused(run("corpus.raw", settings=settings, resource=files, output="out/raw.parquet", card="out/raw.json"), *said)


def catalogue(header: str = "Content-Type: text/plain; charset=UTF-8\n") -> bytes:
    """A .mo file of one message with a plural."""
    ids, texts = [b"", b"day\0days"], [header.encode(), "день\0дня".encode()]
    start = 28 + 16 * len(ids)
    data, tables = b"", []
    for strings in (ids, texts):
        table = b""
        for string in strings:
            table += struct.pack("<2I", len(string), start + len(data))
            data += string + b"\0"
        tables.append(table)
    return struct.pack("<7I", 0x950412DE, 0, len(ids), 28, 28 + 8 * len(ids), 0, 0) + b"".join(tables) + data


def changed(*places: tuple[int, int]) -> bytes:
    """The same with other numbers at some bytes."""
    data = bytearray(catalogue())
    for place, number in places:
        struct.pack_into("<I", data, place, number)
    return bytes(data)


def overlapping() -> bytes:
    """Five thousand messages of 50 000 letters each, in 60 000: half a gigabyte as text."""
    number = 5000
    table = b"".join(struct.pack("<2I", 50_000, 28 + 8 * number + n) for n in range(number))
    return struct.pack("<7I", 0x950412DE, 0, number, 28, 28, 0, 0) + table + b"a" * 60_000


CATALOGUES = {
    "four_thousand_million_messages": changed((8, 2**32 - 1)),
    "offsets_beyond_the_end": changed((12, 2**31)),
    "strings_that_overlap": overlapping(),
    "letters_of_no_encoding": catalogue("Content-Type: text/plain; charset=no-such\n"),
    "plural_that_divides_by_zero": catalogue("Plural-Forms: nplurals=2; plural=n%0;\n"),
    "plural_that_runs_python": catalogue("Plural-Forms: nplurals=2; plural=open('payload','w');\n"),
}


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


@pytest.mark.parametrize("name", CATALOGUES)
def test_message_catalogues(debian, refused, name: str) -> None:
    outcome = debian("gettext", [("ru/LC_MESSAGES/game.mo", CATALOGUES[name])])
    refused(outcome, "game.tar.gz: ru/LC_MESSAGES/game.mo: not a complete message catalogue", "fetch the package again")


@pytest.mark.parametrize(
    "card", [b"{", b"5", b"[5]", b'[{"name": "game"}]', b"[" * 100_000], ids=["cut", "number", "list", "part", "deep"]
)
def test_packages_that_say_nothing_of_themselves(debian, refused, card: bytes) -> None:
    outcome = debian("gettext", [("ru/LC_MESSAGES/game.mo", catalogue())], card=card)
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


def test_a_page_of_help_that_stops_the_parser_is_counted(debian, folder: Path) -> None:
    texts = {"bad": "<p id='par_1'>One.</p><![payload[two]]>", "good": "<p id='par_1'>Two.</p>"}
    files = [(f"libreoffice/help/xx/text/{name}.html", text.encode()) for name, text in texts.items()]
    assert debian("libreoffice", files).status == 0
    card = read_json(folder / "out" / "raw.json")
    assert (card["pairs"], card["dropped"]) in [(1, {"libreoffice_broken_page": 1}), (2, {})]
