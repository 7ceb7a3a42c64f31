"""The stage that analyses heads, on real sentences with real trees and a real BPE."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parsed_corpus import NUMBER, Corpus, libreoffice

from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.heads import analyse
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.words import write_parses
from specialized_heads.stage import read_json


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return libreoffice()


@pytest.fixture
def files(corpus: Corpus, tmp_path: Path, token_file) -> dict[str, Path]:
    """What the stage reads, except the model, and writes. Relevances are those of up to 8 heads in 2 layers."""
    write_pairs(tmp_path / "text.parquet", Pairs(corpus.sources, ["–"] * NUMBER, ["1"] * NUMBER))
    write_parses(tmp_path / "parses.parquet", corpus.trees)
    (tmp_path / "bpe.model").write_bytes(corpus.bpe.serialized_model_proto())
    heads = [(kind, layer, head) for kind in KINDS for layer in (1, 2) for head in range(1, 9)]
    rows = [
        {"type": kind, "layer": layer, "head": head, "z_plus": number / 100, "epsilon": -number / 50}
        for number, (kind, layer, head) in enumerate(heads)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "relevance.parquet")
    return {
        "model": tmp_path / "model.safetensors",
        "bpe": tmp_path / "bpe.model",
        "text": tmp_path / "text.parquet",
        "analysis": token_file("analysis", corpus.source_ids, corpus.target_ids),
        "train": token_file("train", corpus.source_ids, corpus.target_ids),
        "relevance": tmp_path / "relevance.parquet",
        "parses": tmp_path / "parses.parquet",
        "output": tmp_path / "heads.parquet",
        "examples": tmp_path / "examples.json",
        "report": tmp_path / "report.json",
    }


@pytest.fixture
def analysed(files: dict[str, Path], call) -> Callable[..., tuple[list[dict], dict]]:
    """`analysed(least_arcs=9, ...)`: the rows and the report of the stage, with these settings of `heads`."""

    def run(*, preprocess: str = "none", **heads: object) -> tuple[list[dict], dict]:
        settings = {"heads": {"rare_cutoff": 40} | heads, "preprocess": preprocess}
        call(analyse, settings=settings | {"language": "en", "seed": 1, "device": "cpu"}, **files)
        return pq.read_table(files["output"]).to_pylist(), read_json(files["report"])

    return run
