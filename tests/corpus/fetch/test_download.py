"""Stage download against a server on this machine that fails in every way servers do; nothing half-written may pass for whole."""

import fcntl
import gzip
import hashlib
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import Server, serving

from specialized_heads.corpus.fetch import download, transfer
from specialized_heads.corpus.fetch.download import fetch, locked, mirrored
from specialized_heads.corpus.fetch.transfer import Wanted
from specialized_heads.stage import UserError, read_json

DATA = hashlib.shake_128(b"a file").digest(300_000)  # bytes that no packing makes smaller
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(transfer, "FIRST_PAUSE", 0.001)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(DATA) as running:
        yield running


@pytest.fixture
def get(server: Server, tmp_path: Path) -> Callable[..., Path]:
    """`get("x.bin", sha256=...)`: fetch this file of the server, three tries; returns its path, whether or not it came."""

    def run(
        name: str = "x.bin", *, mirrors: dict[str, str] | None = None, timeout: float = 5, **wanted: object
    ) -> Path:
        output = tmp_path / "data" / name
        settings = {"url": server.url(name)} | wanted
        settings["downloads"] = {"attempts": 3, "timeout": timeout, "mirrors": mirrors or {}}
        fetch(output, card=card_of(output), wanted=Wanted.model_validate(settings))
        return output

    return run


def card_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.json")


def partial_of(output: Path) -> Path:
    return output.with_name(f".partial.{output.name}")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def command(output: Path, settings: dict[str, object]) -> list[str]:
    arguments = ["--output", str(output), "--card", str(card_of(output)), "--settings", json.dumps(settings)]
    return [sys.executable, "-m", "specialized_heads.corpus.fetch.download", *arguments]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


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


def test_the_card_of_a_second_download_has_the_same_bytes(get) -> None:
    output = get()
    first = card_of(output).read_bytes()
    output.unlink()
    card_of(output).unlink()
    get()
    assert card_of(output).read_bytes() == first


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
    with pytest.raises(
        UserError, match="gave up after 3 tries without progress .100000 bytes have arrived and are kept"
    ):
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


def test_silence_ends_a_try(server, get) -> None:
    server.pause = 0.5
    with pytest.raises(UserError, match=r"no byte for 0\.05 seconds; gave up after 3 tries"):
        get(timeout=0.05)


def test_passing_failures_are_tried_again(server, get) -> None:
    server.status = [503, 429]
    assert get().read_bytes() == DATA
    server.status = [500, 502, 504]
    with pytest.raises(UserError, match="the server answers 504 Gateway Timeout; gave up after 3 tries"):
        get("y.bin")


