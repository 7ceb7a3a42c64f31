"""Hostile vocabularies and token files: damaged, absurd, or meant to run code."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import Payload

from specialized_heads.corpus.bpe import learn, sealed

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
