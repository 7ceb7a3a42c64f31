"""Hostile vocabularies, token files and saved states: damaged, of others, or meant to run code."""

import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import Payload

from specialized_heads.config.sections import Model, Training, Vocabulary
from specialized_heads.corpus.bpe import learn, sealed
from specialized_heads.stage import file_hash

DECODING = {"beam": 1, "length_penalty": 1.0, "max_length_ratio": 1.0}


def header(values: Any, data: bytes = b"") -> bytes:
    text = json.dumps(values).encode()
    return struct.pack("<Q", len(text)) + text + data


def translate(run: Callable, trained: Any, store: Path) -> Any:
    """The stage that reads all of them."""
    settings = {"decoding": DECODING, "preprocess": "none", "language": "fr", "device": "cpu"}
    files = {"model": trained.weights, "tokens": store, "bpe": trained.bpe}
    return run(
        "evaluation.translate", settings=settings, **files, output="out/translation.txt", tokenised="out/tokens.txt"
    )


VOCABULARIES = {
    "pickle": pickle.dumps(Payload()),
    "sealed_garbage": sealed(b"\x0a\xff\xff\xff\xff\x0fno model"),
    "half": learn([f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"], size=30, name="source")[:200],
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_vocabularies(run, refused, trained, name: str) -> None:
    store = trained.tokens(["ai qa"])
    trained.bpe.write_bytes(VOCABULARIES[name])
    refused(translate(run, trained, store), "bpe.model: damaged, or not a BPE model", "delete it and run again")


INT, LONG = np.int32, np.int64


def token_file(source: list[int], offsets: list[int]) -> bytes:
    """Tokens of one side, and the same of the other, whatever the offsets say."""
    arrays = {"source_offsets": np.array(offsets, LONG), "target_offsets": np.array([0, 1], LONG)}
    arrays |= {"source": np.array(source, INT), "target": np.array([5], INT)}
    places, data = {}, b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        kind = {INT: "I32", LONG: "I64"}[array.dtype.type]
        places[name] = {"dtype": kind, "shape": [len(array)], "data_offsets": [len(data), end]}
        data += array.tobytes()
    return header(places, data)


TOKENS = {
    "pickle": pickle.dumps(Payload()),
    "header_nested_too_deeply": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "negative_place": header({"source": {"data_offsets": [-8, -4]}}),
    "offsets_beyond_the_ids": token_file([5, 6], [0, 1000]),
    "offsets_that_go_back": token_file([5, 6], [0, 2, 1, 2]),
    "no_offsets": token_file([5, 6], []),
    "negative_ids": token_file([5, -3], [0, 2]),
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens(run, refused, trained, name: str) -> None:
    store = trained.folder / "tokens.safetensors"
    store.write_bytes(TOKENS[name])
    refused(translate(run, trained, store), "tokens.safetensors: ", "delete it and run again")


def replaced(path: Path, content: bytes) -> None:
    """Change a member of an archive of torch: its pickle."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in members.items():
            archive.writestr(name, content if name.endswith("data.pkl") else old)


def state(kind: str, path: Path) -> None:
    match kind:
        case "pickle":
            path.write_bytes(pickle.dumps(Payload(), protocol=2))
        case "torch_file_with_a_payload":
            torch.save({"x": torch.zeros(1)}, path)
            replaced(path, pickle.dumps(Payload(), protocol=2))
        case "list":
            torch.save([1, 2], path)
        case "other_keys":
            torch.save({"fingerprint": "x"}, path)


@pytest.mark.parametrize("kind", ["pickle", "torch_file_with_a_payload", "list", "other_keys"])
def test_a_saved_state_is_never_run_but_thrown_away(run, trained, caplog, kind: str) -> None:
    """A state can be done without: training starts over, says so, and ends with the model it would have made."""
    sizes = Model(layers=1, heads=2, width=8, feed_forward=8, dropout=0.0).model_dump()
    plan = Training(updates=2, batch_tokens=10, micro_batch_tokens=10, warmup=1, log_every=1, evaluate_every=2)
    settings = {"seed": 1, "vocabulary": Vocabulary(source=40, target=40).model_dump(), "model": sizes}
    settings |= {"training": plan.model_dump(), "device": "cpu"}
    store = trained.tokens(["ai qa", "bj rb", "ck sc"])
    weights = []
    for name in ("clean", "hostile"):
        folder = trained.folder / name
        if name == "hostile":
            folder.mkdir()
            state(kind, folder / "state.pt")
        out = {"output": trained.folder / f"{name}.safetensors", "records": trained.folder / f"{name}.jsonl"}
        outcome = run("training.train", settings=settings, train=store, dev=store, state=folder, **out)
        assert (outcome.status, outcome.said) == (0, "")
        weights.append(file_hash(out["output"]))
    assert weights[0] == weights[1]
    assert "state.pt cannot be read" in caplog.text
    assert not (trained.folder / "payload").exists()