def test_pauses_grow_and_heed_what_the_server_asks(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(transfer.time, "sleep", pauses.append)
    monkeypatch.setattr(transfer, "FIRST_PAUSE", 1.0)
    server.status = [503, 503]
    get()
    server.status, server.headers = [503], {"Retry-After": "7"}
    get("y.bin")
    server.status, server.headers = [503], {"Retry-After": "86400"}
    with pytest.raises(UserError, match="asks to wait 86400 seconds; run again then"):
        get("z.bin")
    # The server sleeps in the same way, but not at all.
    assert [pause for pause in pauses if pause] == [1.0, 2.0, 7.0]


@pytest.mark.parametrize(("status", "reason"), [(404, "Not Found"), (403, "Forbidden"), (410, "Gone")])
def test_a_refusal_fails_at_once_and_says_what_to_do(server, get, tmp_path: Path, status: int, reason: str) -> None:
    server.status = [status]
    with pytest.raises(
        UserError, match=rf"/x\.bin: the server answers {status} {reason}; .*mirrors.* by hand as .*data/x\.bin"
    ):
        get()
    assert len(server.asked) == 1
    assert left(tmp_path / "data") == set()


def test_no_server_at_all(get, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="connection failed .*refused.*; gave up after 3 tries"):
        get(url="http://127.0.0.1:9/x.bin")


def test_a_wrong_hash_or_size_leaves_nothing(server, get, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"what arrived has sha256 {SHA256}, expected is {'0' * 64}; it was removed"):
        get(sha256="0" * 64)
    assert left(tmp_path / "data") == set()
    with pytest.raises(UserError, match="the server's file has 300000 bytes, 5 are expected"):
        get(bytes=5)
    server.length = False
    with pytest.raises(UserError, match="what arrived has 300000 bytes, expected are 5; it was removed"):
        get(bytes=5)
    assert left(tmp_path / "data") == set()


@pytest.mark.parametrize("name", ["x.zip", "x.gz", "x.txt", "x.bin"])
@pytest.mark.parametrize("headers", [{"Content-Type": "text/html; charset=utf-8"}, {}])
def test_a_page_is_no_file(server, get, tmp_path: Path, name: str, headers: dict) -> None:
    server.headers = headers
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


def test_something_else_than_the_suffix_says(server, get) -> None:
    with pytest.raises(UserError, match=r"sends something else than a \.zip file"):
        get("x.zip")


def archives() -> dict[str, bytes]:
    """A small archive of each kind, by file name."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("x.en", DATA)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        info = tarfile.TarInfo("x.en")
        info.size = len(DATA)
        archive.addfile(info, io.BytesIO(DATA))
    return {"x.gz": gzip.compress(DATA), "x.zip": zipped.getvalue(), "x.tgz": tarred.getvalue()}


@pytest.mark.parametrize("name", ["x.gz", "x.zip", "x.tgz"])
@pytest.mark.parametrize("length", [True, False])
def test_a_truncated_archive_never_gets_its_name(server, get, tmp_path: Path, name: str, length: bool) -> None:
    """Truncated on the server itself, or on the way by a server that does not say how much is to come."""
    whole = archives()[name]
    server.content, server.length, server.headers = whole[:-3000], length, {}
    with pytest.raises(UserError, match="what arrived not a complete .*; it was removed"):
        get(name)
    assert left(tmp_path / "data") == set()
    server.content = whole
    assert get(name).read_bytes() == whole


def test_a_bomb_is_refused(server, get, tmp_path: Path) -> None:
    server.content = gzip.compress(bytes(160 << 20))
    with pytest.raises(UserError, match="unpacks to more than 100 times its size"):
        get("x.gz")
    assert left(tmp_path / "data") == set()


def test_an_archive_that_leads_out_of_itself_is_refused(server, get, tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("../../evil.txt", b"x")
    server.content = content.getvalue()
    with pytest.raises(UserError, match="evil.txt', which leads out of it"):
        get("x.zip")
    assert left(tmp_path / "data") == set()


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


def test_two_processes_fetch_a_file_once(server, tmp_path: Path) -> None:
    server.pause = 0.01
    output = tmp_path / "x.bin"
    settings = {"url": server.url("x.bin")}
    running = [subprocess.Popen(command(output, settings), stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert output.read_bytes() == DATA
    assert len(server.asked) == 1
    assert "in place" in "".join(said)
    assert left(tmp_path) == {"x.bin", "x.bin.json"}


def test_a_lock_file_that_was_removed_meanwhile_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    lock, entered = tmp_path / ".lock.x", threading.Event()

    def second() -> None:
        with locked(lock):
            entered.set()

    with open(lock, "ab") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.1)
        lock.unlink()
        third = open(lock, "ab")  # noqa: SIM115 - closed below
        fcntl.flock(third, fcntl.LOCK_EX)
    assert not entered.wait(0.2)
    third.close()
    waiting.join(10)
    assert entered.is_set()
    assert not lock.exists()


def test_a_killed_download_goes_on(server, tmp_path: Path) -> None:
    server.pause = 0.02
    output = tmp_path / "x.bin"
    settings = {"url": server.url("x.bin")}
    process = subprocess.Popen(command(output, settings), stderr=subprocess.DEVNULL)
    wait_for(lambda: partial_of(output).exists() and partial_of(output).stat().st_size > 50_000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not output.exists()
    assert not card_of(output).exists()
    arrived = partial_of(output).stat().st_size
    server.pause = 0
    done = subprocess.run(command(output, settings), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert server.asked[-1]["range"] == f"bytes={arrived}-"
    assert output.read_bytes() == DATA
    assert left(tmp_path) == {"x.bin", "x.bin.json"}


def test_a_download_killed_after_the_last_byte_asks_for_nothing(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(download, "accept", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        get()
    assert get().read_bytes() == DATA
    assert len(server.asked) == 1


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=128k none small
"$@"; echo $? > first
cp small/.partial.x.bin arrived; ls -A small > left
mount -o remount,size=1m small
"$@" && cp small/x.bin result
"""


@pytest.mark.parametrize("length", [True, False])
def test_a_full_disk_is_said_and_what_arrived_is_kept(server, tmp_path: Path, length: bool) -> None:
    """A server that gives the length is refused before it begins, any other when the disk is full."""
    private = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*private, "mount", "-t", "tmpfs", "none", "/mnt"]).returncode:
        pytest.skip("file systems cannot be mounted here, not even privately")
    server.length = length
    (tmp_path / "small").mkdir()
    fetching = command(Path("small/x.bin"), {"url": server.url("x.bin"), "sha256": SHA256})
    script = ["sh", "-c", ON_A_SMALL_DISK, "sh", *fetching]
    done = subprocess.run([*private, *script], cwd=tmp_path, capture_output=True, text=True)
    assert "error: small/x.bin: the disk is full" in done.stderr
    assert (tmp_path / "first").read_text() == "2\n"
    assert "x.bin" not in (tmp_path / "left").read_text().split()
    arrived = 0 if length else (tmp_path / "arrived").stat().st_size
    assert length or (arrived > 50_000 and DATA.startswith((tmp_path / "arrived").read_bytes()))
    assert server.asked[-1].get("range") == (f"bytes={arrived}-" if arrived else None)
    assert (tmp_path / "result").read_bytes() == DATA


def test_a_folder_that_cannot_be_written(server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "x.bin"
    with pytest.raises(UserError, match=r"cannot be written .*downloads\.directory"):
        fetch(output, card=card_of(output), wanted=Wanted(url=server.url("x.bin")))


def test_the_stage_reports_a_mistake_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path / "x", {"url": "ftp://host/x"}), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: settings: url: ")
    assert done.stderr.count("\n") == 1
