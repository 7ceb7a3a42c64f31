"""Downloads by several processes, killed ones, on full disks and in folders that cannot be written."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from downloads import DATA, SHA256, card_of, left

from specialized_heads.corpus.fetch import download
from specialized_heads.corpus.fetch.download import Wanted, fetch
from specialized_heads.stage import UserError


def command(output: Path, settings: dict[str, object]) -> list[str]:
    arguments = ["--output", str(output), "--card", str(card_of(output)), "--settings", json.dumps(settings)]
    return [sys.executable, "-m", "specialized_heads.corpus.fetch.download", *arguments]


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


def test_a_download_killed_after_the_last_byte_asks_for_nothing(server, get, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(download, "mismatch", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
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
    arrived = (tmp_path / "arrived").stat().st_size
    assert arrived > 50_000 and DATA.startswith((tmp_path / "arrived").read_bytes())
    assert server.asked[-1]["range"] == f"bytes={arrived}-"
    assert (tmp_path / "result").read_bytes() == DATA


def test_a_folder_that_cannot_be_written(server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "x.bin"
    with pytest.raises(UserError, match=r"cannot be written .*downloads\.directory"):
        fetch(output, card=card_of(output), wanted=Wanted(url=server.url("x.bin")))
