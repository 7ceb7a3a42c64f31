"""The stage: one row per head, one column per rule, and what was conserved."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.relevance import measure
from specialized_heads.heads.relevance.average import average_relevance
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.sections import Heads
from specialized_heads.stage import read_json

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]]
RULES = ["z_plus", "epsilon", "gradient_input", "attention", "alpha_beta"]


@pytest.mark.parametrize(
    "removed", [{"encoder": [[1], []], "decoder": [[0], [0, 1]]}, {kind: [[], []] for kind in KINDS}]
)
def test_the_table_has_every_head_and_every_rule(
    tiny_model: Callable[..., Transformer],
    token_file: Callable[..., Path],
    call: Callable[..., None],
    tmp_path: Path,
    removed: dict,
) -> None:
    model, dev = tiny_model(), token_file("dev", SOURCES, TARGETS)
    model.keep_heads(removed)
    weights, table, report = (tmp_path / name for name in ("model.safetensors", "relevance.parquet", "relevance.json"))
    save(model, weights, training={})
    settings = {"heads": {"relevance_rules": RULES}, "device": "cpu"}
    call(measure, settings=settings, model=weights, dev=dev, output=table, report=report)
    rows = pq.read_table(table).to_pylist()
    assert pq.read_schema(table).names == ["type", "layer", "head", *RULES]
    numbers = [(a.kind, a.layer + 1, head + 1) for a in model.attentions(*KINDS) for head in a.heads]
    assert [(row["type"], row["layer"], row["head"]) for row in rows] == numbers
    found = average_relevance(model, load_tokens(dev), rule="attention", settings=Heads())
    assert [row["attention"] for row in rows] == [value for heads in found.heads.values() for value in heads]
    written = read_json(report)
    assert (written["sentences"], written["steps"]) == (3, 9)
    assert list(written["conservation"]) == RULES
    assert written["conservation"]["attention"] == found.conservation
    for rule in ("epsilon", "z_plus", "alpha_beta"):
        assert all(level["largest"] < 1e-3 for level in written["conservation"][rule].values())
