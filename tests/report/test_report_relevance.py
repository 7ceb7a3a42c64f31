"""The table of relevance by rule, from planted relevances."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import relevance

BASELINES = ("baseline/seed1", "baseline/seed2")


def planted(heads: pd.DataFrame) -> pd.DataFrame:
    """z_plus ranks as confidence does, and sums to 1 in a layer; epsilon ranks the other way, with both signs."""
    agreeing = heads["confidence"] / heads.groupby(["type", "layer"])["confidence"].transform("sum")
    return heads[["type", "layer", "head"]].assign(z_plus=agreeing, epsilon=0.1 - agreeing)


def halves(*shares: float) -> dict[str, dict[str, list[dict[str, float]]]]:
    rows = [{"layer": layer, "heads": 8, "top_head": share} for layer, share in enumerate(shares, start=1)]
    return {rule: {"encoder": rows} for rule in ("z_plus", "epsilon")}


@pytest.fixture
def rows(make) -> pd.DataFrame:
    heads = make.by_model({path: make.heads(seed=seed) for seed, path in enumerate(BASELINES)})
    relevances = {of: planted(table) for of, table in heads.items()}
    return relevance.numbers(heads, relevances, {of: halves(1.0, 0.9, 0.5) for of in heads})


def test_each_rule_of_each_baseline_has_its_layers_and_all_together(rows: pd.DataFrame, make) -> None:
    assert len(rows) == 2 * 2 * (3 + 1)
    one = rows[rows["seed"] == 1].set_index(["rule", rows.loc[rows["seed"] == 1, "layer"].fillna(0)])
    z_plus, epsilon = one.loc["z_plus"], one.loc["epsilon"]
    assert z_plus["sum"].dropna().tolist() == pytest.approx([1.0] * 3)
    assert epsilon["sum"].dropna().tolist() == pytest.approx([0.8 - 1.0] * 3)
    assert z_plus["confidence"].tolist() == pytest.approx([1.0] * 4)
    assert epsilon["confidence"].tolist() == epsilon["order"].tolist() == pytest.approx([-1.0] * 4)
    assert z_plus["top_head"].dropna().tolist() == [1.0, 0.9, 0.5]
    encoder = make.heads().query("type == 'encoder'")
    first = encoder[encoder["layer"] == 1]["confidence"]
    assert z_plus.loc[1, "top_quarter"] == pytest.approx(first.nlargest(2).sum() / first.sum())
    labelled = encoder["functions"].map(len) > 0
    ranks = encoder.groupby("layer")["confidence"].rank(ascending=False)
    assert z_plus.loc[0, "mean_rank"] == pytest.approx(ranks[labelled].mean())
    assert z_plus.loc[0, "auc"] == pytest.approx(1 - epsilon.loc[0, "auc"])
    assert z_plus.loc[0, "auc_low"] < z_plus.loc[0, "auc"] < z_plus.loc[0, "auc_high"]


def test_a_line_for_each_baseline_and_rule(rows: pd.DataFrame) -> None:
    lines = relevance.shown(rows)
    assert lines["rule"].tolist() == ["z⁺", "ε"] * 2
    assert lines["sum over a layer"].tolist() == ["1.00", "−0.20"] * 2
    assert lines["halves agree on the top head"].unique().tolist() == ["0.50 to 1.00"]
    assert lines.loc[1, "ρ with confidence, by layer"] == "−1.00 −1.00 −1.00"
    assert lines["corpus"].unique().tolist() == ["EN-FR"]


def test_without_functions_there_is_no_rank_of_them(make) -> None:
    heads = make.heads()
    heads["functions"] = [[] for _ in range(len(heads))]
    of = make.model("baseline/seed1")
    rows = relevance.numbers({of: heads}, {of: planted(heads)}, {of: halves(1.0, 1.0, 1.0)})
    assert rows[["mean_rank", "auc"]].isna().all(axis=None)
    assert relevance.shown(rows)["AUC, function against none"].tolist() == ["–", "–"]
