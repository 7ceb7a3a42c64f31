"""Pruned models along λ: figures 7, 9 and 10 and table 2."""

from math import nan

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.claims.evidence import evidence_of
from specialized_heads.report.data import COUNTERPART, INTERVAL, Tables
from specialized_heads.report.figures import costs, heads_left

FIGURES = pytest.mark.parametrize(
    ("numbers", "draw", "columns"),
    [
        (costs.figure7_numbers, costs.figure7_draw, costs.FIGURE7_COLUMNS),
        (heads_left.figure9_numbers, heads_left.figure9_draw, heads_left.FIGURE9_COLUMNS),
        (heads_left.figure10_numbers, heads_left.figure10_draw, heads_left.FIGURE10_COLUMNS),
    ],
)
FULL = [8, 8]


def ours(points: pd.DataFrame) -> pd.DataFrame:
    return points[points["kind"] != "reported"]


def pruned(tables: Tables, scope: str, lam: float) -> pd.DataFrame:
    return tables.models.query("kind == 'pruned' and scope == @scope and lam == @lam")


@pytest.fixture
def swept(make):
    """`swept(...)`: the tables of one corpus with the models of `make.sweep`."""
    return lambda *sizes, **options: make.tables(models={"EN-FR": make.sweep(*sizes, **options)})


def test_one_seed_gives_its_bootstrap_interval_and_several_its_mean_and_the_range(
    swept, make
) -> None:
    points = costs.figure7_numbers(swept()).set_index("lam")
    model, point = pruned(swept(), "encoder", 0.001).squeeze(), points.loc[0.001]
    assert point[["heads", "share"]].tolist() == [
        model["encoder_heads"],
        model["encoder_heads"] / 24,
    ]
    assert all(
        point[name] == model[name]
        for name in ("bleu", "bleu_low", "bleu_high", *INTERVAL, "p_value")
    )
    assert points.iloc[0][["kind", "share", "difference"]].tolist() == ["baseline", 1.0, 0.0]

    points = costs.figure7_numbers(swept(seeds=(1, 2, 3)))
    models, point = (
        pruned(swept(seeds=(1, 2, 3)), "encoder", 0.001),
        points[points["lam"] == 0.001].squeeze(),
    )
    assert (point["seeds"], point["bleu"]) == (3, pytest.approx(models["bleu"].mean()))
    assert (point["bleu_low"], point["bleu_high"]) == (models["bleu"].min(), models["bleu"].max())
    means = models[["encoder_heads", "difference"]].mean().tolist()
    assert point[["heads", "difference"]].tolist() == pytest.approx(means)
    assert (point["heads_low"], point["heads_high"]) == (
        models["encoder_heads"].min(),
        models["encoder_heads"].max(),
    )
    assert point[INTERVAL].tolist() == pytest.approx(models[INTERVAL].mean().tolist())
    ends = models["difference"].min(), models["difference"].max()
    assert (point["difference_lowest"], point["difference_highest"]) == ends
    texts = make.texts(costs.figure7_draw(points))
    assert {
        "EN-FR, n = 1,000, mean of 3 seeds; reference: baseline, 30.2",
        "lowest and highest seed",
    } <= set(texts)

    tables = swept(seeds=(1, 2, 3))
    fewer = tables._replace(models=tables.models.drop(pruned(tables, "encoder", 0.001).index[-1]))
    assert any(
        "mean of 2 to 3 seeds" in text
        for text in make.texts(costs.figure7_draw(costs.figure7_numbers(fewer)))
    )


def test_models_with_undecided_gates_are_marked(swept, make) -> None:
    tables = swept(lambdas=(0.0, 0.001, 0.002))
    decided = tables.models["gates_decided"].mask(tables.models["lam"] == 0.002, 0.7)
    points = costs.figure7_numbers(
        tables._replace(models=tables.models.assign(gates_decided=decided))
    )
    assert dict(zip(points["lam"][1:4], points["decided"][1:4], strict=True)) == {
        0.0: 1.0,
        0.001: 1.0,
        0.002: 0.0,
    }
    assert "gates not decided" in make.texts(costs.figure7_draw(points))
    assert "gates not decided" not in make.texts(costs.figure7_draw(costs.figure7_numbers(tables)))


@pytest.mark.parametrize(
    ("p_values", "differences", "expected"),
    [
        ([0.001, 0.03], [-0.9, -0.5], 0.03),
        # two significant differences, one up and one down, are not one difference
        ([0.001, 0.03], [0.7, -0.5], 1.0),
        ([0.001, 0.03], [0.0, -0.5], 0.03),
        ([0.03, nan], [-0.5, -0.5], nan),
    ],
)
def test_one_p_value_for_all_seeds(
    p_values: list[float], differences: list[float], expected: float
) -> None:
    assert sweep.p_of_seeds(pd.Series(p_values), pd.Series(differences)) == pytest.approx(
        expected, nan_ok=True
    )


