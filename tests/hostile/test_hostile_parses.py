"""Hostile models of parsers, and parse tables that are broken or of other sentences than the corpus."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Payload

from specialized_heads.corpus.pairs import Pairs, write_pairs

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
