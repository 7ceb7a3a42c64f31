"""The table of all criteria: each head's value, and the counts at which it is kept."""

import json
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.model.checkpoint import save
from specialized_heads.pruning import compare
from specialized_heads.pruning.criteria import at_random
from specialized_heads.pruning.scopes import heads_of


@pytest.fixture
def table(call, tiny_model, tmp_path: Path) -> pd.DataFrame:
    """Two encoder counts by gates and confidence, one of all types by random choice."""
    save(tiny_model(), tmp_path / "baseline.safetensors", training={})
    every = [(kind, layer, head) for kind in ("encoder", "decoder", "cross") for layer in (1, 2) for head in (1, 2)]
    rows = [(*head, number / 10, number / 5) for number, head in enumerate(every)]
    frame = pd.DataFrame(rows, columns=["type", "layer", "head", "confidence", "relevance"])
    frame.to_parquet(tmp_path / "heads.parquet")
    for scope, heads in (("encoder", every[:4]), ("all", every)):
        named = [dict(zip(("type", "layer", "head"), head), log_alpha=-float(n)) for n, head in enumerate(heads)]
        (tmp_path / f"{scope}.json").write_text(json.dumps({"rows": named}))
    cut = []
    for criterion, scope, heads, encoder in (
        ("gates", "encoder", 2, [[0], [1]]),
        ("gates", "encoder", 1, [[0], []]),
        ("confidence", "encoder", 2, [[], [0, 1]]),
        ("random", "all", 8, [[0, 1], []]),
    ):
        model = tiny_model()
        rest = [[0, 1], [0]] if scope == "all" else [[0, 1], [0, 1]]
        model.keep_heads({"encoder": encoder, "decoder": rest, "cross": rest})
        path = tmp_path / f"{criterion}{heads}.safetensors"
        save(model, path, training={})
        cut.append((path.with_suffix(".json"), {"criterion": criterion, "scope": scope, "heads": heads}))
    settings = {"seed": 3, "criteria": ["gates", "confidence", "random"], "cut": [what for _, what in cut]}
    files = {"model": tmp_path / "baseline.json", "heads": tmp_path / "heads.parquet", "cut": [path for path, _ in cut]}
    files |= {"gates": [tmp_path / "encoder.json", tmp_path / "all.json"], "output": tmp_path / "criteria.parquet"}
    call(compare, settings=settings | {"gates": ["encoder", "all"], "column": "importance"}, **files)
    return pd.read_parquet(tmp_path / "criteria.parquet")


def test_every_criterion_gives_every_head_of_a_scope_its_value(table: pd.DataFrame, tiny_model) -> None:
    assert table.groupby(["scope", "criterion"], sort=False).size().to_dict() == {
        (scope, criterion): size
        for scope, size in (("encoder", 4), ("all", 12))
        for criterion in ("gates", "confidence", "random")
    }
    keys = ["scope", "criterion", "type", "layer", "head"]
    values = table.set_index(keys)["value"].to_dict()
    assert values["encoder", "gates", "encoder", 1, 2] == -1.0
    assert values["all", "gates", "cross", 2, 2] == -11.0
    assert values["all", "confidence", "decoder", 1, 1] == 0.4
    heads = heads_of(tiny_model().architecture, scope="all")
    own = table[(table["scope"] == "all") & (table["criterion"] == "random")].sort_values("value", ascending=False)
    assert list(own[["type", "layer", "head"]].itertuples(index=False, name=None)) == at_random(heads, seed=3)


def test_kept_heads_are_those_of_the_cut_models(table: pd.DataFrame) -> None:
    kept = {
        (row.scope, row.criterion, row.type, row.layer, row.head): list(row.counts)
        for row in table.itertuples(index=False)
        if len(row.counts)
    }
    encoder = {key: counts for key, counts in kept.items() if key[0] == "encoder"}
    assert encoder == {
        ("encoder", "gates", "encoder", 1, 1): [2, 1],
        ("encoder", "gates", "encoder", 2, 2): [2],
        ("encoder", "confidence", "encoder", 2, 1): [2],
        ("encoder", "confidence", "encoder", 2, 2): [2],
    }
    assert sum(key[0] == "all" for key in kept) == 8
    assert {counts[0] for key, counts in kept.items() if key[0] == "all"} == {8}
