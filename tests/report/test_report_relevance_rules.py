"""Agreement of relevance rules: rank correlations of every pair, by attention type."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import style
from specialized_heads.report.beyond import relevance_rules

RULES = ["epsilon", "z_plus", "gradient_input"]


def table(layers: int = 2, heads: int = 4) -> pd.DataFrame:
    """epsilon and z_plus in the same order, gradient_input in the opposite one among encoder heads, alike elsewhere."""
    random = np.random.default_rng(1)
    rows = []
    for kind, layer, head in product(style.TYPES, range(1, layers + 1), range(1, heads + 1)):
        value = random.uniform()
        rows.append([kind, layer, head, value, np.exp(value), -(value**3) if kind == "encoder" else value / 7])
    return pd.DataFrame(rows, columns=["type", "layer", "head", *RULES])


def test_every_pair_of_rules_once_for_each_type(stage, write):
    paths = [write("a.parquet", table()), write("b.parquet", table(1, 3))]
    stem = stage("relevance_rules", {"titles": ["EN-FR", "EN-RU"]}, relevance=paths)
    plotted = pd.read_csv(stem.with_suffix(".csv"))
    pairs = [("epsilon", "z_plus"), ("epsilon", "gradient_input"), ("z_plus", "gradient_input")]
    assert list(zip(plotted["rule"], plotted["other_rule"], strict=True)) == pairs * 6
    assert plotted.groupby("corpus")["heads"].unique().map(list).to_dict() == {"EN-FR": [8], "EN-RU": [3]}
    found = plotted.set_index(["corpus", "type"])["correlation"]
    for corpus in ("EN-FR", "EN-RU"):
        assert found.loc[[(corpus, "encoder")]].tolist() == pytest.approx([1, -1, -1])
        assert found.loc[[(corpus, "cross")]].tolist() == pytest.approx([1, 1, 1])


def test_a_type_without_a_ranking_says_so(make):
    heads = table()
    heads = heads[(heads["type"] != "encoder") | ((heads["layer"] == 1) & (heads["head"] == 2))]
    heads.loc[heads["type"] == "decoder", RULES] = 0.0
    points = relevance_rules.numbers({"EN-FR": heads})
    assert points.groupby("type")["correlation"].count().to_dict() == {"cross": 3, "decoder": 0, "encoder": 0}
    shown = [" ".join(text.split()) for text in make.texts(relevance_rules.draw(points, titles=["EN-FR"]))]
    assert "encoder self-attention: fewer than two heads that differ" in shown
    assert "cross-attention (n = 8)" in shown


def test_a_single_rule_has_nothing_to_agree_with(make):
    points = relevance_rules.numbers({"EN-FR": table()[["type", "layer", "head", "epsilon"]]})
    assert points.empty
    assert any("heads.relevance_rules" in text for text in make.texts(relevance_rules.draw(points, titles=["EN-FR"])))
