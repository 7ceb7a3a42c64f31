"""Hostile text, archives, vocabularies, token files and parses: every one ends in one line, and no payload runs."""

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Payload
from safetensors.numpy import save as serialised

from specialized_heads.corpus.bpe import learn, sealed
from specialized_heads.corpus.pairs import Pairs, write_pairs

LANGUAGES = {"source_language": "en", "target_language": "fr"}


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


CORPORA = {
    "pickles": ("x.tsv", pickle.dumps(Payload()), "x.tsv: line 1: "),
    "an_archive": ("x.tsv", zipped("pairs.tsv", b"one\tun\n"), "x.tsv: line 1: "),
}


@pytest.mark.parametrize("name", CORPORA)
def test_text_that_cannot_be_read(run, refused, folder: Path, name: str) -> None:
    file, content, said = CORPORA[name]
    (folder / file).write_bytes(content)
    settings = {"source": {"kind": "local", "path": file}} | LANGUAGES
    outcome = run("corpus.raw", settings=settings, resource=[file], output="out/raw.parquet", card="out/raw.json")
    refused(outcome, said)


# Hostile vocabularies and token files: damaged, absurd, or meant to run code.

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


# Hostile models of parsers, and parse tables that are broken or of other sentences than the corpus.

TEXTS = ["Dogs see cats .", "Cats sleep ."]
CONLLU = {"engine": "conllu", "path": "trees.conllu", "directory": None, "package": "default", "language": "en"}


def text(folder: Path, texts: list[str] = TEXTS) -> Path:
    path = folder / "analysis.parquet"
    write_pairs(path, Pairs(texts, ["–"] * len(texts), ["1"] * len(texts)))
    return path


STANZA = {"en": {"tokenize": {"x": {"md5": ""}}, "packages": {"default": {"tokenize": "x"}}}, "url": ""}
MODELS = {
    "list_of_models_that_is_none": ("stanza", {"resources.json": "{"}, "no Stanza models for 'en'"),
    "pickle_for_a_model": (
        "stanza",
        {"resources.json": json.dumps(STANZA), "en/tokenize/x.pt": pickle.dumps(Payload(), protocol=2)},
        "no Stanza models for 'en'",
        "Weights only load failed",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_parsers(run, refused, folder: Path, name: str) -> None:
    engine, files, *said = MODELS[name]
    pytest.importorskip(engine)
    for place, content in files.items():
        path = folder / "models" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    settings = CONLLU | {"engine": engine, "path": None, "directory": "models"}
    refused(
        run("parsing.parse", settings=settings, text=text(folder), output="out/p.parquet", report="out/p.json"), *said
    )


def table(**columns: list) -> pa.Table:
    """Trees of the two sentences; single columns can be others."""
    forms = [form for one in TEXTS for form in one.split()]
    ends = [4, 8, 13, 15, 4, 10, 12]
    values = {
        "sentence": [0] * 4 + [1] * 3,
        "word": [1, 2, 3, 4, 1, 2, 3],
        "form": forms,
        "start": [end - len(form) for end, form in zip(ends, forms, strict=True)],
        "end": ends,
        "head": [2, 0, 2, 2, 2, 0, 2],
        "relation": ["nsubj", "root", "obj", "punct", "nsubj", "root", "punct"],
        "upos": ["X"] * 7,
    }
    return pa.table(values | columns)


TABLES = {
    "no_columns": (pa.table({"x": [1]}), "parses.parquet: column sentence is missing"),
    "text_for_numbers": (table(head=["two"] * 7), "parses.parquet: "),
    "gaps": (table(head=[2, None, 2, 2, 2, 0, 2]), "parses.parquet: column head has missing values"),
    "heads_outside": (table(head=[99, 0, 2, 2, 2, 0, 2]), "sentence 0: 'Dogs' has head 99", "a tree of 4 words"),
    "negative_sentence": (table(sentence=[-1] * 4 + [1] * 3), "parses.parquet: sentence -1"),
    "ends_before_starts": (table(end=[-4] * 7), "parses.parquet: sentence 0: 'Dogs' has head 2 and characters 0 to -4"),
    "beyond_32_bits": (table(head=[2**40] * 7), "parses.parquet: "),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_trees(run, refused, folder: Path, name: str) -> None:
    content, *said = TABLES[name]
    pq.write_table(content, folder / "parses.parquet")
    files = {"parses": "parses.parquet", "output": "out/relations.parquet"}
    refused(run("parsing.relations", settings={"relations": ["nsubj"]}, **files), *said)
