"""Hostile text and archives: every one ends in one line, on its way from the raw stage to the vocabularies."""

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Payload

LANGUAGES = {"source_language": "en", "target_language": "fr"}
WORDS = [f"{a}{b}{a}" for a in "bcdfghjklm" for b in "aeiouvwxyz"] * 2
GOOD = "".join(f"one {word}\tun {word[1:]}{n:o}\n" for n, word in enumerate(WORDS)).encode()


def packed(name: str, content: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return name

    return make


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def parquet(table: pa.Table) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        pq.write_table(table, folder / "pairs.parquet")
        return "pairs.parquet"

    return make


def invalid_letters(folder: Path) -> str:
    """Bytes that are no UTF-8, in a column that says it is text."""
    buffers = [None, pa.py_buffer(struct.pack("<2i", 0, 3)), pa.py_buffer(b"a\xff\xfe")]
    broken = pa.Array.from_buffers(pa.string(), 1, buffers)
    return parquet(pa.table({"source": broken, "target": ["x"]}))(folder)


CORPORA = {
    "parquet_of_pickles": (
        parquet(pa.table({"source": [pickle.dumps(Payload())], "target": ["b"]})),
        "column source is binary; it must be text",
    ),
    "parquet_of_broken_letters": (invalid_letters, "pairs.parquet: rows 1 to 1: column source is not UTF-8"),
    "archive_in_an_archive": (
        packed("x.zip", zipped("y.zip", zipped("pairs.tsv", GOOD))),
        "x.zip: y.zip: line 1: ",
    ),
    "name_of_several_lines": (
        packed("x.zip", zipped("a\nerror: b\x1b[2J", b"\xff\n")),
        r"x.zip: a\nerror: b\x1b[2J: line 1: not UTF-8",
    ),
}


@pytest.mark.parametrize("name", CORPORA)
def test_text_that_cannot_be_read(run, refused, folder: Path, name: str) -> None:
    make, *said = CORPORA[name]
    path = make(folder)
    settings = {"source": {"kind": "local", "path": path}} | LANGUAGES
    outcome = run("corpus.raw", settings=settings, resource=[path], output="out/raw.parquet", card="out/raw.json")
    refused(outcome, *said)
