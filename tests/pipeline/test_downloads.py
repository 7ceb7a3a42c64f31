"""Fetching as a part of the workflow: once, kept whatever Snakemake does, and going on after a kill."""

import io
import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Server, serving

from specialized_heads.stage import file_hash, read_json

RAW = "results/smoke/mine/corpus/raw"
# Spaces and quotes may stand in any path.
FOLDER = "my data's"
FILE = f"{FOLDER}/opus/Some-Corpus/v1/de-en.txt.zip"
NOWHERE = "http://127.0.0.1:9/"


def archive() -> bytes:
    """A corpus as OPUS has it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("README", "about")
        for language in ("en", "de"):
            packed.writestr(f"Some-Corpus.de-en.{language}", "".join(f"{language} {i}\n" for i in range(5000)))
    return content.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(archive(), path="/Some-Corpus/v1/moses/de-en.txt.zip") as running:
        yield running


def with_opus(project, address: str):
    """The smoke experiment with one corpus of OPUS, to be had at `address`."""
    values = project.settings()
    source = {"kind": "opus", "corpus": "Some-Corpus", "version": "v1"}
    values["corpora"] = {"mine": {"title": "Mine", "source": source, "target_language": "de"}}
    values["parser"] = {"engine": "stanza"}
    opus = "https://object.pouta.csc.fi/OPUS-"
    values["downloads"] = {"directory": FOLDER, "mirrors": {opus: address}}
    return project.configured(values)


def test_a_file_put_there_by_hand_needs_no_network(project) -> None:
    """Though Snakemake deletes what a job declares before it starts."""
    file = project.root / FILE
    file.parent.mkdir(parents=True)
    content = archive()
    file.write_bytes(content)
    run = with_opus(project, NOWHERE).run(f"{RAW}.parquet")
    assert run.status == 0, run.printed
    assert file.read_bytes() == content
    assert read_json(project.root / f"{RAW}.json")["pairs"] == 5000


def test_a_corpus_is_fetched_once_and_after_a_kill_from_where_it_stopped(project, server) -> None:
    server.pause = 0.05
    workflow = with_opus(project, f"{server.address}/")
    partial = project.root / FILE.replace("de-en", ".partial.de-en")
    running = workflow.start(f"{RAW}.parquet", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size > 10_000):
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (project.root / FILE).exists()
    arrived = partial.stat().st_size
    assert arrived < len(server.content)
    server.pause = 0
    # The lock that the killed Snakemake left is Snakemake's own matter.
    workflow.run("--unlock")
    run = workflow.run(f"{RAW}.parquet")
    assert run.status == 0 and {"download", "corpus_raw"} <= run.rules, run.printed
    assert [asked.get("range") for asked in server.asked] == [None, f"bytes={arrived}-"]
    assert (project.root / FILE).read_bytes() == server.content
    assert [path.name for path in Path(project.root / FILE).parent.iterdir() if path.name.startswith(".")] == []
    assert read_json(project.root / f"{FILE}.json")["mirror"] is True
    card = read_json(project.root / f"{RAW}.json")
    assert card["files"][0]["sha256"] == file_hash(project.root / FILE)
    assert card["files"][0]["url"].startswith("https://object.pouta.csc.fi/OPUS-Some-Corpus/v1/")
    # Where it is fetched from does not make the file another one.
    assert "Nothing to be done" in with_opus(project, NOWHERE).run("--dry-run", f"{RAW}.parquet").printed
    assert len(server.asked) == 2
