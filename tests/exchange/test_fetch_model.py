"""Models come from the hub: a server on loopback answers as it does."""

import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from published import marian

from specialized_heads.exchange import fetch_model
from specialized_heads.stage import UserError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "Helsinki-NLP/opus-mt-en-xx"


class Hub(BaseHTTPRequestHandler):
    """One model, in the addresses and headers of the Hugging Face hub."""

    folder: Path

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        files = sorted(path.name for path in self.folder.iterdir())
        headers, content = {"Content-Type": "application/json"}, b""
        path = self.path.partition("?")[0]
        if path in (f"/api/models/{NAME}", *(f"/api/models/{NAME}/revision/{name}" for name in ("main", "v1", COMMIT))):
            siblings = [{"rfilename": name} for name in files]
            about = {"id": NAME, "sha": COMMIT, "siblings": siblings, "cardData": {"license": "cc-by-4.0"}}
            content = json.dumps(about | {"private": False, "tags": [], "downloads": 0, "likes": 0}).encode()
        elif path == f"/api/models/{NAME}/tree/{COMMIT}":
            sizes = {name: (self.folder / name).stat().st_size for name in files}
            entries = [{"type": "file", "path": name, "size": size, "oid": COMMIT} for name, size in sizes.items()]
            content = json.dumps(entries).encode()
        elif path.startswith(f"/{NAME}/resolve/{COMMIT}/") and path.rpartition("/")[2] in files:
            content = (self.folder / path.rpartition("/")[2]).read_bytes()
            etag = hashlib.sha256(content).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Content-Type": "application/octet-stream"}
        else:
            headers["X-Error-Code"] = "RepoNotFound"
        self.send_response(200 if content else 404)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def hub(saved, tokeniser: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that the hub serves."""
    folder = saved(marian())
    for path in tokeniser.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "training_args.bin").write_bytes(b"not wanted")
    (folder / "tf_model.h5").write_bytes(b"not wanted either")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Hub,), {"folder": folder}))
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()


@pytest.mark.parametrize("revision", [None, "v1"])
def test_a_model_is_fetched_with_its_licence_and_nothing_else(revision, hub: Path, call, tmp_path: Path) -> None:
    card = tmp_path / "models" / "fetched" / "card.json"
    call(fetch_model, settings={"name": NAME, "revision": revision}, output=card)
    about = json.loads(card.read_text())
    assert (about["name"], about["commit"], about["license"]) == (NAME, COMMIT, "cc-by-4.0")
    wanted = {"config.json", "generation_config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"}
    assert {path.name for path in card.parent.iterdir() if path.is_file()} == {*wanted, "card.json"}
    for name in wanted:
        assert (card.parent / name).read_bytes() == (hub / name).read_bytes()
        assert about["sha256"][name] == hashlib.sha256((hub / name).read_bytes()).hexdigest()


def test_an_unknown_model_is_one_clear_error(hub: Path, call, tmp_path: Path) -> None:
    settings = {"name": "nobody/nothing", "revision": None}
    said = "nobody/nothing: there is no such folder, and it cannot be fetched from http://127.0.0.1"
    with pytest.raises(UserError, match=said) as error:
        call(fetch_model, settings=settings, output=tmp_path / "m" / "card.json")
    assert "\n" not in str(error.value)


def test_a_hub_that_does_not_answer_is_one_clear_error(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    said = "cannot be fetched from http://127.0.0.1:9.* and name its folder in the configuration"
    with pytest.raises(UserError, match=said):
        call(fetch_model, settings={"name": NAME, "revision": None}, output=tmp_path / "m" / "card.json")


def test_weights_that_were_converted_are_removed_when_a_model_is_fetched_anew(hub: Path, call, tmp_path: Path) -> None:
    (hub / "model.safetensors").rename(hub / "pytorch_model.bin")
    card = tmp_path / "models" / "fetched" / "card.json"
    settings = {"name": NAME, "revision": None}
    call(fetch_model, settings=settings, output=card)
    converted = card.parent / "model.safetensors"
    assert not converted.exists() and (card.parent / "pytorch_model.bin").is_file()
    converted.write_bytes(b"converted")
    call(fetch_model, settings=settings, output=card)
    assert not converted.exists()


def test_pickles_in_several_files_are_fetched_with_their_index(hub: Path, call, tmp_path: Path) -> None:
    (hub / "model.safetensors").rename(hub / "pytorch_model-00001-of-00001.bin")
    (hub / "pytorch_model.bin.index.json").write_text("{}")
    call(fetch_model, settings={"name": NAME, "revision": None}, output=tmp_path / "m" / "card.json")
    assert {path.name for path in (tmp_path / "m").glob("pytorch_model*")} == {
        "pytorch_model-00001-of-00001.bin",
        "pytorch_model.bin.index.json",
    }


def test_a_model_without_weights_of_pytorch_is_one_clear_error(hub: Path, call, tmp_path: Path) -> None:
    (hub / "model.safetensors").unlink()
    with pytest.raises(UserError, match="has weights neither as safetensors nor as pickles of PyTorch"):
        call(fetch_model, settings={"name": NAME, "revision": None}, output=tmp_path / "m" / "card.json")
