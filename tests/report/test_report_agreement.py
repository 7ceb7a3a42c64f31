"""Agreement of criteria, on rankings whose correlation and overlap are known."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import style
from specialized_heads.report.beyond import agreement
from specialized_heads.report.experiment import describe

NAN = float("nan")


def table(values: dict[str, list[float]], *, scope: str = "encoder", counts=(4, 1), seed: int = 1) -> pd.DataFrame:
    """What criteria say of eight heads in two layers of each type of the scope; the best of the scope are kept."""
    kinds = ("encoder", "decoder", "cross") if scope == "all" else ("encoder",)
    names = [(kind, layer, head) for kind in kinds for layer in (1, 2) for head in range(1, 5)]
    rows = []
    for criterion, own in values.items():
        best = sorted(range(len(names)), key=lambda index: -np.nan_to_num(own[index], nan=-np.inf))
        for index, (kind, layer, head) in enumerate(names):
            kept = [count for count in counts if index in best[:count]]
            row = {"seed": seed, "scope": scope, "criterion": criterion, "type": kind, "layer": layer, "head": head}
            rows.append(row | {"value": own[index], "counts": kept})
    return pd.DataFrame(rows)


def value(points: pd.DataFrame, measure: str, **wanted: object) -> float:
    points = points[points["measure"] == measure]
    for name, expected in wanted.items():
        points = points[points[name] == expected]
    return points["value"].item()


def numbers(*tables: pd.DataFrame) -> pd.DataFrame:
    seeds = enumerate(tables, start=1)
    return agreement.numbers({describe("baseline", corpus="EN-FR", seed=seed): one for seed, one in seeds})


UP = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_equal_and_opposite_orders():
    values = {"gates": UP, "importance": [10**x for x in UP], "random": UP[::-1]}
    points = numbers(table(values))
    assert value(points, "spearman", first="gates", second="importance") == pytest.approx(1.0)
    assert value(points, "spearman", first="gates", second="random") == pytest.approx(-1.0)
    assert value(points, "jaccard", first="gates", second="importance", kept=4) == 1.0
    assert value(points, "jaccard", first="gates", second="random", kept=4) == 0.0
    assert set(points["type"]) == {"encoder"}
    assert len(points) == 3 * (1 + 2)


def test_a_known_overlap():
    first, second = [1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2.0, 1.0, 3.0, 4.0, 5.0, 6.0, 9.0, 8.0]
    points = numbers(table({"gates": first, "confidence": second}, counts=(3, 1)))
    assert value(points, "jaccard", kept=3) == 1.0
    assert value(points, "jaccard", kept=1) == 0.0
    assert agreement.jaccard({1, 2, 3}, {2, 3, 4}) == 0.5


def test_types_are_compared_alone_and_together():
    # Equal order within each type, but the types themselves stand in opposite order.
    first = [*UP, *(x + 10 for x in UP), *(x + 20 for x in UP)]
    second = [*(x + 20 for x in UP), *(x + 10 for x in UP), *UP]
    points = numbers(table({"gates": first, "relevance": second}, scope="all", counts=(8,)))
    for kind in ("encoder", "decoder", "cross"):
        assert value(points, "spearman", type=kind) == pytest.approx(1.0)
    assert value(points, "spearman", type=agreement.TOGETHER) < -0.5
    together = points[(points["measure"] == "spearman") & (points["type"] == agreement.TOGETHER)]
    assert together["heads"].item() == 24
    assert value(points, "jaccard", kept=8) == 0.0


def test_undefined_values_are_left_out_and_counted():
    points = numbers(table({"gates": UP, "confidence": [NAN, NAN, *UP[2:]]}))
    row = points[points["measure"] == "spearman"].squeeze()
    assert (row["value"], row["heads"]) == (pytest.approx(1.0), 6)
    for flat in ([NAN] * 8, [0.5] * 8):
        points = numbers(table({"gates": UP, "confidence": flat}))
        assert np.isnan(value(points, "spearman"))
        assert "undefined" in agreement.shown(points).iloc[0]["ρ encoder"]
        agreement.draw(points)


def test_seeds_give_mean_range_and_deviation():
    tables = [table({"gates": UP, "random": own}, seed=seed) for seed, own in ((1, UP), (2, UP[::-1]))]
    points = numbers(*tables)
    row = points[points["measure"] == "spearman"].squeeze()
    assert (row["value"], row["low"], row["high"]) == pytest.approx((0.0, -1.0, 1.0), abs=1e-12)
    assert row["seeds"] == 2
    assert row["sd"] == pytest.approx(2**0.5)
    text = agreement.shown(points).iloc[0]
    assert (text["ρ encoder"], text["n"]) == ("0.00 ± 1.41, 8 heads", "2")
    assert text["Jaccard"] == "4: 0.50 ± 0.71; 1: 0.50 ± 0.71"
    assert "mean ± standard deviation over n seeds" in agreement.caption(points)
    one = numbers(tables[0])
    assert agreement.shown(one).iloc[0]["ρ encoder"] == "1.00, 8 heads"
    assert "n" not in agreement.shown(one)


RUNS = {"runs": [{"corpus": "EN-FR", "model": "baseline", "seed": 1}]}


def test_the_stage_writes_figure_and_table(stage, write):
    random = np.random.default_rng(3)
    encoder, every = ({name: random.random(size).tolist() for name in style.CRITERIA} for size in (8, 24))
    own = pd.concat([table(encoder), table(every, scope="all", counts=(12, 6))])
    stem = stage("agreement", RUNS, criteria=[write("c.parquet", own)])
    markdown = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert "| scope | criteria | ρ encoder | ρ decoder | ρ cross | ρ all types | Jaccard |" in markdown
    assert "gates – importance" in markdown
    assert stem.with_suffix(".png").exists()


def test_one_criterion_alone_agrees_with_nothing(stage, write):
    stem = stage("agreement", RUNS, criteria=[write("c.parquet", table({"gates": UP}))])
    assert agreement.NOTHING in stem.with_suffix(".md").read_text(encoding="utf-8")
