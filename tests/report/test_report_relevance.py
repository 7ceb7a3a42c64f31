"""The table of relevance by rule, from planted relevances."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import relevance
from specialized_heads.report.data import encoder_heads


def planted(heads: pd.DataFrame) -> pd.DataFrame:
    """z_plus ranks as confidence does, and sums to 1 in a layer; epsilon ranks the other way, with both signs."""
    agreeing = heads["confidence"] / heads.groupby(["type", "layer"])["confidence"].transform("sum")
    halves = heads["layer"].map({1: 1.0, 2: 0.9, 3: 0.5})
    heads = heads.assign(relevance=agreeing, relevance_z_plus=agreeing, relevance_epsilon=0.1 - agreeing)
    return heads.assign(halves_z_plus=halves, halves_epsilon=halves)


def test_each_rule_of_each_baseline_has_its_layers_and_all_together(make) -> None:
    heads = {"baseline": planted(make.heads()), "baseline/seed2": planted(make.heads(seed=1))}
    # The other corpus has one rule, which is not compared.
    rows = relevance.numbers(make.tables(heads={"EN-FR": heads, "EN-RU": make.heads()}))
    assert len(rows) == 2 * 2 * (3 + 1)
    z_plus, epsilon = (rows[(rows["seed"] == 1) & (rows["rule"] == rule)] for rule in ("z_plus", "epsilon"))
    assert z_plus["sum"].dropna().tolist() == pytest.approx([1.0] * 3)
    assert epsilon["sum"].dropna().tolist() == pytest.approx([0.8 - 1.0] * 3)
    assert z_plus["confidence"].tolist() == pytest.approx([1.0] * 4)
    assert epsilon["confidence"].tolist() == epsilon["order"].tolist() == pytest.approx([-1.0] * 4)
    assert z_plus["top_head"].dropna().tolist() == [1.0, 0.9, 0.5]
    encoder = encoder_heads(make.heads())
    first = encoder[encoder["layer"] == 1]["confidence"]
    assert z_plus.iloc[0]["top_quarter"] == pytest.approx(first.nlargest(2).sum() / first.sum())
    ranks = encoder.groupby("layer")["confidence"].rank(ascending=False)
    together = z_plus.iloc[-1]
    assert together["mean_rank"] == pytest.approx(ranks[encoder["functions"] != "other"].mean())
    assert together["auc_low"] < together["auc"] == pytest.approx(1 - epsilon.iloc[-1]["auc"])

    lines = relevance.shown(rows)
    assert lines["rule"].tolist() == ["z⁺", "ε"] * 2
    assert lines["sum over a layer"].tolist() == ["1.00", "−0.20"] * 2
    assert lines["halves agree on the top head"].unique().tolist() == ["0.50 to 1.00"]
    assert lines.loc[1, "ρ with confidence, by layer"] == "−1.00 −1.00 −1.00"


def test_without_functions_there_is_no_rank_of_them(make) -> None:
    heads = planted(make.heads()).assign(functions=[[] for _ in range(72)])
    rows = relevance.numbers(make.tables(heads={"EN-FR": heads}))
    assert rows[["mean_rank", "auc"]].isna().all(axis=None)
    assert relevance.shown(rows)["AUC, function against none"].tolist() == ["–", "–"]
