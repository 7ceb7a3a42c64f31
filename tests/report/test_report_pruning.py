"""Pruned models beyond the papers: gates over time, controls, criteria side by side, and the study
at a glance."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import style
from specialized_heads.report.data import INTERVAL
from specialized_heads.report.figures import choice, costs, front, gates

FULL = [8, 8]


def test_gates_over_time(make) -> None:
    first = pd.DataFrame({"update": [5, 9], "open_encoder": [[[0.9, 0.8]], [[0.7, 0.05]]]})
    # Of the second model, the first layer has no cross-attention.
    second = pd.DataFrame(
        {"update": [5], "open_encoder": [[[0.9]]], "open_cross": [[[], [0.3, 0.4]]]}
    )
    logs = {
        "baseline": first[["update"]],
        "pruned/encoder_lambda0.01": first,
        "pruned/all_heads3": second,
    }
    logs |= {"pruned/all_heads3/seed2": second}
    table = gates.pruning_numbers(
        make.tables(heads={"EN-FR": make.heads(1, 2)}, logs={"EN-FR": logs})
    )
    assert table.drop(columns=["corpus", "seed"]).fillna(-1).to_numpy().tolist() == [
        ["encoder", 0.01, -1, "encoder", 1, 1, 5, 0.9, "rare words"],
        ["encoder", 0.01, -1, "encoder", 1, 2, 5, 0.8, "positional"],
        ["encoder", 0.01, -1, "encoder", 1, 1, 9, 0.7, "rare words"],
        ["encoder", 0.01, -1, "encoder", 1, 2, 9, 0.05, "positional"],
        ["all", -1, 3, "encoder", 1, 1, 5, 0.9, "rare words"],
        ["all", -1, 3, "cross", 2, 1, 5, 0.3, ""],
        ["all", -1, 3, "cross", 2, 2, 5, 0.4, ""],
    ]
    written = make.texts(gates.pruning_draw(table))
    assert {
        "λ 0.01 choosing: 5–9 undecided: 1/2",
        "cross-attention, 3 heads no gate closes undecided: 2/2",
    } <= set(written)
    # The key has the functions that these heads have.
    assert [name for name in gates.LOOKS if name in written] == ["positional", "rare words"]


def test_gates_of_a_baseline_without_some_heads_keep_the_numbers_of_heads(make) -> None:
    log = pd.DataFrame({"update": [5], "open_encoder": [[[0.9]]]})
    heads = make.heads(1, 2)
    heads = heads[(heads["type"] != "encoder") | (heads["head"] == 2)]
    table = gates.pruning_numbers(
        make.tables(heads={"EN-FR": heads}, logs={"EN-FR": {"pruned/encoder_lambda0.01": log}})
    )
    assert table[["head", "functions"]].values.tolist() == [[2, "positional"]]


def test_controls_stand_beside_their_pruned_model(make) -> None:
    rows = []
    for seed in (1, 2, 3):
        rows += [
            make.model(kept=[FULL] * 3, seed=seed),
            make.model("checkpoint/update5", [FULL] * 3, seed=seed),
        ]
        for number, kind in enumerate(
            ("regularised/", "count/", "scratch/", "pruned/", "cut/x_", "finetuned/x_")
        ):
            for target, loss in (("lambda0.01", number - 0.5 * seed), ("heads12", 5 + number)):
                same = {
                    "kept": [[4, number], FULL, [1, 1]],
                    "seed": seed,
                    "loss": loss,
                    "p_value": 0.1 * seed,
                }
                rows.append(make.model(f"{kind}all_{target}", **same))
    tables = make.tables(models={"EN-FR": rows})
    numbers = costs.controls_numbers(tables)
    pruned = numbers[(numbers["kind"] == "pruned") & (numbers["lam"] == 0.01)].squeeze()
    assert pruned[["seeds", "bleu", "bleu_sd", "p_value"]].tolist() == pytest.approx(
        [3, 28.0, 0.5, 0.3]
    )
    text = costs.controls_shown(numbers)
    assert text["model"].tolist() == [
        "baseline",
        *["pruned", "scratch", "count", "regularised"] * 2,
    ]
    assert text["target"].tolist() == ["", *["λ 0.01"] * 4, *["12 heads"] * 4]
    assert text.loc[1, ["enc/dec/cross", "BLEU", "n"]].tolist() == ["7/16/2", "28.0 ± 0.5", "3"]
    alone = costs.controls_shown(
        costs.controls_numbers(tables._replace(models=tables.models.query("seed == 1")))
    )
    assert alone.loc[1, "BLEU"] == "27.5 [26.5, 28.5]" and "n" not in alone


COMPARED = ("gates", "importance", "random")

# Criteria: which models are a point, and what a point says.


@pytest.fixture
def compared(make):
    """`compared(1, 2)`: the baselines of these seeds, models pruned to a count and by λ, cut models
    and fine-tuned ones."""

    def tables(*seeds: int):
        rows, full = [], [8, 8, 8]
        for seed in seeds:
            rows.append(make.model(seed=seed, loss=-0.2 * seed))
            # not pruned: no point of this figure
            rows.append(make.model("pruned/encoder_lambda0", seed=seed, loss=25))
            for scope, count in (
                ("encoder", 16),
                ("encoder", 8),
                ("encoder", 2),
                ("all", 48),
                ("all", 24),
            ):
                same = {
                    "kept": [[count], full, full] if scope == "encoder" else [[count // 3]] * 3,
                    "seed": seed,
                }
                rows.append(
                    make.model(f"pruned/{scope}_heads{count}", **same, loss=1 - count / 240)
                )
                for number, name in enumerate(("gates", "importance", "random"), start=1):
                    cut, loss = (
                        f"{name}_{scope}_heads{count}",
                        number * (72 - count) / 20 + 0.1 * seed**2,
                    )
                    rows.append(make.model(f"cut/{cut}", **same, loss=1 + loss))
                    rows.append(make.model(f"finetuned/{cut}", **same, loss=0.5 + loss / 3))
        return make.tables(models={"EN-FR": rows})

    return tables


def one(points: pd.DataFrame, **wanted: object) -> pd.Series:
    return points[
        np.logical_and.reduce([points[name] == value for name, value in wanted.items()])
    ].squeeze()


def test_every_cut_and_fine_tuned_model_is_a_point_and_so_are_models_pruned_to_a_count(
    compared,
) -> None:
    tables = compared(1)
    points = choice.criteria_numbers(tables)
    cut = tables.models[tables.models["kind"] == "cut"]
    without = points[~points["finetuned"] & (points["criterion"] != "baseline")]
    expected = {(row.scope, row.criterion, row.target_heads): row.bleu for row in cut.itertuples()}
    assert {
        (row.scope, row.criterion, row.heads): row.bleu for row in without.itertuples()
    } == expected
    trained = points[points["finetuned"]]
    assert len(trained) == len(expected) + 5  # three counts of encoder heads, two of all
    point = one(trained, scope="encoder", criterion="pruned", heads=8)
    expected = [29 + 8 / 240, 28 + 8 / 240, 8 / 240 - 1]
    assert point[["bleu", "bleu_low", "difference"]].tolist() == pytest.approx(expected)
    baselines = points[points["criterion"] == "baseline"]
    assert baselines[["scope", "heads", "bleu"]].values.tolist() == [
        ["encoder", 24, 30.2],
        ["all", 72, 30.2],
    ]


def test_a_criterion_is_compared_with_the_gates_and_with_random_draws(compared) -> None:
    tables = compared(1)
    models = tables.models
    cut = models["kind"] == "cut"
    losses = [[2.0, 3.0, 4.0, 5.0]] * len(models)
    models["random_dev_losses"] = pd.Series(losses, index=models.index).where(
        cut & (models["criterion"] == "random")
    )
    models["dev_loss"] = models["criterion"].map({"gates": 1.0, "importance": 3.5, "random": 3.0})
    for end, value in {"": -2.0, "_low": -2.5, "_high": -1.5}.items():
        models[f"counterpart_difference{end}"] = np.where(
            models["criterion"] == "gates", np.nan, value
        )
    samples = pd.Series([np.array([-2.5, -1.5])] * len(models), index=models.index)
    models["counterpart_difference_samples"] = samples.where(models["criterion"] != "gates")
    points = choice.criteria_numbers(tables)
    shares = {
        name: one(points, scope="encoder", finetuned=False, criterion=name, heads=8)
        for name in COMPARED
    }
    assert [shares[name]["better_draws"] for name in COMPARED] == [0.0, 0.5, 0.25]
    beside = ["counterpart_difference", "counterpart_difference_low", "counterpart_difference_high"]
    assert (
        shares["importance"][beside].tolist() == pytest.approx([-2.0, -2.475, -1.525])
        and shares["gates"][beside].isna().all()
    )
    pruned = one(points, scope="encoder", criterion="pruned", heads=8)
    assert pruned[[*beside, "better_draws"]].isna().all()  # its counterpart is λ 0


def test_pruned_models_stand_beside_fine_tuned_heads_of_gates_alone(compared) -> None:
    tables = compared(1)
    for column, value in {"kind": "finetuned", "criterion": "gates"}.items():
        points = choice.criteria_numbers(
            tables._replace(models=tables.models[tables.models[column] != value])
        )
        assert len(points) and "pruned" not in set(points["criterion"])


def test_every_model_is_a_point_and_every_head_is_counted_once(make) -> None:
    heads = make.heads(2, 8)
    heads.loc[(heads["type"] == "cross") & (heads["head"] == 1), "functions"] = pd.Series(
        [["diagonal"]] * len(heads)
    )
    encoder, decoder, cross = (heads[heads["type"] == kind] for kind in style.TYPES)
    models = {
        "baseline": heads,
        "pruned/encoder_lambda0.01": pd.concat([encoder.iloc[[0, 2, 8]], decoder, cross]),
        "pruned/all_lambda0.01": pd.concat([decoder.iloc[:6], cross.iloc[:10]]),
    }
    tables = make.tables(heads={"EN-FR": models})
    rows = front.numbers(tables._replace(models=tables.models.assign(bleu=[27.0, 26.5, 25.0])))
    left, right = (rows[rows["panel"] == panel] for panel in ("left", "right"))
    reported, left = (left[(left["kind"] == "reported") == theirs] for theirs in (True, False))
    assert reported["retained"].tolist() == [10, 4, 75, 58, 36, 26, 104, 61, 28]  # of 48 or 144
    assert left["scope"].tolist() == ["encoder", "encoder", "all", "all"]
    assert left[["retained", "bleu"]].values.tolist() == [
        [16, 27.0],
        [3, 26.5],
        [48, 27.0],
        [16, 25.0],
    ]
    assert left["share"].tolist() == [1.0, 3 / 16, 1.0, 1 / 3]
    for scope, own in right.groupby("scope"):
        counts = tables.heads.loc[tables.heads["scope"] == scope, "type"].value_counts()
        assert own.groupby("type")["heads"].sum().to_dict() == {"encoder": 0} | counts.to_dict()
    whole = right[right["scope"] == ""].set_index(["type", "functions"])["heads"]
    assert whole["encoder", front.NONE] == (encoder["functions"].map(len) == 0).sum()
    assert (whole["encoder", "positional; syntactic"], whole["cross", "diagonal"]) == (1, 2)
    # The paired difference is that of the table of models; the baseline is the reference.
    expected = tables.models[INTERVAL].fillna(0.0).iloc[[0, 1, 0, 2]]
    np.testing.assert_array_equal(left[INTERVAL].to_numpy(float), expected.to_numpy(float))
    assert {
        "EN-FR",
        "reference baseline, 27.0",
        "48 of 48",
        "3 of 16",
        "16 of 48",
        "λ 0.01",
    } <= set(make.texts(front.draw(rows)))
