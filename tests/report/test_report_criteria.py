"""Criteria side by side: which models are a point, what a point says, and what the reader sees."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import style
from specialized_heads.report.beyond import criteria
from specialized_heads.report.data import Tables

COUNTS = {"encoder": (16, 8, 2), "all": (48, 24)}


def models(make, *, seeds: tuple[int, ...] = (1,)) -> list[dict]:
    """The baseline, models pruned to a count and by λ, cut models and fine-tuned ones."""
    random, full, rows = np.random.default_rng(0), [8, 8, 8], []
    for seed in seeds:
        same = {"seed": seed}
        rows.append(make.model(**same, loss=-0.2 * seed))
        rows.append(make.model("pruned/encoder_lambda0.01", **same, loss=25))  # by λ: no point of this figure
        for scope, counts in COUNTS.items():
            for count in counts:
                kept = [[count], full, full] if scope == "encoder" else [[count // 3]] * 3
                target = f"{scope}_heads{count}"
                rows.append(make.model(f"pruned/{target}", kept, **same, loss=1 - count / 240))
                for number, name in enumerate(("gates", "importance", "random")):
                    loss = (number + 1) * (72 - count) / 20 + random.normal(0, 0.2)
                    rows.append(make.model(f"cut/{name}_{target}", kept, **same, loss=1 + loss))
                    rows.append(
                        make.model(f"finetuned/{name}_{target}", kept, **same, loss=0.5 + loss / 3, updates=140)
                    )
    return rows


@pytest.fixture
def compared(make):
    """`compared(seeds=(1, 2))`: the tables of one corpus with these models."""
    return lambda **options: make.tables(models={"EN-FR": models(make, **options)})


def one(points: pd.DataFrame, **wanted: object) -> pd.Series:
    for name, value in wanted.items():
        points = points[points[name] == value]
    assert len(points) == 1
    return points.iloc[0]


def test_every_cut_and_fine_tuned_model_is_a_point_and_so_are_models_pruned_to_a_count(compared) -> None:
    tables = compared()
    points = criteria.numbers(tables)
    cut = tables.models[tables.models["kind"] == "cut"]
    without = points[~points["finetuned"] & (points["criterion"] != "baseline")]
    expected = {(row.scope, row.criterion, row.target_heads): row.bleu for row in cut.itertuples()}
    assert {(row.scope, row.criterion, row.heads): row.bleu for row in without.itertuples()} == expected
    trained = points[points["finetuned"]]
    assert len(trained) == len(expected) + 5  # three counts of encoder heads, two of all
    point = one(trained, scope="encoder", criterion="pruned", heads=8)
    assert point[["bleu", "bleu_low", "p_value"]].tolist() == pytest.approx([29 + 8 / 240, 28 + 8 / 240, 0.5])
    assert point["delta"] == pytest.approx(29 + 8 / 240 - 30.2)
    baselines = points[points["criterion"] == "baseline"]
    assert baselines[["scope", "heads", "bleu"]].values.tolist() == [["encoder", 24, 30.2], ["all", 72, 30.2]]


def test_seeds_give_mean_range_deviation_and_the_largest_p(compared) -> None:
    tables = compared(seeds=(1, 2, 3))
    own = (
        tables.models["criterion"].eq("random") & tables.models["target_heads"].eq(2) & tables.models["kind"].eq("cut")
    )
    tables.models.loc[own, "p_value"] = [0.001, 0.2, 0.01]
    points = criteria.numbers(tables)
    point, bleu = one(points, finetuned=False, criterion="random", heads=2), tables.models.loc[own, "bleu"]
    assert (point["seeds"], point["p_value"]) == (3, 0.2)
    assert (point["bleu_low"], point["bleu_high"]) == (bleu.min(), bleu.max())
    assert (point["bleu"], point["bleu_sd"]) == pytest.approx((bleu.mean(), bleu.std()))
    assert point["delta"] == pytest.approx((bleu.to_numpy() - [30.2, 30.4, 30.6]).mean())
    cell = one(criteria.shown(points), criterion="random", heads="2")
    assert (cell["BLEU"], cell["n"], cell["p"]) == (f"{bleu.mean():.1f} ± {bleu.std():.1f}", "3", "0.200")


def test_panels_hold_a_line_per_criterion_with_hollow_significant_points(compared) -> None:
    tables = compared()
    tables.models["p_value"] = np.where(tables.models["target_heads"] == 2, 0.049, 0.051)
    points = criteria.numbers(tables)
    axes = criteria.draw(points).axes
    assert len(axes) == 4
    assert [left.get_ylim() == right.get_ylim() for left, right in (axes[:2], axes[2:])] == [True, True]
    line = next(line for line in axes[0].lines if line.get_color() == style.CRITERIA["importance"].colour)
    own = points[(points["scope"] == "encoder") & (points["criterion"] == "importance") & ~points["finetuned"]]
    assert sorted(zip(*line.get_data())) == sorted(zip(own["heads"], own["bleu"]))
    for panel, lines in zip(axes[:2], (3, 4)):
        hollow = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
        assert [x for line in hollow for x in line.get_xdata()] == [2] * lines


@pytest.mark.parametrize("left_out", [{"kind": "finetuned"}, {"criterion": "gates"}, {"kind": "cut"}])
def test_pruned_models_stand_beside_fine_tuned_heads_of_gates_alone(compared, make, left_out: dict[str, str]) -> None:
    tables: Tables = compared()
    [(column, value)] = left_out.items()
    points = criteria.numbers(tables._replace(models=tables.models[tables.models[column] != value]))
    assert points.empty if value == "cut" else "pruned" not in set(points["criterion"])
    assert (criteria.NOTHING in make.texts(criteria.draw(points))) == points.empty