def test_the_papers_results_are_beside_ours(swept) -> None:
    points = costs.figure7_numbers(swept(lambdas=(0.0, 0.001)))
    # λ 0 is not the baseline
    assert points["kind"].tolist() == ["baseline", *["pruned"] * 2, *["reported"] * 2]
    reported = points.loc[3:, ["corpus", "share", "difference"]].values.tolist()
    assert reported == [[paper.WMT, 10 / 48, -0.15], [paper.SUBTITLES, 4 / 48, -0.25]]


@pytest.mark.parametrize(("gain", "reference"), [(None, "baseline"), (0.1, "λ 0"), (0.6, "λ 0")])
def test_differences_are_from_the_reference_of_the_claims(
    gain: float | None, reference: str, make
) -> None:
    """That is λ 0, whatever it gains; the baseline where λ 0 was not trained. Undecided models are
    shown too."""
    kept = [[2, 0], FULL, FULL]
    rows = [make.model("baseline", [FULL] * 3)]
    rows += (
        [make.model("pruned/encoder_lambda0", [FULL] * 3, loss=-gain)] if gain is not None else []
    )
    rows.append(make.model("pruned/encoder_lambda0.01", kept, loss=0.6, gates_decided=0.1))
    tables = make.tables(models={"EN-FR": rows})
    points = ours(costs.figure7_numbers(tables))
    evidence = evidence_of(tables._replace(models=tables.models.assign(gates_decided=1.0)))
    assert set(points["reference"]) == {reference}
    own, pruned = points.iloc[0 if gain is None else 1], points.iloc[-1]
    assert own["difference"] == own["difference_low"] == 0 and np.isnan(own["p_value"])
    if gain is not None:
        expected = evidence.compared("encoder")
        np.testing.assert_array_equal(
            points.loc[points["lam"] > 0, INTERVAL], expected[COUNTERPART]
        )
        assert points["difference"].iloc[0] == pytest.approx(-gain)
        assert 0 < pruned["p_value"] < sweep.FILLED_BELOW  # its interval is below zero
    key = f"EN-FR, n = 1,000, seed 1; reference: {reference}, {own['bleu']:.1f}"
    assert key in set(make.texts(costs.figure7_draw(points)))


@FIGURES
def test_corpora_without_pruned_models_are_left_out(numbers, draw, columns, make) -> None:
    models = {"EN-FR": make.sweep(), "EN-RU": make.sweep(lambdas=())}
    assert ours(numbers(make.tables(models=models)))["corpus"].unique().tolist() == ["EN-FR"]
    nothing = numbers(make.tables(models={"EN-RU": models["EN-RU"]}))
    assert nothing.columns.tolist() == columns and nothing.empty


@FIGURES
def test_heads_left_run_from_all_to_none_in_every_figure(numbers, draw, columns, swept) -> None:
    for axes in draw(numbers(swept())).axes:
        assert axes.get_xlim() == (1.03, -0.03)
        assert axes.get_xlabel().startswith("heads left, share of ")


def test_filled_markers_are_those_of_significant_differences(swept, make) -> None:
    tables = swept(lambdas=(0.001, 0.002))
    tables.models["p_value"] = tables.models["lam"].map({0.001: 0.3, 0.002: 0.01})
    points = costs.figure7_numbers(tables)
    change = costs.figure7_draw(points).axes[1]
    filled = [line for line in change.lines if line.get_marker() == "o"]
    filled = [line for line in filled if line.get_markerfacecolor() == line.get_color()]
    significant = points.loc[points["lam"] == 0.002, "difference"].tolist()
    assert [line.get_ydata().tolist() for line in filled] == [significant]
    label = "filled: differs from the reference, p < 0.05"
    assert label in make.texts(costs.figure7_draw(points))
    assert label not in make.texts(costs.figure7_draw(points.assign(p_value=0.3)))


def test_active_heads_of_each_type(swept) -> None:
    tables = swept(6, 8)
    points = heads_left.figure9_numbers(tables)
    for lam in (0.001, 0.01):
        model, here = (
            pruned(tables, "all", lam).squeeze(),
            points[points["lam"] == lam].set_index("type"),
        )
        counts = {kind: model[f"{kind}_heads"] for kind in style.TYPES}
        assert here["active"].to_dict() == counts
        assert (here["pruned"] == 144 - sum(counts.values())).all()
    start = points[points["kind"] == "baseline"]
    assert start["pruned"].tolist() == [0, 0, 0] and start["active"].tolist() == [48, 48, 48]
    wmt = points[(points["corpus"] == paper.WMT) & (points["pruned"] == 144 - 5 - 9 - 12)]
    assert wmt.set_index("type")["active"].to_dict() == {"encoder": 5, "decoder": 9, "cross": 12}
    assert wmt["share"].tolist() == pytest.approx([5 / 48, 9 / 48, 12 / 48])


