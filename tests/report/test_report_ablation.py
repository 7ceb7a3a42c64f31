"""Ablation one by one and in order of importance: what the figures and tables show of it."""

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report.data import Tables
from specialized_heads.report.figures import ablation


@pytest.fixture
def ablated(make):
    """`ablated(rows, ...)`: the tables of one corpus with these rows of ablation."""

    def tables(*rows: pd.DataFrame) -> Tables:
        together = pd.concat(rows, ignore_index=True)
        return make.tables(models={"EN-FR": [make.model()]}, ablation={"EN-FR": together})

    return tables


def test_single_heads_of_the_first_seed(ablated, make) -> None:
    rows = make.ablation()
    heads = ablation.single_numbers(
        ablated(rows[(rows["type"] != "decoder") | (rows["layer"] > 1)], rows.assign(seed=2))
    )
    assert len(heads) == 72 - 8
    significant = heads.loc[heads["significant"], ["type", "layer", "head"]]
    assert significant.values.tolist() == [["encoder", 1, 7], ["encoder", 1, 8]]
    panels = ablation.single_draw(heads).axes[:3]
    assert [len(axes.patches) for axes in panels] == [2, 0, 0]
    values = [axes.collections[0].get_array().reshape(3, 8) for axes in panels]
    assert values[2][2, 7] == pytest.approx(-0.83)
    assert values[1].mask[0].all()  # pruned: empty


def test_the_best_head_alone_is_chosen_layer_by_layer_and_seed_by_seed(ablated, make) -> None:
    first = make.ablation()
    first = first[(first["type"] != "decoder") | (first["layer"] > 1)]
    rows = ablation.alone_numbers(ablated(first))
    cross = rows[(rows["type"] == "cross") & (rows["layer"] == 3)].squeeze()
    assert (cross["head"], cross["delta"]) == (1, -13)  # the others lose more
    text = ablation.alone_shown(rows)
    assert text["decoder self-attention"].iloc[0] == "–"
    assert text["cross-attention"].iloc[2] == "−13.00* (head 1)"

    second = first.assign(
        seed=2, head=9 - first["head"], bleu=first["bleu"] - 1, delta=first["delta"] - 1
    )
    rows = ablation.alone_numbers(ablated(first, second))
    best, deltas = rows.iloc[0], (-1.1, -2.1)
    values = best[["seeds", "delta", "delta_low", "delta_high", "delta_sd"]].tolist()
    assert values == pytest.approx(
        [2, np.mean(deltas), min(deltas), max(deltas), np.std(deltas, ddof=1)]
    )
    assert pd.isna(best["head"])
    assert ablation.alone_shown(rows).iloc[0][["n", "encoder self-attention"]].tolist() == [
        "2",
        "−1.60 ± 0.71*",
    ]


def test_correlation_is_that_of_the_textbook() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    y = np.array([2.0, 1.0, 4.0, 3.0, 7.0, 5.0, 60.0])
    found = ablation.correlation(x, y)
    away = y - y.mean()
    assert found["pearson"] == pytest.approx(((x - 4) * away).sum() / np.sqrt(28 * (away**2).sum()))
    assert found["spearman"] == pytest.approx(1 - 6 * 6 / (7 * 48))  # six ranks are off by one
    z = np.arctanh(found["pearson"])
    # √(7 - 3) = 2
    assert np.arctanh(found["pearson_high"]) - z == pytest.approx(1.96 / 2, abs=1e-3)
    assert np.arctanh(found["pearson_low"]) - z == pytest.approx(-1.96 / 2, abs=1e-3)
    assert found["pearson_p"] == pytest.approx(2 * NormalDist().cdf(-2 * z))
    assert np.isnan(ablation.correlation(x[:3], y[:3])["pearson"])
    assert np.isnan(ablation.correlation(x, np.zeros(7))["pearson"])


def test_heads_are_paired_between_the_sets(ablated, make) -> None:
    second = make.ablation(on="second")
    second = second.assign(delta=2 * second["delta"] + 0.1).sample(frac=1, random_state=0)
    pairs = ablation.sets_numbers(ablated(make.ablation(), second))
    assert len(pairs) == 72
    assert pairs["delta_second"].tolist() == pytest.approx((2 * pairs["delta_test"] + 0.1).tolist())
    assert pairs["pearson"].unique() == pytest.approx([1.0])
    assert "the same, development set" in make.texts(ablation.sets_draw(pairs))


def test_steps_of_seeds_become_mean_and_range(ablated, make) -> None:
    first = make.systematic()
    first = first[first["kind"].eq("baseline") & first["what"].ne("cross")]
    second = first.assign(seed=2, bleu=first["bleu"] + 2, delta=first["delta"] + 1, p_value=0.001)
    points = ablation.systematic_numbers(ablated(first.assign(p_value=0.003), second))
    assert set(points["what"]) == {"all", "encoder", "decoder"}  # no cross-attention heads: no line
    point = points[(points["what"] == "all") & (points["share"] == 1)].squeeze()
    assert point[["removed", "seeds", "p_value"]].tolist() == [72, 2, 0.003]
    assert point[["bleu", "bleu_low", "bleu_high"]].tolist() == [1.0, 0.0, 2.0]
    assert point[["delta", "delta_low", "delta_high"]].tolist() == [-29.5, -30.0, -29.0]


def test_a_single_seed_without_intervals_is_drawn(ablated, make) -> None:
    """Tables of systematic pruning have no interval of BLEU itself."""
    steps = make.systematic().assign(bleu_low=np.nan, bleu_high=np.nan)
    points = ablation.systematic_numbers(ablated(steps))
    assert points["bleu_low"].tolist() == points["bleu"].tolist()
    ablation.systematic_draw(points)


def test_moments_are_shares_of_their_own_whole_model(ablated, make) -> None:
    first = make.systematic()
    points = ablation.moments_numbers(ablated(first)).assign(
        update=lambda rows: rows["update"].fillna(0)
    )
    kept = points.set_index(["update", "share"])["kept"]
    assert kept[100].isna().all()  # half a BLEU: no share of it
    assert kept[300][0.5] == pytest.approx(0.5)
    assert kept[0][[0.5, 0.8]].tolist() == pytest.approx([1.0, 0.4])  # the end of training
    second = first.assign(seed=2, bleu=4 * first["bleu"], bleu_full=4 * first["bleu_full"])
    early = ablation.moments_numbers(ablated(first, second)).query("update == 100").iloc[0]
    assert early[["seeds", "bleu_full"]].tolist() == [1, 2.0]  # the first says nothing
