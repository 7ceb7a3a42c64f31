"""Hostile vocabularies and token files: damaged, absurd, or meant to run code."""

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import Payload
from safetensors.numpy import save as serialised

from specialized_heads.corpus.bpe import learn, sealed

DECODING = {"beam": 1, "max_length_ratio": 1.0}


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


def token_file(source: list[int], offsets: list[int]) -> bytes:
    """These tokens, whatever the offsets say, and one token of the other side."""
    ids = {"source": np.array(source, np.int32), "target": np.array([5], np.int32)}
    return serialised(ids | {"source_offsets": np.array(offsets, np.int64), "target_offsets": np.array([0, 1])})


NEGATIVE_PLACE = b'{"source": {"data_offsets": [-8, -4]}}'
TOKENS = {
    "pickle": pickle.dumps(Payload()),
    "header_nested_too_deeply": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "negative_place": struct.pack("<Q", len(NEGATIVE_PLACE)) + NEGATIVE_PLACE,
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