def test_types_of_different_depth_are_compared_by_their_shares(make) -> None:
    whole, half = [[8] * 6, [8] * 2, [8] * 2], [[4] * 6, [8] * 2, [4] * 2]
    tables = make.tables(
        models={"EN-FR": [make.model(kept=whole), make.model("pruned/all_lambda0.01", half)]}
    )
    points = ours(heads_left.figure9_numbers(tables))
    assert points[points["lam"] == 0.01][["active", "share"]].values.tolist() == [
        [24, 0.5],
        [16, 1.0],
        [8, 0.5],
    ]
    assert "heads left, share of 80 (48/16/16)" in make.texts(heads_left.figure9_draw(points))


@pytest.mark.parametrize("pairs", ["1-2 3-4 5-6", "1-2 3", "1 2", "1"])
def test_decoder_layers_in_pairs(pairs: str, swept) -> None:
    groups, layers = pairs.split(), int(pairs[-1])
    tables = swept(layers, 8, seeds=(1, 2))
    points = heads_left.figure10_numbers(tables)
    assert points["layers"].unique().tolist() == groups
    size = 2 if "-" in groups[0] else 1
    for kind in ("decoder", "cross"):
        kept = np.stack(pruned(tables, "all", 0.001)[f"{kind}_layers"].to_list())[:, :size].sum(1)
        point = points[
            (points["lam"] == 0.001) & (points["type"] == kind) & (points["layers"] == groups[0])
        ].squeeze()
        assert (point["active"], point["share"]) == (
            kept.mean(),
            pytest.approx(kept.mean() / (8 * size)),
        )


@pytest.fixture
def mixed(make) -> Tables:
    """Two models by λ, two by a number of heads, and one of every other kind, which is no point of
    a sweep."""
    rows = [
        make.model("baseline", [FULL] * 3),
        make.model("checkpoint/update5", [FULL] * 3, loss=25),
    ]
    for scope in ("encoder", "all"):
        kept = [[4, 4], FULL, FULL]
        rows += [make.model(f"pruned/{scope}_lambda{lam}", kept, loss=1.0) for lam in (0.001, 0.01)]
        rows += [
            make.model(f"pruned/{scope}_heads{n}", [[n, 0], FULL, FULL], loss=2.0 - n)
            for n in (2, 1)
        ]
        for kind in ("count/", "regularised/", "cut/random_", "finetuned/random_"):
            rows += [
                make.model(f"{kind}{scope}_{target}", kept, loss=25)
                for target in ("heads2", "lambda0.001")
            ]
    rows.append(make.model("scratch/all_heads2", [[2, 0], FULL, FULL], loss=5.5))
    return make.tables(models={"EN-FR": rows})


@FIGURES
def test_models_by_lambda_and_by_number_of_heads_are_two_lines_from_the_baseline_on(
    numbers, draw, columns, mixed, make
) -> None:
    points = ours(numbers(mixed))
    targets = (
        points[["kind", "lam", "target_heads"]].drop_duplicates().fillna(-1).to_numpy().tolist()
    )
    assert targets[0] == ["baseline", -1, -1]
    assert targets[1:] == [
        ["pruned", 0.001, -1],
        ["pruned", 0.01, -1],
        ["pruned", -1, 1],
        ["pruned", -1, 2],
    ]
    figure = draw(points)
    assert make.texts(figure).count(sweep.ASKED_LABEL) == 1
    if (
        numbers is costs.figure7_numbers
    ):  # from the strongest penalty to the baseline, so that the line does not jump back
        lines = [
            list(zip(*line.get_data())) for line in figure.axes[1].lines if line.get_marker() == "o"
        ]
        assert [(1 / 16, -1.0), (2 / 16, 0.0), (1.0, 0.0)] in lines
        assert [(0.5, -1.0), (0.5, -1.0), (1.0, 0.0)] in lines


