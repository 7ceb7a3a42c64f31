"""Stage download against a server on this machine that fails in every way servers do: it goes on
where it broke off."""

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Server, serving

from specialized_heads.corpus import fetch as download
from specialized_heads.corpus.fetch import Wanted, fetch
from specialized_heads.stage import UserError, read_json

DATA = hashlib.shake_128(b"a file").digest(300_000)  # bytes that no packing makes smaller
DATE = "Mon, 01 Jan 2018 00:00:00 GMT"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "PAUSES", (0.001, 0.01))
    monkeypatch.setattr(download, "ATTEMPTS", 3)
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(DATA) as running:
        yield running


def card_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.json")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def get(server: Server, tmp_path: Path) -> Callable[..., Path]:
    """`get("x.bin", sha256=...)`: fetch this file of the server, three tries; returns its path,
    whether or not it came."""

    def run(
        name: str = "x.bin", *, mirrors: dict[str, str] | None = None, **wanted: object
    ) -> Path:
        output = tmp_path / "data" / name
        settings = {"url": server.url(name)} | wanted
        settings["downloads"] = {"mirrors": mirrors or {}}
        fetch(output, card=card_of(output), wanted=Wanted.model_validate(settings))
        return output

    return run


def test_a_file_and_its_card(server, get) -> None:
    output = get(sha256=SHA256, bytes=len(DATA))
    assert output.read_bytes() == DATA
    where = dict.fromkeys(("url", "retrieved_from"), server.url("x.bin")) | {"mirror": False}
    expected = where | {"file": "x.bin", "bytes": len(DATA), "sha256": SHA256}
    assert read_json(card_of(output)) == expected
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


