"""The study at a glance: every model on the left, and every head of the first seed's on the right."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from specialized_heads.report import style
from specialized_heads.report.beyond import front
from specialized_heads.report.data import Tables

TITLE = "a $x_1$ & <b>"


@pytest.fixture
def small(make) -> Tables:
    """A baseline of 2 layers of 8 heads, and one model pruned with each scope."""
    heads = make.heads(2, 8)
    heads.loc[(heads["type"] == "cross") & (heads["head"] == 1), "functions"] = pd.Series([["diagonal"]] * len(heads))
    encoder, decoder, cross = (heads[heads["type"] == kind] for kind in style.TYPES)
    models = {
        "baseline": heads,
        "pruned/encoder_lambda0.01": pd.concat([encoder.iloc[[0, 2, 8]], decoder, cross]),
        "pruned/all_lambda0.01": pd.concat([decoder.iloc[:6], cross.iloc[:10]]),
    }
    return make.tables(heads={TITLE: models})


def test_points_are_all_heads_against_bleu(small: Tables) -> None:
    models = small.models.assign(bleu=[27.0, 26.5, 25.0])
    assert front.points(models)[["scope", "kind", "retained", "bleu"]].to_numpy().tolist() == [
        ["encoder", "baseline", 48, 27.0],
        ["encoder", "pruned", 35, 26.5],
        ["all", "baseline", 48, 27.0],
        ["all", "pruned", 16, 25.0],
    ]


def test_every_head_is_counted_once_with_its_functions(small: Tables) -> None:
    heads = front.survivors(small, TITLE)
    for scope, own in heads.groupby("scope"):
        counts = small.heads.loc[small.heads["scope"] == scope, "type"].value_counts()
        assert own.groupby("type")["heads"].sum().to_dict() == {"encoder": 0} | counts.to_dict()
    whole = heads[heads["scope"] == ""].set_index(["type", "functions"])["heads"]
    baseline = small.heads[(small.heads["scope"] == "") & (small.heads["type"] == "encoder")]
    assert whole["encoder", front.NONE] == (baseline["functions"].map(len) == 0).sum()
    assert (whole["encoder", "positional; syntactic"], whole["cross", "diagonal"]) == (1, 2)


def test_bars_are_as_long_as_there_are_heads_and_grey_without_a_function(small: Tables, make) -> None:
    heads = front.survivors(small, TITLE)
    figure = front.draw(front.numbers(small))
    bars = [patch for patch in figure.axes[1].patches if isinstance(patch, Rectangle)]
    area: dict[str, float] = {}
    for bar in (bar for bar in bars if bar.get_fill()):
        colour = to_hex(bar.get_facecolor()).upper()
        area[colour] = area.get(colour, 0) + bar.get_width() * bar.get_height() / 0.76
    grey = heads.loc[heads["functions"] == front.NONE, "heads"].sum()
    assert area[style.FUNCTIONS["other"].colour] == pytest.approx(grey)
    assert sum(area.values()) == pytest.approx(heads["heads"].sum())
    assert [bar.get_width() for bar in bars if not bar.get_fill()] == [16] * 9  # frames
    assert {TITLE, "no function found", "baseline, 30.0", "48", "35", "16", "λ 0.01"} <= set(make.texts(figure))
