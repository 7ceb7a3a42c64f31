"""Importing a model: what is written, and every folder that is refused."""

import hashlib
import http.server
import json
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from hostile import PAYLOAD, Payload
from published import marian, write_tokeniser
from safetensors.torch import load_file
from small import WORDS

from specialized_heads.exchange import import_model
from specialized_heads.exchange.export import load_exported
from specialized_heads.exchange.import_model import read_model
from specialized_heads.exchange.reading import convert
from specialized_heads.stage import UserError

FILES = ("output", "source_model", "target_model", "special")


@pytest.fixture
def folder(saved) -> Path:
    """A MarianMT model with a tokeniser of as many tokens."""
    path = saved(marian())
    write_tokeniser(path, {"source": WORDS[:200], "target": [word[::-1] for word in WORDS[:200]]})
    return path


def test_a_model_becomes_one_of_ours(folder: Path, call, tmp_path: Path) -> None:
    files = {name: tmp_path / "imported" / name for name in FILES}
    call(import_model, settings={"folder": str(folder)}, **files)
    architecture = json.loads((tmp_path / "imported/output.json").read_text())["architecture"]
    assert architecture["post_norm"]
    assert architecture["tokens"] == json.loads(files["special"].read_text())


def test_without_transformers_the_message_says_how_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    said = "transformers is not installed; run `make install EXTRAS=models`"
    with pytest.raises(UserError, match=said):
        read_model(folder)


def test_an_exported_model_can_be_imported(exported: Path) -> None:
    model, _ = read_model(exported)
    original = load_exported(exported, device="cpu").model
    for ours, theirs in zip(model.parameters(), original.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(UserError, match="a model in the format of transformers has language tags"):
        read_model(exported, target_tag="deu_Latn")


def test_a_model_of_lower_case_tokens_is_not_given_raw_text(
    call, lower: Path, tmp_path: Path
) -> None:
    files = {name: tmp_path / name for name in FILES}
    with pytest.raises(UserError, match="reads lower-case Moses tokens, but"):
        call(import_model, settings={"folder": str(lower)}, **files)


def test_a_pickle_is_converted_to_the_same_weights(folder: Path) -> None:
    expected = load_file(folder / "model.safetensors")
    torch.save(expected, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    convert(folder)
    converted = load_file(folder / "model.safetensors")
    assert converted.keys() == expected.keys()
    assert all(torch.equal(converted[name], tensor) for name, tensor in expected.items())
    read_model(folder)
    with pytest.raises(UserError, match=r"model\.safetensors: is there already, and may differ"):
        convert(folder)


def test_a_pickle_of_something_else_or_of_half_a_model_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"a": torch.eye(2).to_sparse()}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model\.bin: has no tensor (model|lm_head)\."):
        convert(folder)
    assert not list(folder.glob("*.safetensors"))


def test_a_pickle_of_a_class_of_ones_own_is_told(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    described = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(described | {"architectures": ["OurMarian"]}))
    with pytest.raises(UserError, match=r"config\.json: transformers has no class OurMarian"):
        convert(folder)


def test_pickles_in_several_files_are_converted(folder: Path) -> None:
    expected = load_file(folder / "model.safetensors")
    shards: dict[str, str] = {}
    for number in (1, 2):
        shard = f"pytorch_model-0000{number}-of-00002.bin"
        names = list(expected)[number - 1 :: 2]
        torch.save({name: expected[name] for name in names}, folder / shard)
        shards |= dict.fromkeys(names, shard)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    before = read_model(folder)[0].state_dict()
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=f"{index.name}: pickled weights are not loaded"):
        read_model(folder)
    assert convert(folder) == folder / "model.safetensors"
    after = read_model(folder)[0].state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


PICKLES = [b"", b"PK\x03\x04", pickle.dumps(Payload()), pickle.dumps({"a": 1})]


