"""What a download brings is believed only when it is whole, and what was asked for; nothing half-written may pass for it."""

import gzip
from pathlib import Path

import pytest
from downloads import DATA, SHA256, left, partial_of
from packing import tarred, zipped

from specialized_heads.stage import UserError


def test_a_wrong_hash_or_size_leaves_nothing(server, get, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"sha256 {SHA256}, expected {'0' * 64}; it was removed"):
        get(sha256="0" * 64)
    assert left(tmp_path / "data") == set()
    with pytest.raises(UserError, match="the server's file has 300000 bytes, expected 5"):
        get(bytes=5)
    server.length = False
    with pytest.raises(UserError, match="the downloaded file has 300000 bytes, expected 5; it was removed"):
        get(bytes=5)
    assert left(tmp_path / "data") == set()


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.txt", "x.bin"])
def test_a_page_is_no_file(server, get, tmp_path: Path, name: str) -> None:
    server.content = b"\r\n<!DOCTYPE html><html><body>Please log in" + b" " * 5000
    with pytest.raises(UserError, match="sends an HTML page instead of the file; .* by hand as"):
        get(name)
    assert len(server.asked) == 1
    assert left(tmp_path / "data") == set()


def test_a_page_does_not_destroy_what_has_arrived(server, get, tmp_path: Path) -> None:
    server.cut = [100_000, 0, 0, 0]
    with pytest.raises(UserError):
        get()
    server.content, server.headers = b"<html>maintenance</html>", {}
    with pytest.raises(UserError, match="HTML page"):
        get()
    assert partial_of(tmp_path / "data" / "x.bin").read_bytes() == DATA[:100_000]


def test_an_archive_that_the_server_calls_a_page_is_one(server, get) -> None:
    server.headers = {"Content-Type": "text/html"}
    server.content = gzip.compress(b"text")
    assert gzip.decompress(get("x.gz").read_bytes()) == b"text"


def archive(name: str, folder: Path) -> bytes:
    """A small archive of the kind that the name says."""
    if name == "x.gz":
        return gzip.compress(DATA)
    return (zipped if name == "x.zip" else tarred)(folder / name, {"x.en": DATA}).read_bytes()


@pytest.mark.parametrize("name", ["x.gz", "x.zip", "x.tgz"])
@pytest.mark.parametrize("length", [True, False])
def test_a_truncated_archive_never_gets_its_name(server, get, tmp_path: Path, name: str, length: bool) -> None:
    """Truncated on the server itself, or on the way by a server that does not say how much is to come."""
    whole = archive(name, tmp_path)
    server.content, server.length, server.headers = whole[:-3000], length, {}
    with pytest.raises(UserError, match="the downloaded file not a complete .*; it was removed"):
        get(name)
    assert left(tmp_path / "data") == set()
    server.content = whole
    assert get(name).read_bytes() == whole