def test_table2_pairs_each_pruned_model_with_its_twin(swept, mixed) -> None:
    tables = swept(seeds=(1, 2))
    rows = costs.table2_numbers(tables)
    mine = rows[rows["corpus"] == "EN-FR"]
    # nothing of scope encoder was trained from scratch
    assert mine["scope"].tolist() == ["", ""] + ["all"] * 4
    twins = tables.models[tables.models["kind"] == "scratch"].set_index(["lam", "seed"])
    for row in mine[mine["kind"] == "pruned"].to_dict("records"):
        twin = twins.loc[row["lam"], row["seed"]]
        assert (row["scratch_bleu"], row["scratch_p_value"]) == (twin["bleu"], twin["p_value"])
    assert "scope" not in costs.table2_shown(rows) and "scope" in costs.table2_shown(
        costs.table2_numbers(swept(retrain=("encoder",)))
    )
    # A second decay makes the schedules equal.
    models = tables.models.copy()
    models.loc[models["kind"] == "scratch", ["kind", "updates"]] = "continued", 4500
    equal = costs.table2_numbers(tables._replace(models=models))
    assert "4,500 updates in two decays" in costs.table2_caption(equal)
    assert "in one decay" in costs.table2_caption(rows)
    assert equal["scratch_bleu"].equals(rows["scratch_bleu"])
    shown = costs.table2_shown(costs.table2_numbers(mixed)).query("corpus == 'EN-FR'")
    assert shown["model"].tolist() == ["baseline", "λ 0.001", "λ 0.01", "2 heads", "1 head"]
    assert shown.iloc[0]["BLEU"] == "30.0 [29.0, 31.0]" and sweep.p_cell(0.0001) == "<0.001"
    assert [text[:4] for text in shown["BLEU from scratch"]] == ["", "", "", "24.5", ""]


def test_table2_shows_mean_and_deviation_over_seeds(make) -> None:
    rows = []
    for seed in (1, 2, 3):
        kept = [[seed, 0, 0], [8, 8, 8], [8, 8, 8]]
        rows.append(make.model(seed=seed, loss=3 - seed))
        rows.append(
            make.model("pruned/all_lambda0.01", kept, seed=seed, loss=4 - seed, p_value=0.01 * seed)
        )
        rows.append(
            make.model(
                "scratch/all_lambda0.01", kept, seed=seed, loss=6 - seed, p_value=0.02 * seed
            )
        )
    numbers = costs.table2_numbers(make.tables(models={"EN-FR": rows}))
    assert (numbers["corpus"] == "EN-FR").sum() == 6  # each seed is a row of the numbers
    table = costs.table2_shown(numbers)
    mine = table[table["corpus"] == "EN-FR"].set_index("model")
    assert mine["seeds"].tolist() == ["3", "3"]
    assert mine.loc["baseline", "BLEU"] == "29.0 ± 1.0"
    assert mine.loc["λ 0.01", ["enc/dec/cross", "BLEU", "p"]].tolist() == [
        "2/24/24",
        "28.0 ± 1.0",
        "0.030",
    ]
    assert mine.loc["λ 0.01", ["BLEU from scratch", "p (scratch)"]].tolist() == [
        "26.0 ± 1.0",
        "0.060",
    ]
    assert (table["corpus"] == paper.WMT).sum() == 5  # the paper's models are not averaged
    # Where one seed alone has a twin, the cell is of this seed, and says so.
    scratch = [name for name in numbers if name.startswith("scratch_")]
    numbers.loc[(numbers["kind"] == "pruned") & (numbers["seed"] != 2), scratch] = np.nan
    cell = costs.table2_shown(numbers).set_index("model").loc["λ 0.01"]
    assert cell[["BLEU from scratch", "p (scratch)"]].tolist() == [
        "26.0 [25.0, 27.0], seed 2",
        "0.040",
    ]


def test_the_baseline_has_the_mirrored_interval_of_its_reference(make) -> None:
    kept = [[2, 0], FULL, FULL]
    ends = {"difference_low": 0.5, "difference_high": 0.9, "difference_samples": [0.5, 0.9]}
    rows = [
        make.model("baseline", [FULL] * 3),
        make.model("pruned/encoder_lambda0", [FULL] * 3, loss=-0.6, **ends),
        make.model(
            "pruned/encoder_lambda0.01",
            kept,
            loss=0.6,
            difference_samples=[-0.7, -0.5],
            counterpart_difference_samples=[-1.3, -1.1],
        ),
    ]
    tables = make.tables(models={"EN-FR": rows})
    found, reference = sweep.against_reference(tables.models, scope="encoder")
    assert reference == "λ 0"
    assert found[INTERVAL].iloc[0].tolist() == pytest.approx([-0.6, -0.9, -0.5])
    samples = np.stack(found["difference_samples"].to_list())
    assert samples.tolist() == [[-0.5, -0.9], [0.0, 0.0], [-1.3, -1.1]]
