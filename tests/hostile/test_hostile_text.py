"""Hostile text and archives: every one ends in one line, on its way from the raw stage to the vocabularies."""

import gzip
import io
import lzma
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Payload

from specialized_heads.config.sections import Filters

LANGUAGES = {"source_language": "en", "target_language": "fr"}
WORDS = [f"{a}{b}{a}" for a in "bcdfghjklm" for b in "aeiouvwxyz"] * 2
GOOD = "".join(f"one {word}\tun {word[1:]}{n:o}\n" for n, word in enumerate(WORDS)).encode()


def tsv(content: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "pairs.tsv").write_bytes(content)
        return "pairs.tsv"

    return make


def packed(name: str, content: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return name

    return make


def zipped(*files: tuple[str, bytes], change: Callable[[bytearray], None] = lambda _: None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    content = bytearray(buffer.getvalue())
    change(content)
    return bytes(content)


def with_password(content: bytearray) -> None:
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1


def claims_to_be_huge(content: bytearray) -> None:
    struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, 2**32 - 2)


def tarred(*members: tuple[str, bytes, str]) -> bytes:
    """Members as (name, type, what a link leads to)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(GOOD) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(GOOD))
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


def folder_instead(folder: Path) -> str:
    (folder / "pairs.tsv").mkdir()
    return "pairs.tsv"


BLANKS = (b" " * 65_535 + b"\n") * 16  # a mebibyte of lines without text
CORPORA = {
    "latin_1": (tsv(GOOD + "é\tà\n".encode("latin-1")), "pairs.tsv: line 201: not UTF-8", "convert the file to UTF-8"),
    "utf_16": (tsv(GOOD.decode().encode("utf-16")), "pairs.tsv: line 1: not UTF-8"),
    "one_column": (tsv(GOOD + b"no tab here\n"), "pairs.tsv: line 201: no tab"),
    "ten_megabytes_in_a_line": (tsv(GOOD + b"a" * 10_000_000), "pairs.tsv: line 201: longer than 1048576 bytes"),
    "no_line_at_all": (tsv(b""), "pairs.tsv: the file is empty"),
    "white_space_alone": (tsv(b" \n\t\n" * 100), "pairs.tsv: the file is empty"),
    "translation_memory": (
        packed("pairs.tmx", b'<?xml version="1.0"?>\n<tmx><tu/></tmx>\n'),
        "pairs.tmx: line 1: no tab",
    ),
    "folder": (folder_instead, "pairs.tsv: no such file"),
    "parquet_of_other_columns": (
        parquet(pa.table({"src": ["a"], "tgt": ["b"]})),
        "column source is missing",
        "src, tgt",
    ),
    "parquet_of_numbers": (
        parquet(pa.table({"source": [1], "target": ["b"]})),
        "column source is int64; it must be text",
    ),
    "parquet_of_lists": (parquet(pa.table({"source": [["a"]], "target": ["b"]})), "column source is list"),
    "parquet_of_pickles": (
        parquet(pa.table({"source": [pickle.dumps(Payload())], "target": ["b"]})),
        "column source is binary; it must be text",
    ),
    "parquet_of_broken_letters": (invalid_letters, "pairs.parquet: rows 1 to 1: column source is not UTF-8"),
    "parquet_that_is_none": (packed("pairs.parquet", GOOD), "pairs.parquet: not a complete parquet file"),
}
ARCHIVES = {
    "zip_slip": (packed("x.zip", zipped(("../payload", GOOD))), "x.zip: ", "'../payload', which leads out of it"),
    "tar_slip": (packed("x.tgz", tarred(("a/../../payload", tarfile.REGTYPE, ""))), "which leads out of it"),
    "absolute_path": (packed("x.tar.gz", tarred(("/tmp/payload", tarfile.REGTYPE, ""))), "which leads out of it"),
    "symbolic_link": (packed("x.tgz", tarred(("pairs.tsv", tarfile.SYMTYPE, "/etc/passwd"))), "holds nothing"),
    "hard_link": (packed("x.tgz", tarred(("pairs.tsv", tarfile.LNKTYPE, "/etc/passwd"))), "holds nothing"),
    "device_and_pipe": (
        packed("x.tgz", tarred(("pairs.tsv", tarfile.CHRTYPE, ""), ("more.tsv", tarfile.FIFOTYPE, ""))),
        "x.tgz: must hold one file of text but holds nothing",
    ),
    "zip_that_claims_to_be_huge": (
        packed("x.zip", zipped(("pairs.tsv", GOOD), change=claims_to_be_huge)),
        "x.zip: unpacks to more than 100 times its size",
    ),
    "bomb": (packed("x.xz", lzma.compress(BLANKS, preset=0) * 90), "unpacks to more than 100 times its size"),
    "archive_in_an_archive": (
        packed("x.zip", zipped(("y.zip", zipped(("pairs.tsv", GOOD))))),
        "x.zip: y.zip: line 1: ",
    ),
    "password": (packed("x.zip", zipped(("pairs.tsv", GOOD), change=with_password)), "x.zip: ", "password required"),
    "gzip_that_ends": (packed("x.tsv.gz", gzip.compress(GOOD)[:-20]), "x.tsv.gz: not a complete gz file"),
    "xz_that_ends": (packed("x.tsv.xz", lzma.compress(GOOD)[:-40]), "x.tsv.xz: not a complete xz file"),
    "zstd_that_ends": (
        packed("x.tsv.zst", pa.compress(GOOD, "zstd", asbytes=True)[:-20]),
        "x.tsv.zst: not a complete zst file",
    ),
    "page_instead_of_a_file": (
        packed("x.zip", b"<!doctype html><html>"),
        "x.zip: not a complete zip file",
        "fetch it again",
    ),
    "names_of_several_lines": (
        packed("x.tgz", tarred(("a\nerror: b\x1b[2J", tarfile.REGTYPE, ""), ("c", tarfile.REGTYPE, ""))),
        r"holds a\nerror: b\x1b[2J, c",
    ),
}


@pytest.mark.parametrize("name", [*CORPORA, *ARCHIVES])
def test_text_that_cannot_be_read(run, refused, folder: Path, name: str) -> None:
    make, *said = (CORPORA | ARCHIVES)[name]
    path = make(folder)
    settings = {"source": {"kind": "local", "path": path}} | LANGUAGES
    outcome = run("corpus.raw", settings=settings, resource=[path], output="out/raw.parquet", card="out/raw.json")
    refused(outcome, *said)


@pytest.mark.parametrize("name", ["byte_order_mark_and_crlf", "zero_bytes"])
def test_odd_text_that_is_read_as_what_it_is(run, folder: Path, name: str) -> None:
    """From the file to two vocabularies."""
    lines = "".join(f"one {a} {b}\tun {b} {a}\n" for a, b in zip(WORDS[:100], WORDS[37:])).encode()
    odd = {
        "byte_order_mark_and_crlf": b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"),
        "zero_bytes": lines.replace(b" ", b" \0", 50),
    }
    (folder / "pairs.tsv").write_bytes(odd[name])
    names = ("raw", "clean", "train", "dev", "test", "analysis")
    raw, clean, *parts = (folder / "out" / f"{name}.parquet" for name in names)
    sets = dict(zip(names[2:], parts, strict=True))
    cards = {name: folder / "out" / f"{name}.json" for name in ("raw", "clean", "counts")}
    source = {"source": {"kind": "local", "path": "pairs.tsv"}} | LANGUAGES
    filters = {"filters": Filters().model_dump()} | LANGUAGES
    sizes = {"split": {"dev": 5, "test": 5, "analysis": 5}}
    vocabulary = {"vocabulary": {"source": 40, "target": 40}} | LANGUAGES
    done = [
        run("corpus.raw", settings=source, resource=["pairs.tsv"], output=raw, card=cards["raw"]),
        run("corpus.clean", settings=filters, input=raw, output=clean, counts=cards["clean"]),
        run(
            "corpus.split",
            settings=sizes,
            input=clean,
            raw_card=cards["raw"],
            clean_counts=cards["clean"],
            counts=cards["counts"],
            **sets,
        ),
        run("corpus.bpe", settings=vocabulary, train=sets["train"], source_model="source", target_model="target"),
    ]
    assert [(outcome.status, outcome.said) for outcome in done] == [(0, "")] * 4
    rows = pq.read_table(clean).to_pylist()
    assert len(rows) == 100
    assert rows[0]["source"] == "one bab fxf"
    assert not [letter for row in rows for letter in row["source"] + row["target"] if not letter.isprintable()]
