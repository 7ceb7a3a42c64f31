"""The study at a glance: every model on the left, and every head of the first seed's on the right."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from specialized_heads.report import style
from specialized_heads.report.beyond import front

NAN = float("nan")


@pytest.fixture
def small(make):
    """Scores and tables of heads: a baseline of 2 layers of 8 heads, one model pruned with each scope."""
    heads = make.heads(2, 8)
    heads.loc[(heads["type"] == "cross") & (heads["head"] == 1), "functions"] = pd.Series([["diagonal"]] * len(heads))
    full = [8, 8]
    scores = [
        make.score_row("baseline", "", NAN, 1, 27.0, [full] * 3),
        make.score_row("pruned", "encoder", 0.01, 1, 26.5, [[2, 1], full, full]),
        make.score_row("pruned", "all", 0.01, 1, 25.0, [[0, 0], [3, 3], [5, 5]]),
        make.score_row("scratch", "all", 0.01, 1, 20.0, [[0, 0], [3, 3], [5, 5]]),
    ]
    encoder = heads[heads["type"] == "encoder"].iloc[[0, 2, 8]]
    rest = heads[heads["type"] != "encoder"]
    every = pd.concat([rest[rest["type"] == "decoder"].iloc[:6], rest[rest["type"] == "cross"].iloc[:10]])
    tables = {
        "baseline/seed1": heads,
        "pruned/encoder_lambda0.01/seed1": pd.concat([encoder, rest]),
        "pruned/all_lambda0.01/seed1": every,
    }
    return pd.DataFrame(scores), make.by_model(tables)


def test_points_are_all_heads_against_bleu(small):
    points = front.points(small[0])
    assert points[["scope", "kind", "retained", "bleu"]].to_numpy().tolist() == [
        ["encoder", "baseline", 48, 27.0],
        ["encoder", "pruned", 35, 26.5],
        ["all", "baseline", 48, 27.0],
        ["all", "pruned", 16, 25.0],
    ]


def test_every_head_is_counted_once_with_its_functions(small):
    scores, tables = small
    heads = front.survivors(tables, scores)
    for model, table in tables.items():
        own = heads[heads["scope"] == model.scope].groupby("type")["heads"].sum()
        assert own.to_dict() == {"encoder": 0} | table["type"].value_counts().to_dict()
    whole = heads[heads["scope"] == ""].set_index(["type", "functions"])["heads"]
    baseline = next(iter(tables.values()))
    functions = baseline.loc[baseline["type"] == "encoder", "functions"]
    assert whole["encoder", "none found"] == (functions.map(len) == 0).sum()
    assert whole["encoder", "positional; syntactic"] == 1
    assert whole["cross", "diagonal"] == 2
    assert heads.groupby("scope")["bleu"].first().to_dict() == {"": 27.0, "encoder": 26.5, "all": 25.0}


def test_bars_are_as_long_as_there_are_heads_and_grey_without_a_function(small):
    scores, tables = small
    heads = front.survivors(tables, scores)
    right = front.draw(front.numbers(scores, tables), title="EN-FR").axes[1]
    bars = [patch for patch in right.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    area = {}
    for bar in bars:
        colour = to_hex(bar.get_facecolor()).upper()
        area[colour] = area.get(colour, 0) + bar.get_width() * bar.get_height() / 0.76
    grey = heads.loc[heads["functions"] == "none found", "heads"].sum()
    assert area[style.FUNCTIONS["other"].colour] == pytest.approx(grey)
    assert sum(area.values()) == pytest.approx(heads["heads"].sum())
    frames = [patch.get_width() for patch in right.patches if not patch.get_fill()]
    assert frames == [16] * 9


def test_what_is_written(small, make):
    scores, tables = small
    written = make.texts(front.draw(front.numbers(scores, tables), title="a $x_1$ & <b>"))
    assert {"a $x_1$ & <b>", "no function found", "baseline, 27.0", "48", "35", "16", "λ 0.01"} <= set(written)


def test_without_pruned_models_it_says_so(stage, write, make):
    scores = make.scores(lambdas=())
    settings = {"runs": make.as_runs(["baseline/seed1"]), "title": "EN-FR"}
    files = {"scores": [write("scores.parquet", scores)], "heads": [write("heads.parquet", make.heads())]}
    stem = stage("front", settings, **files)
    assert stem.with_suffix(".pdf").stat().st_size > 500
    shown = front.draw(front.numbers(scores, make.by_model({"baseline/seed1": make.heads()})), title="EN-FR")
    assert any("no pruned models" in text.replace("\n", " ") for text in make.texts(shown))
    assert np.isclose(shown.get_figwidth(), style.DOUBLE)