def test_a_wrong_or_damaged_file_that_is_there_is_replaced_and_kept(
    server, get, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(b"another file")
    assert get(sha256=SHA256).read_bytes() == DATA
    [kept] = (tmp_path / "data").glob("x.bin.*.old")
    assert kept.read_bytes() == b"another file"
    server.content = gzip.compress(DATA)
    (tmp_path / "data" / "y.gz").write_bytes(server.content[:1000])
    assert get("y.gz").read_bytes() == server.content


def test_another_address_replaces_a_file_without_a_known_hash(server, get) -> None:
    output = get()
    server.content = b"the next release"
    assert get(url=server.url("v2/x.bin")).read_bytes() == b"the next release"
    assert read_json(card_of(output))["url"] == server.url("v2/x.bin")


@pytest.mark.parametrize("headers", [{"ETag": '"one"'}, {"Last-Modified": DATE, "ETag": 'W/"1"'}])
def test_a_cut_connection_goes_on_where_it_broke_off(server, get, headers: dict) -> None:
    server.headers, server.cut = headers, [100_000, 50_000]
    assert get().read_bytes() == DATA
    expected = [None, "bytes=100000-", "bytes=150000-"]
    assert [request.get("range") for request in server.asked] == expected
    assert server.asked[1]["if-range"] == headers.get("Last-Modified", headers["ETag"])
    assert server.sent == len(DATA)


def test_tries_count_only_while_nothing_comes(server, get) -> None:
    server.cut = [20_000] * 10
    assert get().read_bytes() == DATA
    assert len(server.asked) == 11


def test_what_another_file_on_the_server_sends_is_progress(server, get, monkeypatch) -> None:
    server.cut = [len(DATA) - 1, *[20_000] * 6]
    later = {"ETag": '"two"'}
    monkeypatch.setattr(download.time, "sleep", lambda _: setattr(server, "headers", later))
    assert get().read_bytes() == DATA


def test_giving_up_keeps_what_has_arrived_for_the_next_run(server, get, tmp_path: Path) -> None:
    server.cut = [100_000, 0, 0, 0]
    said = "gave up after 3 attempts .*100000 bytes have arrived and are kept"
    with pytest.raises(UserError, match=said):
        get()
    assert left(tmp_path / "data") == {".partial.x.bin", ".partial.x.bin.json"}
    headers, server.content, server.headers = server.headers, b"<html>maintenance</html>", {}
    with pytest.raises(UserError, match="HTML page"):
        get()
    server.content, server.headers = DATA, headers
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


def test_silence_ends_a_try(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    server.pause = 0.5
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    with pytest.raises(UserError, match=r"no byte for 0\.05 seconds; gave up after 3 attempts"):
        get()


def test_passing_failures_are_tried_again(server, get) -> None:
    server.status = [503, 429]
    assert get().read_bytes() == DATA
    server.status = [500, 502, 504]
    said = "the server answers 504 Gateway Timeout; gave up after 3 attempts"
    with pytest.raises(UserError, match=said):
        get("y.bin")


def test_a_refusal_fails_at_once_and_says_what_to_do(server, get, tmp_path: Path) -> None:
    server.status = [404]
    said = r"/x\.bin: the server answers 404 Not Found; .*mirrors.*data/x\.bin"
    with pytest.raises(UserError, match=said):
        get()
    assert len(server.asked) == 1
    assert left(tmp_path / "data") == set()


def test_no_server_at_all(get) -> None:
    with pytest.raises(UserError, match="connection failed .*refused.*; gave up after 3 attempts"):
        get(url="http://127.0.0.1:9/x.bin")


def test_the_longest_mirror_is_asked(server, get) -> None:
    mirrors = {
        "http://far.example/": "http://wrong.example/",
        "http://far.example/opus/": server.url("copy/"),
    }
    card = read_json(card_of(get(url="http://far.example/opus/a/x.bin", mirrors=mirrors)))
    assert server.asked[0]["path"] == "/copy/a/x.bin"
    assert card["mirror"] is True
    expected = ("http://far.example/opus/a/x.bin", server.url("copy/a/x.bin"))
    assert (card["url"], card["retrieved_from"]) == expected


def test_a_folder_can_be_a_mirror(server, get, tmp_path: Path) -> None:
    folder = tmp_path / "my mirror's"
    folder.mkdir()
    (folder / "x.bin").write_bytes(DATA)
    mirrors = {server.address + "/": folder.as_uri() + "/"}
    assert get(sha256=SHA256, mirrors=mirrors).read_bytes() == DATA
    assert server.asked == []
    with pytest.raises(UserError, match=r"none\.bin: no such file; .* by hand"):
        get("none.bin", mirrors=mirrors)
    with pytest.raises(UserError, match=r"bersetzung/y\.bin: not an address \(.*ascii.*\); "):
        get("y.bin", mirrors={server.address + "/": server.url("Übersetzung/")})


# What a download brings is believed only when it is whole, and what was asked for; nothing
# half-written may pass for it.


def test_a_wrong_hash_or_size_leaves_nothing(server, get, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"sha256 {SHA256}, expected {'0' * 64}; it was removed"):
        get(sha256="0" * 64)
    assert left(tmp_path / "data") == set()
    with pytest.raises(UserError, match="the server's file has 300000 bytes, expected 5"):
        get(bytes=5)
    server.length = False
    said = "the downloaded file has 300000 bytes, expected 5; it was removed"
    with pytest.raises(UserError, match=said):
        get(bytes=5)
    assert left(tmp_path / "data") == set()


def test_a_page_is_no_file(server, get, tmp_path: Path) -> None:
    server.content = b"\r\n<!DOCTYPE html><html><body>Please log in" + b" " * 5000
    with pytest.raises(UserError, match="sends an HTML page instead of the file; .* by hand as"):
        get("x.txt")
    assert len(server.asked) == 1
    assert left(tmp_path / "data") == set()


@pytest.mark.parametrize("length", [True, False])
def test_a_truncated_archive_never_gets_its_name(server, get, tmp_path: Path, length: bool) -> None:
    """Truncated on the server itself, or on the way by a server that does not say how much is to
    come."""
    whole = gzip.compress(DATA)
    server.content, server.length, server.headers = whole[:-3000], length, {}
    with pytest.raises(UserError, match="the downloaded file not a complete .*; it was removed"):
        get("x.gz")
    assert left(tmp_path / "data") == set()
    server.content = whole
    assert get("x.gz").read_bytes() == whole


# Several processes, a quota, and a folder that cannot be written.


def command(output: Path, settings: dict[str, object]) -> list[str]:
    arguments = [
        "--output",
        str(output),
        "--card",
        str(card_of(output)),
        "--settings",
        json.dumps(settings),
    ]
    return [sys.executable, "-m", "specialized_heads.corpus.fetch", *arguments]


def test_two_processes_fetch_a_file_once(server, tmp_path: Path) -> None:
    server.pause = 0.01
    output = tmp_path / "x.bin"
    settings = {"url": server.url("x.bin")}
    running = [
        subprocess.Popen(command(output, settings), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert output.read_bytes() == DATA
    assert len(server.asked) == 1
    assert "in place" in "".join(said)
    assert left(tmp_path) == {"x.bin", "x.bin.json"}


def test_another_users_part_is_no_failure_of_the_network(server, get, monkeypatch) -> None:
    def refuse(*_: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied", ".partial.x.bin")

    monkeypatch.setattr("specialized_heads.corpus.fetch.Download.receive", refuse)
    with pytest.raises(PermissionError):
        get()
    assert len(server.asked) == 1


def test_a_quota_is_named_and_what_arrived_is_kept(server, tmp_path: Path) -> None:
    output = tmp_path / "x.bin"
    fetching = command(output, {"url": server.url("x.bin")})
    limited = subprocess.run(
        ["prlimit", "--fsize=130000", *fetching], stderr=subprocess.PIPE, text=True
    )
    assert limited.returncode == 2
    assert "x.bin: the file would exceed the size limit" in limited.stderr
    arrived = output.with_name(".partial.x.bin").stat().st_size
    assert arrived > 50_000 and not output.exists()
    subprocess.run(fetching, check=True)
    assert server.asked[-1]["range"] == f"bytes={arrived}-"
    assert output.read_bytes() == DATA


def test_a_folder_that_cannot_be_written(server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "x.bin"
    with pytest.raises(UserError, match=r"cannot be written .*downloads\.directory"):
        fetch(output, card=card_of(output), wanted=Wanted(url=server.url("x.bin")))
