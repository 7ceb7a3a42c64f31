"""When functions emerge in training, and how far they have come at its end."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report.data import Tables, encoder_heads
from specialized_heads.report.figures import functions, relevance


def heads(previous: float, margin: float) -> pd.DataFrame:
    """Two encoder heads, one at the previous token and one that follows objects, and a decoder head
    that must not count."""
    table = pd.DataFrame(
        {"type": ["encoder", "encoder", "decoder"], "head": [1, 2, 1], "relevance": [0.7, 0.3, 1.0]}
    )
    table = table.assign(
        **{"layer": 1, "share_-1": [previous, 0.01, 1.0], "share_+0": [0.02, 0.04, 0.0]}
    )
    table = table.assign(**{"share_+1": [0.03, 0.05, None], "rarest": [0.1, 0.05, None]})
    for end, add in {"": 0, "_low": -0.05, "_high": 0.05}.items():
        table[f"obj_head_to_dependent_margin{end}"] = [-0.2 + add, margin + add, None]
    table["functions"] = [["positional"] if previous >= 0.9 else [], [], []]
    table["relations_certain"] = [[], ["obj_head_to_dependent"] if margin > 0.1 else [], []]
    return table


TRAINING = {"checkpoint/update10": heads(0.1, -0.3), "checkpoint/update100": heads(0.9, -0.2)}
TRAINING |= {"baseline": heads(0.95, 0.2)}
LOG = pd.DataFrame({"update": [5, 10, 100, 1000], "loss": 9.0, "dev_loss": [None, 5.0, 2.0, 1.5]})


@pytest.fixture
def trained(make):
    """`trained(heads, log)`: the tables of a training."""

    def tables(heads: dict[str, pd.DataFrame] = TRAINING, log: pd.DataFrame = LOG) -> Tables:
        given = {"heads": heads, "logs": log, "relations": make.relations(relations=("obj",))}
        return make.tables(**{name: {"C": table} for name, table in given.items()})

    return tables


def test_each_curve_follows_the_best_encoder_head(trained) -> None:
    points = functions.emergence_numbers(trained())
    curves = {name: own["value"].tolist() for name, own in points.groupby("name")}
    assert curves["previous token"] == [0.1, 0.9, 0.95]
    assert curves["next token"] == [0.05, 0.05, 0.05]
    # before the last moment, the other head's
    assert curves["obj, head → dependent"] == [-0.2, -0.2, 0.2]
    assert curves["layer 1"] == [0.7, 0.7, 0.7]
    assert curves[""] == [5.0, 2.0, 1.5]
    # the last one of the log
    assert points.loc[points["name"] == "layer 1", "update"].tolist() == [10, 100, 1000]
    assert points.loc[points["measure"] == "syntactic", "threshold"].tolist() == [0.1] * 3


def test_the_table_is_in_the_order_in_which_functions_come(trained) -> None:
    rows = functions.halfway_numbers(trained())
    halves = rows.set_index("name")["half"]
    assert halves[["previous token", "obj, head → dependent"]].tolist() == [100, 1000]
    assert halves[""] == 100  # the loss falls, and has fallen half its way by then
    assert halves.is_monotonic_increasing
    # A loss counts from the first checkpoint on.
    early = pd.concat([LOG, pd.DataFrame({"update": [2], "loss": [9.0], "dev_loss": [50.0]})])
    assert functions.halfway_numbers(trained(log=early)).equals(rows)
    late = functions.halfway_numbers(trained(log=LOG.replace({"dev_loss": {5.0: None}})))
    assert "loss" not in late["measure"].tolist() and len(late) == len(rows) - 1
    # A curve that comes and goes counts only once it stays.
    shares = {10: 0.0, 100: 0.9, 1000: 0.2, 10_000: 0.8}
    again = trained(
        {f"checkpoint/update{update}": heads(share, -0.3) for update, share in shares.items()}
    )
    assert functions.halfway_numbers(again).set_index("name").at["previous token", "half"] == 10_000


def test_the_best_heads_of_a_baseline_and_its_labels(trained) -> None:
    tables = trained({"baseline": heads(0.95, 0.2), "baseline/seed2": heads(0.5, 0.05)})
    rows = functions.labels_numbers(
        tables._replace(models=tables.models.assign(dev_loss=[2.0, 2.5]))
    )
    found = rows[
        ["share_-1", "share_+0", "margin", "positional_heads", "syntactic_heads"]
    ].values.tolist()
    assert found == [[0.95, 0.04, 0.2, 1, 1], [0.5, 0.04, 0.05, 0, 0]]
    line, alone = functions.labels_shown(rows).iloc[0], functions.labels_shown(rows[:1]).iloc[0]
    assert line[["dev loss", "positional heads"]].tolist() == ["2.000 to 2.500", "0 to 1 of 2"]
    assert line["syntactic margin, points"] == "+5 to +20"
    assert alone["syntactic margin, points"] == "+20 [15, 25] obj, head → dependent"
    # Without encoder heads, or without arcs, nothing is best.
    models = tables.models.assign(dev_loss=2.0)
    unscored = tables.heads.assign(**{name: np.nan for name in tables.heads if "_margin" in name})
    for given in (tables.heads[tables.heads["type"] != "encoder"], unscored):
        numbers = functions.labels_numbers(tables._replace(models=models, heads=given))
        line = functions.labels_shown(numbers).iloc[0]
        assert line["syntactic margin, points"] == "–"
        beside = pd.concat([rows[:1], numbers[:1].assign(corpus="B")]).convert_dtypes()
        margins = functions.labels_shown(beside)["syntactic margin, points"]
        assert margins.tolist() == [alone["syntactic margin, points"], "–"]


# The table of relevance by rule, from planted relevances.


def planted(heads: pd.DataFrame) -> pd.DataFrame:
    """z_plus ranks as confidence does, and sums to 1 in a layer; epsilon ranks the other way, with
    both signs."""
    agreeing = heads["confidence"] / heads.groupby(["type", "layer"])["confidence"].transform("sum")
    halves = heads["layer"].map({1: 1.0, 2: 0.9, 3: 0.5})
    heads = heads.assign(
        relevance=agreeing, relevance_z_plus=agreeing, relevance_epsilon=0.1 - agreeing
    )
    return heads.assign(halves_z_plus=halves, halves_epsilon=halves)


def test_each_rule_of_each_baseline_has_its_layers_and_all_together(make) -> None:
    heads = {"baseline": planted(make.heads()), "baseline/seed2": planted(make.heads(seed=1))}
    # The other corpus has one rule, which is not compared.
    rows = relevance.rules_numbers(make.tables(heads={"EN-FR": heads, "EN-RU": make.heads()}))
    assert len(rows) == 2 * 2 * (3 + 1)
    z_plus, epsilon = (
        rows[(rows["seed"] == 1) & (rows["rule"] == rule)] for rule in ("z_plus", "epsilon")
    )
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

    lines = relevance.rules_shown(rows)
    assert lines["rule"].tolist() == ["z⁺", "ε"] * 2
    assert lines["sum over a layer"].tolist() == ["1.00", "−0.20"] * 2
    assert lines["halves agree on the top head"].unique().tolist() == ["0.50 to 1.00"]
    assert lines.loc[1, "ρ with confidence, by layer"] == "−1.00 −1.00 −1.00"
    other = rows[rows["rule"] == "epsilon"].assign(corpus="B", confidence=np.nan)
    lines = relevance.rules_shown(pd.concat([rows[rows["corpus"] == "EN-FR"], other]))
    assert lines["ρ with the corpus's first rule"].tolist()[:2] == ["1.00", "−1.00"]
    assert lines["ρ with confidence, by layer"].iloc[-1] == "– – –"


def test_without_functions_there_is_no_rank_of_them(make) -> None:
    heads = planted(make.heads()).assign(functions=[[] for _ in range(72)])
    rows = relevance.rules_numbers(make.tables(heads={"EN-FR": heads}))
    assert rows[["mean_rank", "auc"]].isna().all(axis=None)
    assert relevance.rules_shown(rows)["AUC, function against none"].tolist() == ["–", "–"]
