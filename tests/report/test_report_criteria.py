"""Criteria side by side: which models are a point, what a point says, and what the reader sees."""

import numpy as np
import pandas as pd
import pytest

from specialized_heads.report import style
from specialized_heads.report.beyond import criteria

NAN = float("nan")
FULL = [8, 8, 8]
COUNTS = {"encoder": (16, 8, 2), "all": (48, 24)}


def table(make, *, seeds: tuple[int, ...] = (1,), criteria: tuple[str, ...] = ("gates", "importance", "random")):
    """Scores with the baseline, models pruned to a count and by λ, cut models and fine-tuned ones."""
    random = np.random.default_rng(0)
    rows = []

    def add(kind: str, scope: str, seed: int, bleu: float, *, asked: int | None = None, criterion: str = "") -> None:
        kept = [[asked or 24], FULL, FULL] if scope != "all" else [[asked // 3]] * 3
        lam = 0.01 if kind == "pruned" and asked is None else NAN
        row = make.score_row(kind, scope, lam, seed, bleu, kept)
        rows.append(row | {"asked": asked, "criterion": criterion, "updates": 1000 if kind == "cut" else 140})

    for seed in seeds:
        add("baseline", "", seed, 30.0 + 0.2 * seed)
        add("pruned", "encoder", seed, 5.0)  # by λ: no point of this figure
        for scope, counts in COUNTS.items():
            for count in counts:
                add("pruned", scope, seed, 29.0 + 0.1 * count / 24 + 0.2 * seed, asked=count)
                for number, criterion in enumerate(criteria):
                    loss = (number + 1) * (72 - count) / 20 + random.normal(0, 0.2)
                    add("cut", scope, seed, 29.0 - loss, asked=count, criterion=criterion)
                    add("finetuned", scope, seed, 29.5 - loss / 3, asked=count, criterion=criterion)
    return pd.DataFrame(rows)


def one(points: pd.DataFrame, **wanted: object) -> pd.Series:
    for name, value in wanted.items():
        points = points[points[name] == value]
    assert len(points) == 1
    return points.iloc[0]


def test_every_cut_and_fine_tuned_model_is_a_point_and_so_are_models_pruned_to_a_count(make):
    scores = table(make)
    points = criteria.numbers({"EN-FR": scores})
    cut = scores[scores["kind"] == "cut"]
    without = points[~points["finetuned"] & (points["criterion"] != "baseline")]
    expected = {(r.scope, r.criterion, r.asked): r.bleu for r in cut.itertuples()}
    assert {(r.scope, r.criterion, r.heads): r.bleu for r in without.itertuples()} == expected
    trained = points[points["finetuned"]]
    assert len(trained) == len(expected) + 5  # three counts of encoder heads, two of all
    pruned = scores[(scores["kind"] == "pruned") & (scores["asked"] == 8)].iloc[0]
    point = one(trained, scope="encoder", criterion="pruned", heads=8)
    assert point[["bleu", "bleu_low", "p_value"]].tolist() == pruned[["bleu", "bleu_low", "p_value"]].tolist()
    assert point["delta"] == pytest.approx(pruned["bleu"] - 30.2)
    baselines = points[points["criterion"] == "baseline"]
    assert baselines[["scope", "heads", "bleu"]].values.tolist() == [["encoder", 24, 30.2], ["all", 72, 30.2]]


def test_seeds_give_mean_range_deviation_and_the_largest_p(make):
    scores = table(make, seeds=(1, 2, 3))
    own = (scores["kind"] == "cut") & (scores["scope"] == "encoder") & (scores["criterion"] == "random")
    own &= scores["asked"] == 2
    scores.loc[own, "p_value"] = [0.001, 0.2, 0.01]
    point = one(criteria.numbers({"EN-FR": scores}), scope="encoder", finetuned=False, criterion="random", heads=2)
    bleu = scores.loc[own, "bleu"]
    assert point["seeds"] == 3
    assert (point["bleu_low"], point["bleu_high"]) == (bleu.min(), bleu.max())
    assert (point["bleu"], point["bleu_sd"]) == pytest.approx((bleu.mean(), bleu.std()))
    assert point["delta"] == pytest.approx((bleu.to_numpy() - [30.2, 30.4, 30.6]).mean())
    assert point["p_value"] == 0.2
    text = criteria.shown(criteria.numbers({"EN-FR": scores}))
    cell = text[(text["scope"] == "encoder") & (text["criterion"] == "random") & (text["heads"] == "2")].iloc[0]
    assert cell["BLEU"] == f"{bleu.mean():.1f} ± {bleu.std():.1f}"
    assert (cell["n"], cell["p"]) == ("3", "0.200")


def test_the_panels_of_a_scope_share_their_axes_and_hold_a_line_per_criterion(make):
    points = criteria.numbers({"EN-FR": table(make)})
    figure = criteria.draw(points)
    assert len(figure.axes) == 4
    for left, right in (figure.axes[:2], figure.axes[2:]):
        assert left.get_xlim() == right.get_xlim()
        assert left.get_ylim() == right.get_ylim()
    lines = [line for line in figure.axes[0].lines if line.get_color() == style.CRITERIA["importance"].colour]
    own = points[(points["scope"] == "encoder") & (points["criterion"] == "importance") & ~points["finetuned"]]
    assert sorted(zip(*lines[0].get_data())) == sorted(zip(own["heads"], own["bleu"]))
    assert len(figure.axes[0].collections) == 0
    assert {"not fine-tuned", "fine-tuned, 140 updates"} <= set(make.texts(figure))


def test_markers_of_significant_points_are_hollow(make):
    scores = table(make)
    scores["p_value"] = np.where(scores["asked"] == 2, 0.049, 0.051)
    figure = criteria.draw(criteria.numbers({"EN-FR": scores}))
    for axes, lines in zip(figure.axes[:2], (3, 4)):
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert [x for line in hollow for x in line.get_xdata()] == [2] * lines


def test_bands_are_the_range_of_seeds(make):
    points = criteria.numbers({"EN-FR": table(make, seeds=(1, 2))})
    figure = criteria.draw(points)
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    own = points[(points["scope"] == "encoder") & (points["criterion"] == "gates") & ~points["finetuned"]]
    for end in ("bleu_low", "bleu_high"):
        assert set(zip(own["heads"], own[end].round(9))) <= {(x, round(y, 9)) for x, y in band}


@pytest.mark.parametrize("left_out", ["fine-tuned models", "gates"])
def test_pruned_models_stand_beside_fine_tuned_heads_of_gates_alone(make, left_out: str):
    scores = table(make)
    unwanted = scores["kind"] == "finetuned" if left_out == "fine-tuned models" else scores["criterion"] == "gates"
    points = criteria.numbers({"EN-FR": scores[~unwanted]})
    assert "pruned" not in set(points["criterion"])
    criteria.draw(points)


def test_nothing_compared(make, stage, write):
    scores = write("scores.parquet", table(make)[lambda t: t["kind"] == "baseline"])
    for paths, titles in (([], []), ([scores], ["EN-FR"])):
        stem = stage("criteria", {"titles": titles}, scores=paths)
        assert criteria.NOTHING in stem.with_suffix(".md").read_text(encoding="utf-8")
        assert pd.read_csv(stem.with_suffix(".csv")).empty


def test_the_stage_writes_figure_and_table(make, stage, write):
    tables = {"EN-FR": table(make), "EN-RU 100% & more": table(make, seeds=(1, 2))}
    paths = [write(f"{number}.parquet", scores) for number, scores in enumerate(tables.values())]
    stem = stage("criteria", {"titles": list(tables)}, scores=paths)
    written = {path.suffix for path in stem.parent.iterdir()}
    assert written == {".pdf", ".svg", ".png", ".csv", ".md", ".tex", ".html"}
    markdown = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert "| corpus | scope | heads | criterion | n | BLEU | Δ | p | BLEU, fine-tuned |" in markdown
