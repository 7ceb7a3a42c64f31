"""Criteria side by side: which models are a point, what a point says, and what the reader sees."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report.beyond import criteria


@pytest.fixture
def compared(make):
    """`compared(1, 2)`: the baselines of these seeds, models pruned to a count and by λ, cut models and fine-tuned ones."""

    def tables(*seeds: int):
        rows, full = [], [8, 8, 8]
        for seed in seeds:
            rows.append(make.model(seed=seed, loss=-0.2 * seed))
            rows.append(make.model("pruned/encoder_lambda0.01", seed=seed, loss=25))  # by λ: no point of this figure
            for scope, count in (("encoder", 16), ("encoder", 8), ("encoder", 2), ("all", 48), ("all", 24)):
                same = {"kept": [[count], full, full] if scope == "encoder" else [[count // 3]] * 3, "seed": seed}
                rows.append(make.model(f"pruned/{scope}_heads{count}", **same, loss=1 - count / 240))
                for number, name in enumerate(("gates", "importance", "random"), start=1):
                    cut, loss = f"{name}_{scope}_heads{count}", number * (72 - count) / 20 + 0.1 * seed**2
                    rows.append(make.model(f"cut/{cut}", **same, loss=1 + loss))
                    rows.append(make.model(f"finetuned/{cut}", **same, loss=0.5 + loss / 3))
        return make.tables(models={"EN-FR": rows})

    return tables


def one(points: pd.DataFrame, **wanted: object) -> pd.Series:
    return points[np.logical_and.reduce([points[name] == value for name, value in wanted.items()])].squeeze()


def test_every_cut_and_fine_tuned_model_is_a_point_and_so_are_models_pruned_to_a_count(compared) -> None:
    tables = compared(1)
    points = criteria.numbers(tables)
    cut = tables.models[tables.models["kind"] == "cut"]
    without = points[~points["finetuned"] & (points["criterion"] != "baseline")]
    expected = {(row.scope, row.criterion, row.target_heads): row.bleu for row in cut.itertuples()}
    assert {(row.scope, row.criterion, row.heads): row.bleu for row in without.itertuples()} == expected
    trained = points[points["finetuned"]]
    assert len(trained) == len(expected) + 5  # three counts of encoder heads, two of all
    point = one(trained, scope="encoder", criterion="pruned", heads=8)
    assert point[["bleu", "bleu_low", "difference"]].tolist() == pytest.approx(
        [29 + 8 / 240, 28 + 8 / 240, 8 / 240 - 1]
    )
    baselines = points[points["criterion"] == "baseline"]
    assert baselines[["scope", "heads", "bleu"]].values.tolist() == [["encoder", 24, 30.2], ["all", 72, 30.2]]


def test_seeds_give_mean_range_deviation_and_the_largest_p(compared) -> None:
    tables = compared(1, 2, 3)
    own = (
        tables.models["criterion"].eq("random") & tables.models["target_heads"].eq(2) & tables.models["kind"].eq("cut")
    )
    tables.models.loc[own, "p_value"] = [0.001, 0.2, 0.01]
    points = criteria.numbers(tables)
    point, bleu = one(points, finetuned=False, criterion="random", heads=2), tables.models.loc[own, "bleu"]
    assert (point["seeds"], point["p_value"]) == (3, 0.2)
    assert (point["bleu_low"], point["bleu_high"]) == (bleu.min(), bleu.max())
    assert (point["bleu"], point["bleu_sd"]) == pytest.approx((bleu.mean(), bleu.std()))
    assert point["difference"] == pytest.approx(bleu.mean() - 30)


def test_pruned_models_stand_beside_fine_tuned_heads_of_gates_alone(compared) -> None:
    tables = compared(1)
    for column, value in {"kind": "finetuned", "criterion": "gates"}.items():
        points = criteria.numbers(tables._replace(models=tables.models[tables.models[column] != value]))
        assert len(points) and "pruned" not in set(points["criterion"])
