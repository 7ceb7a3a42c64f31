"""A small set for relevance; the stage that analyses heads, on real sentences with real trees and a
real BPE."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from parallel_text import Pairs, write_pairs
from parsed_corpus import NUMBER, Corpus, libreoffice

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import analyse
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.words import write_parses
from specialized_heads.stage import read_json


@pytest.fixture
def data(store) -> TokenStore:
    """Source lengths 4, 1, 3, target lengths 2, 3, 1: nine generation steps."""
    return store([[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]])


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return libreoffice()


@pytest.fixture
def files(corpus: Corpus, tmp_path: Path, token_file) -> dict[str, Path]:
    """What the stage reads, except the model, and writes. Relevances are those of up to 8 heads in
    2 layers."""
    read = ("model.safetensors", "bpe.model", "text.parquet", "relevance.parquet", "parses.parquet")
    files = {
        name.split(".")[0]: tmp_path / name
        for name in (*read, "output.parquet", "examples.json", "report.json")
    }
    files |= {
        name: token_file(name, corpus.source_ids, corpus.target_ids)
        for name in ("analysis", "train")
    }
    write_pairs(files["text"], Pairs(corpus.sources, ["–"] * NUMBER, ["1"] * NUMBER))
    write_parses(files["parses"], corpus.trees)
    files["bpe"].write_bytes(corpus.bpe.serialized_model_proto())
    heads = pd.DataFrame(product(KINDS, (1, 2), range(1, 9)), columns=["type", "layer", "head"])
    heads = heads.assign(
        z_plus=heads.index / 100, z_plus_error=heads.index / 1000, epsilon=-heads.index / 50
    )
    heads.to_parquet(files["relevance"])
    return files


@pytest.fixture
def analysed(files: dict[str, Path], call) -> Callable[..., tuple[list[dict], dict]]:
    """`analysed(least_arcs=9, ...)`: the rows and the report of the stage, with these settings of
    `heads`."""

    def run(*, preprocess: str = "none", **heads: object) -> tuple[list[dict], dict]:
        settings = {"heads": {"rare_cutoff": 40} | heads, "preprocess": preprocess}
        call(analyse, settings=settings | {"language": "en", "seed": 1, "device": "cpu"}, **files)
        return pq.read_table(files["output"]).to_pylist(), read_json(files["report"])

    return run
