"""Stage download against a server on this machine that fails in every way servers do: it goes on where it broke off."""

import gzip
from pathlib import Path

import pytest
from downloads import DATA, SHA256, card_of, left, partial_of
from packing import tarred, zipped

from specialized_heads.corpus.fetch import download
from specialized_heads.corpus.fetch.download import mirrored
from specialized_heads.stage import UserError, read_json


def test_a_file_and_its_card(server, get) -> None:
    output = get(sha256=SHA256, bytes=len(DATA))
    assert output.read_bytes() == DATA
    url = server.url("x.bin")
    assert read_json(card_of(output)) == {
        "file": "x.bin",
        "url": url,
        "retrieved_from": url,
        "mirror": False,
        "bytes": len(DATA),
        "sha256": SHA256,
    }
    assert left(output.parent) == {"x.bin", "x.bin.json"}


@pytest.mark.parametrize("wanted", [{}, {"sha256": SHA256}])
def test_a_file_that_is_there_is_not_fetched_again(server, get, wanted: dict) -> None:
    output = get(**wanted)
    card = card_of(output).read_bytes()
    get(**wanted)
    assert len(server.asked) == 1
    assert card_of(output).read_bytes() == card


def test_a_file_put_there_by_hand_is_kept(server, get, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt.gz").write_bytes(gzip.compress(b"by hand"))
    output = get("x.txt.gz")
    assert server.asked == []
    assert gzip.decompress(output.read_bytes()) == b"by hand"
    assert read_json(card_of(output))["retrieved_from"] == "in place"


def test_a_wrong_or_damaged_file_that_is_there_is_replaced(server, get, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(b"another file")
    assert get(sha256=SHA256).read_bytes() == DATA
    server.content = gzip.compress(DATA)
    (tmp_path / "data" / "y.gz").write_bytes(server.content[:1000])
    assert get("y.gz").read_bytes() == server.content


def test_another_address_replaces_a_file_without_a_known_hash(server, get) -> None:
    output = get()
    server.content = b"the next release"
    assert get(url=server.url("v2/x.bin")).read_bytes() == b"the next release"
    assert read_json(card_of(output))["url"] == server.url("v2/x.bin")


@pytest.mark.parametrize(
    "headers", [{"ETag": '"one"'}, {"Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT", "ETag": 'W/"1"'}]
)
def test_a_cut_connection_goes_on_where_it_broke_off(server, get, headers: dict) -> None:
    server.headers, server.cut = headers, [100_000, 50_000]
    assert get().read_bytes() == DATA
    assert [request.get("range") for request in server.asked] == [None, "bytes=100000-", "bytes=150000-"]
    assert server.asked[1]["if-range"] == headers.get("Last-Modified", headers["ETag"])
    assert server.sent == len(DATA)


def test_tries_count_only_while_nothing_comes(server, get) -> None:
    server.cut = [20_000] * 10
    assert get().read_bytes() == DATA
    assert len(server.asked) == 11


def test_giving_up_keeps_what_has_arrived_for_the_next_run(server, get, tmp_path: Path) -> None:
    server.cut = [100_000, 0, 0, 0]
    with pytest.raises(UserError, match="gave up after 3 attempts .*100000 bytes have arrived and are kept"):
        get()
    assert left(tmp_path / "data") == {".partial.x.bin", ".partial.x.bin.json"}
    server.asked.clear()
    assert get().read_bytes() == DATA
    assert [request["range"] for request in server.asked] == ["bytes=100000-"]


def test_a_server_that_ignores_ranges_starts_again(server, get) -> None:
    server.ranges, server.cut = False, [100_000]
    assert get().read_bytes() == DATA
    assert server.sent == 100_000 + len(DATA)


@pytest.mark.parametrize("if_range", [True, False])
def test_a_file_that_changed_meanwhile_starts_again(server, get, if_range: bool) -> None:
    server.if_range, server.cut = if_range, [100_000, 0, 0, 0]
    with pytest.raises(UserError):
        get()
    server.content, server.headers = DATA[::-1], {"ETag": '"two"'}
    assert get().read_bytes() == DATA[::-1]


def test_without_a_validator_only_a_known_hash_lets_it_go_on(server, get) -> None:
    server.headers, server.cut = {}, [100_000]
    assert get("x.bin").read_bytes() == DATA
    assert "range" not in server.asked[1]
    server.cut = [100_000]
    assert get("y.bin", sha256=SHA256).read_bytes() == DATA
    assert server.asked[3]["range"] == "bytes=100000-"


def test_with_a_known_hash_another_server_can_go_on(server, get) -> None:
    server.cut = [100_000, 0, 0, 0]
    with pytest.raises(UserError):
        get(sha256=SHA256)
    server.headers = {"ETag": '"of another server"'}
    mirrors = {server.url("x"): server.url("copy/x")}
    assert get(sha256=SHA256, mirrors=mirrors).read_bytes() == DATA
    assert server.asked[-1]["range"] == "bytes=100000-"
    assert "if-range" not in server.asked[-1]


def test_silence_ends_a_try(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pause = 0.5
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    with pytest.raises(UserError, match=r"no byte for 0\.05 seconds; gave up after 3 attempts"):
        get()


def test_passing_failures_are_tried_again(server, get) -> None:
    server.status = [503, 429]
    assert get().read_bytes() == DATA
    server.status = [500, 502, 504]
    with pytest.raises(UserError, match="the server answers 504 Gateway Timeout; gave up after 3 attempts"):
        get("y.bin")


def test_pauses_grow(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    monkeypatch.setattr(download, "PAUSES", (1.0, 3.0))
    monkeypatch.setattr(download, "ATTEMPTS", 5)
    server.status = [503, 503, 503, 503]
    get()
    # The server of these tests sleeps in the same way, for less than a second.
    assert [pause for pause in pauses if pause >= 1] == [1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(("status", "reason"), [(404, "Not Found"), (403, "Forbidden"), (410, "Gone")])
def test_a_refusal_fails_at_once_and_says_what_to_do(server, get, tmp_path: Path, status: int, reason: str) -> None:
    server.status = [status]
    with pytest.raises(UserError, match=rf"/x\.bin: the server answers {status} {reason}; .*mirrors.*data/x\.bin"):
        get()
    assert len(server.asked) == 1
    assert left(tmp_path / "data") == set()


def test_no_server_at_all(get, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="connection failed .*refused.*; gave up after 3 attempts"):
        get(url="http://127.0.0.1:9/x.bin")


def test_the_longest_mirror_is_asked(server, get) -> None:
    mirrors = {"http://far.example/": "http://wrong.example/", "http://far.example/opus/": server.url("copy/")}
    assert mirrored("http://far.example/opus/a/b.bin", mirrors) == server.url("copy/a/b.bin")
    assert mirrored("http://near.example/b.bin", mirrors) == "http://near.example/b.bin"
    card = read_json(card_of(get(url="http://far.example/opus/a/x.bin", mirrors=mirrors)))
    assert server.asked[0]["path"] == "/copy/a/x.bin"
    assert card["mirror"] is True
    assert (card["url"], card["retrieved_from"]) == ("http://far.example/opus/a/x.bin", server.url("copy/a/x.bin"))


def test_a_folder_can_be_a_mirror(server, get, tmp_path: Path) -> None:
    folder = tmp_path / "my mirror's"
    folder.mkdir()
    (folder / "x.bin").write_bytes(DATA)
    mirrors = {server.address + "/": folder.as_uri() + "/"}
    assert get(sha256=SHA256, mirrors=mirrors).read_bytes() == DATA
    assert server.asked == []
    with pytest.raises(UserError, match=r"none\.bin: no such file; .* by hand"):
        get("none.bin", mirrors=mirrors)


# What a download brings is believed only when it is whole, and what was asked for; nothing half-written may pass for it.


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