@pytest.mark.parametrize("content", PICKLES, ids=["nothing", "archive", "payload", "number"])
def test_a_pickle_of_anything_else_is_not_executed(content: bytes, folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(content)
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="pytorch_model.bin: "):
        convert(folder)
    assert not Path(PAYLOAD).exists()


# Models come from the hub, which is a server on this machine here.

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "Helsinki-NLP/opus-mt-en-xx"
REVISIONS = ("", "/revision/v1", f"/revision/{COMMIT}")
LICENCE = {"license": "cc-by-4.0"}


class Hub(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as the hub does: a description of the model, and its files at one commit."""

    def do_GET(self) -> None:
        files = {path.name: path.read_bytes() for path in Path(self.directory).iterdir()}
        path, _, name = self.path.partition("?")[0].rpartition("/")
        if f"{path}/{name}" in {f"/api/models/{NAME}{of}" for of in REVISIONS}:
            about = {"id": NAME, "sha": COMMIT, "private": False, "cardData": LICENCE}
            self.answer_json(about | {"siblings": [{"rfilename": name} for name in files]})
        elif f"{path}/{name}".startswith(f"/api/models/{NAME}/tree/{COMMIT}"):
            kind = {"type": "file", "oid": "0"}
            self.answer_json([kind | {"path": n, "size": len(c)} for n, c in files.items()])
        elif path == f"/{NAME}/resolve/{COMMIT}":
            self.answer(files[name], ETag=f'"{hashlib.sha1(files[name]).hexdigest()}"')
        else:
            self.send_error(404)

    def answer_json(self, value: object) -> None:
        self.answer(json.dumps(value).encode())

    do_HEAD = do_GET

    def answer(self, content: bytes, **headers: str) -> None:
        self.send_response(200)
        headers |= {"Content-Length": str(len(content)), "X-Repo-Commit": COMMIT}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a server on this machine offers as the hub."""
    for name in ("training_args.bin", "tf_model.h5"):
        (folder / name).write_bytes(b"not wanted")
    handler = partial(Hub, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=partial(server.serve_forever, 0.01), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        yield folder
        server.shutdown()


@pytest.fixture
def fetched(call, tmp_path: Path) -> Callable[..., Path]:
    """`fetched(NAME, revision="v1")`: the card of this model, which is fetched."""

    def fetch(name: str = NAME, *, revision: str | None = None) -> Path:
        card = tmp_path / "models" / "fetched" / "card.json"
        settings = {"folder": str(card.parent), "model": name, "revision": revision}
        call(import_model.fetch, settings=settings, output=card)
        return card

    return fetch


@pytest.mark.parametrize("revision", [None, "v1"])
def test_a_model_is_fetched_with_its_licence_and_nothing_else(
    revision: str | None, hub: Path, fetched
) -> None:
    card = fetched(revision=revision)
    about = json.loads(card.read_text())
    assert (about["name"], about["commit"], about["license"]) == (NAME, COMMIT, "cc-by-4.0")
    wanted = {"config.json", "generation_config.json", "model.safetensors", "vocab.json"}
    wanted |= {"source.spm", "target.spm"}
    assert {path.name for path in card.parent.iterdir() if path.is_file()} == {*wanted, "card.json"}
    for name in wanted:
        assert (card.parent / name).read_bytes() == (hub / name).read_bytes()
        assert about["sha256"][name] == hashlib.sha256((hub / name).read_bytes()).hexdigest()


def test_what_cannot_be_fetched_is_one_clear_error(
    hub: Path, fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "nobody/nothing: there is no such folder, and it cannot be fetched"
    with pytest.raises(UserError, match=said) as error:
        fetched("nobody/nothing")
    assert "\n" not in str(error.value)
    (hub / "model.safetensors").unlink()
    with pytest.raises(UserError, match="neither as safetensors nor as pickles of PyTorch"):
        fetched()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match="cannot be fetched from http://127.0.0.1:9"):
        fetched()
