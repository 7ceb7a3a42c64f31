"""Hostile models of parsers and parses: every one ends in one line, and no payload runs."""

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import Payload
from parallel_text import Pairs, write_pairs

TEXT = "Dogs see cats ."
STANZA = {
    "en": {"tokenize": {"x": {"md5": ""}}, "packages": {"default": {"tokenize": "x"}}},
    "url": "",
}


def test_a_pickle_for_a_model_of_a_parser(run, refused, folder: Path) -> None:
    pytest.importorskip("stanza")
    (folder / "models/en/tokenize").mkdir(parents=True)
    (folder / "models/resources.json").write_text(json.dumps(STANZA))
    (folder / "models/en/tokenize/x.pt").write_bytes(pickle.dumps(Payload(), protocol=2))
    write_pairs(folder / "analysis.parquet", Pairs([TEXT], ["–"], ["1"]))
    settings = {
        "engine": "stanza",
        "path": None,
        "directory": "models",
        "package": "default",
        "language": "en",
    }
    files = ["--text", "analysis.parquet", "--output", "out/p.parquet", "--report", "out/p.json"]
    outcome = run("parsing.parse", "--settings", json.dumps(settings), *files)
    refused(outcome, "no Stanza models for 'en'", "Weights only load failed")


def table(**columns: list) -> pa.Table:
    """The tree of a sentence; single columns can be others."""
    values = {
        "sentence": [0] * 4,
        "word": [1, 2, 3, 4],
        "form": TEXT.split(),
        "start": [0, 5, 9, 14],
        "end": [4, 8, 13, 15],
        "head": [2, 0, 2, 2],
        "relation": ["nsubj", "root", "obj", "punct"],
        "upos": ["X"] * 4,
    }
    return pa.table(values | columns)


TABLES = {
    "no_columns": (pa.table({"x": [1]}), "parses.parquet: column sentence is missing"),
    "text_for_numbers": (table(head=["two"] * 4), "parses.parquet: "),
    "beyond_32_bits": (table(head=[2**40] * 4), "parses.parquet: "),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_trees(run, refused, folder: Path, name: str) -> None:
    content, *said = TABLES[name]
    pq.write_table(content, folder / "parses.parquet")
    files = ["--parses", "parses.parquet", "--output", "out/relations.parquet"]
    refused(run("parsing.relations", "--settings", '{"relations": ["nsubj"]}', *files), *said)
