"""The stage: one row per head, one column per rule; conservation and stability in the report."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.heads.relevance import measure
from specialized_heads.heads.relevance.average import average_relevance, stability
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import read_json

RULES = ["z_plus", "epsilon", "alpha_beta"]


@pytest.fixture
def stage(token_file, call, tmp_path: Path) -> Callable[..., tuple]:
    """`stage(model, rules=[...])`: the table, the report, and the model and tokens that it read."""

    def run(model: Transformer, **rules: list[str]) -> tuple:
        weights, table, report = (tmp_path / name for name in ("model.safetensors", "relevance.parquet", "report.json"))
        dev = token_file("dev", [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]])
        save(model, weights, training={})
        call(measure, settings=rules | {"device": "cpu"}, model=weights, dev=dev, output=table, report=report)
        return pq.read_table(table), read_json(report), load(weights), load_tokens(dev)

    return run


@pytest.mark.parametrize("kept", [{"encoder": [[1], []], "decoder": [[0], [0, 1]]}, {kind: [[], []] for kind in KINDS}])
def test_the_table_has_every_head_and_every_rule(tiny_model, stage, kept: dict) -> None:
    model = tiny_model()
    model.keep_heads(kept)
    table, report, _, dev = stage(model, rules=RULES)
    assert table.column_names == ["type", "layer", "head", *RULES]
    numbers = [(a.kind, a.layer + 1, head + 1) for a in model.attentions(*KINDS) for head in a.heads]
    assert [(row["type"], row["layer"], row["head"]) for row in table.to_pylist()] == numbers
    average = average_relevance(model, dev, rule="alpha_beta")
    assert table["alpha_beta"].to_pylist() == [value for heads in average.heads.values() for value in heads]
    assert (report["sentences"], report["steps"]) == (3, 9)
    assert list(report["conservation"]) == list(report["stability"]) == RULES
    assert report["conservation"]["alpha_beta"] == average.conservation
    assert report["stability"]["alpha_beta"] == stability(average)
    for rule in RULES:
        assert all(level["largest"] < 1e-3 for level in report["conservation"][rule].values())
