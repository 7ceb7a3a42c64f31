"""The study at a glance: every model on the left, and every head of the first seed's on the right."""

import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from specialized_heads.report import style
from specialized_heads.report.beyond import front


def test_every_model_is_a_point_and_every_head_is_counted_once(make) -> None:
    heads = make.heads(2, 8)
    heads.loc[(heads["type"] == "cross") & (heads["head"] == 1), "functions"] = pd.Series([["diagonal"]] * len(heads))
    encoder, decoder, cross = (heads[heads["type"] == kind] for kind in style.TYPES)
    models = {
        "baseline": heads,
        "pruned/encoder_lambda0.01": pd.concat([encoder.iloc[[0, 2, 8]], decoder, cross]),
        "pruned/all_lambda0.01": pd.concat([decoder.iloc[:6], cross.iloc[:10]]),
    }
    tables = make.tables(heads={"EN-FR": models})
    rows = front.numbers(tables._replace(models=tables.models.assign(bleu=[27.0, 26.5, 25.0])))
    left, right = (rows[rows["panel"] == panel] for panel in ("left", "right"))
    assert left[["scope", "kind", "retained", "bleu"]].to_numpy().tolist() == [
        ["encoder", "baseline", 48, 27.0],
        ["encoder", "pruned", 35, 26.5],
        ["all", "baseline", 48, 27.0],
        ["all", "pruned", 16, 25.0],
    ]
    for scope, own in right.groupby("scope"):
        counts = tables.heads.loc[tables.heads["scope"] == scope, "type"].value_counts()
        assert own.groupby("type")["heads"].sum().to_dict() == {"encoder": 0} | counts.to_dict()
    whole = right[right["scope"] == ""].set_index(["type", "functions"])["heads"]
    assert whole["encoder", front.NONE] == (encoder["functions"].map(len) == 0).sum()
    assert (whole["encoder", "positional; syntactic"], whole["cross", "diagonal"]) == (1, 2)

    figure = front.draw(rows)
    bars = [patch for patch in figure.axes[1].patches if isinstance(patch, Rectangle) and patch.get_fill()]
    assert sum(bar.get_width() * bar.get_height() for bar in bars) == pytest.approx(0.76 * right["heads"].sum())
    assert {"EN-FR", "baseline, 27.0", "48", "35", "16", "λ 0.01"} <= set(make.texts(figure))
