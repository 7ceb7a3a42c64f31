"""The table of relevance by rule, from planted relevances."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import relevance
from specialized_heads.report.data import encoder_heads


def planted(heads: pd.DataFrame) -> pd.DataFrame:
    """z_plus ranks as confidence does, and sums to 1 in a layer; epsilon ranks the other way, with both signs."""
    agreeing = heads["confidence"] / heads.groupby(["type", "layer"])["confidence"].transform("sum")
    halves = heads["layer"].map({1: 1.0, 2: 0.9, 3: 0.5})
    rules = {"z_plus": agreeing, "epsilon": 0.1 - agreeing}
    columns = {f"relevance_{rule}": values for rule, values in rules.items()} | {
        f"halves_{rule}": halves for rule in rules
    }
    return heads.assign(relevance=agreeing, **columns)


@pytest.fixture
def rows(make) -> pd.DataFrame:
    heads = {"baseline/seed1": planted(make.heads()), "baseline/seed2": planted(make.heads(seed=1))}
    # The other corpus has one rule, which is not compared.
    return relevance.numbers(make.tables(heads={"EN-FR": heads, "EN-RU": make.heads()}))


def test_each_rule_of_each_baseline_has_its_layers_and_all_together(rows: pd.DataFrame, make) -> None:
    assert len(rows) == 2 * 2 * (3 + 1)
    one = rows[rows["seed"] == 1]
    z_plus, epsilon = (one[one["rule"] == rule].set_index("layer") for rule in ("z_plus", "epsilon"))
    assert z_plus["sum"].dropna().tolist() == pytest.approx([1.0] * 3)
    assert epsilon["sum"].dropna().tolist() == pytest.approx([0.8 - 1.0] * 3)
    assert z_plus["confidence"].tolist() == pytest.approx([1.0] * 4)
    assert epsilon["confidence"].tolist() == epsilon["order"].tolist() == pytest.approx([-1.0] * 4)
    assert z_plus["top_head"].dropna().tolist() == [1.0, 0.9, 0.5]
    encoder = encoder_heads(make.heads())
    first = encoder[encoder["layer"] == 1]["confidence"]
    assert z_plus.loc[1, "top_quarter"] == pytest.approx(first.nlargest(2).sum() / first.sum())
    ranks = encoder.groupby("layer")["confidence"].rank(ascending=False)
    together, mirrored = z_plus.iloc[-1], epsilon.iloc[-1]
    assert together["mean_rank"] == pytest.approx(ranks[encoder["functions"] != "other"].mean())
    assert together["auc"] == pytest.approx(1 - mirrored["auc"])
    assert together["auc_low"] < together["auc"] < together["auc_high"]


def test_a_line_for_each_baseline_and_rule(rows: pd.DataFrame) -> None:
    lines = relevance.shown(rows)
    assert lines["rule"].tolist() == ["z⁺", "ε"] * 2
    assert lines["sum over a layer"].tolist() == ["1.00", "−0.20"] * 2
    assert lines["halves agree on the top head"].unique().tolist() == ["0.50 to 1.00"]
    assert lines.loc[1, "ρ with confidence, by layer"] == "−1.00 −1.00 −1.00"
    assert lines["corpus"].unique().tolist() == ["EN-FR"]


def test_without_functions_there_is_no_rank_of_them(make) -> None:
    heads = planted(make.heads())
    heads["functions"] = [[] for _ in range(len(heads))]
    rows = relevance.numbers(make.tables(heads={"EN-FR": heads}))
    assert rows[["mean_rank", "auc"]].isna().all(axis=None)
    assert relevance.shown(rows)["AUC, function against none"].tolist() == ["–", "–"]
