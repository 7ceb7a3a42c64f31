"""Packed files: what is read from each kind, and what damaged ones end in."""

import bz2
import gzip
import lzma
import zipfile
from functools import partial
from pathlib import Path

import pytest
from packing import tarred, zipped

from specialized_heads.corpus.readers.archives import (
    ALLOWANCE,
    ARCHIVES,
    check,
    lines,
    member,
    members,
    walk,
)
from specialized_heads.stage import UserError

LINES = [f"line {number} äß" for number in range(5000)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
COMPRESSED = {".gz": gzip.compress, ".xz": partial(lzma.compress, preset=0)}


@pytest.fixture
def packed(tmp_path: Path) -> dict[str, Path]:
    """The same text in every packing, by suffix."""
    (tmp_path / "x.txt").write_bytes(TEXT)
    for suffix, compress in COMPRESSED.items():
        (tmp_path / f"x{suffix}").write_bytes(compress(TEXT))
    found = {path.suffix: path for path in tmp_path.iterdir()}
    found[".zip"] = zipped(
        tmp_path / "x.zip", {"README.md": b"no data", "text/x.txt": TEXT, "__MACOSX/._x": b"\0"}
    )
    found[".tgz"] = tarred(tmp_path / "x.tgz", {"./LICENSE": b"no data", "./x.txt": TEXT})
    found[".tar"] = tarred(tmp_path / "x.tar", {"x.txt": TEXT})
    return found


def read(path: Path) -> list[str]:
    """The lines of a file, or of the only text in an archive."""
    if path.suffix not in ARCHIVES:
        return list(lines(path))
    return list(lines(member(path, next(name for name in members(path) if "x.txt" in name))))


@pytest.mark.parametrize("kind", [".txt", ".gz", ".xz", ".zip", ".tar", ".tgz"])
def test_every_packing_gives_the_same_lines(packed: dict[str, Path], kind: str) -> None:
    assert read(packed[kind]) == LINES
    check(packed[kind])


@pytest.mark.parametrize("kind", [".gz", ".xz", ".zip", ".tgz"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 0.999])
def test_a_truncated_file_is_found(packed: dict[str, Path], kind: str, share: float) -> None:
    path = packed[kind]
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    for reads in (check, read):
        said = rf"x{kind}: not a complete \w+ file \(.+\); delete it and fetch it again"
        with pytest.raises(UserError, match=said):
            reads(path)


def test_a_truncated_tar_gz_is_found_although_gzip_packs_it(tmp_path: Path) -> None:
    path = tarred(tmp_path / "x.tar.gz", {"x.txt": TEXT})
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match="not a complete"):
        check(path)


@pytest.mark.parametrize("kind", [".gz", ".xz", ".zip", ".tgz"])
def test_a_changed_byte_or_another_content_is_found(packed: dict[str, Path], kind: str) -> None:
    changed = bytearray(packed[kind].read_bytes())
    changed[len(changed) // 3] ^= 0xFF
    for content in (changed, b"<html>" * 100):
        packed[kind].write_bytes(content)
        with pytest.raises(UserError, match="not a complete"):
            check(packed[kind])


@pytest.mark.parametrize("kind", [".gz", ".xz", ".zip", ".tgz"])
def test_a_bomb_is_refused_before_it_fills_anything(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x{kind}"
    zeros = bytes(ALLOWANCE + (40 << 20))
    if kind == ".zip":
        zipped(path, {"x": zeros})
    elif kind == ".tgz":
        tarred(path, {"x": zeros})
    else:
        path.write_bytes(COMPRESSED[kind](zeros))
    with pytest.raises(UserError, match=r"unpacks to more than 100 times its size"):
        check(path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    tar = tarred(tmp_path / "x.tar.gz", {"x": b"1"}, links={"link": "/etc/passwd", "other": "x"})
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x", b"1")
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "secret")
    for path in (tar, tmp_path / "x.zip"):
        assert members(path) == ["x"]
        with pytest.raises(UserError, match="no file link in it; it holds x"):
            member(path, "link")


def test_members_by_name(tmp_path: Path) -> None:
    files = {"./a/x.en": b"one\n", "./a/x.ru": b"two\n"}
    for path in (zipped(tmp_path / "x.zip", files), tarred(tmp_path / "x.tar.gz", files)):
        assert members(path) == ["a/x.en", "a/x.ru"]
        # Two at a time, as aligned texts are read.
        first, second = member(path, "a/x.en"), member(path, "a/x.ru")
        assert (list(lines(second)), list(lines(first))) == (["two"], ["one"])
        expected = [("a/x.en", b"one\n"), ("a/x.ru", b"two\n")]
        assert [(name, stream.read()) for name, stream in walk(path)] == expected
        with pytest.raises(UserError, match=r"no file b in it; it holds a/x\.en, a/x\.ru"):
            member(path, "b")


def test_lines_end_in_several_ways(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("\ufeffone\r\ntwo\rand\u2028more\n\nlast".encode())
    assert list(lines(tmp_path / "x")) == ["one", "two\rand\u2028more", "", "last"]


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    content = b"good\nb\xe4d\n"
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UserError, match=r"x: line 2: not UTF-8 .*; convert the file to UTF-8"):
        list(lines(tmp_path / "x"))
    with pytest.raises(UserError, match=r"x\.zip: y: line 2: not UTF-8"):
        list(lines(member(zipped(tmp_path / "x.zip", {"y": content}), "y")))
    (tmp_path / "x.bz2").write_bytes(bz2.compress(b"good"))
    with pytest.raises(UserError, match=r"x\.bz2: line 1: packed by bzip2; unpack it"):
        list(lines(tmp_path / "x.bz2"))
    (tmp_path / "z").write_bytes(b"good\n" + b"a" * (2 << 20))
    said = "line 2: longer than 1048576 bytes; not a file of sentences"
    with pytest.raises(UserError, match=said):
        list(lines(tmp_path / "z"))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for name in ("none.txt", "none.gz", "none.zip", "none.tar"):
        with pytest.raises(UserError, match=rf"{name}: no such file"):
            read(tmp_path / name)
    with pytest.raises(UserError, match="Is a directory"):
        list(lines(tmp_path))
