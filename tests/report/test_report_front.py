"""The study at a glance: every model on the left, and every head of the first seed's on the right."""

import numpy as np
import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.beyond import front
from specialized_heads.report.claims.evidence import INTERVAL


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
    reported, left = (left[(left["kind"] == "reported") == theirs] for theirs in (True, False))
    assert reported["retained"].tolist() == [106, 100, 75, 58, 36, 26, 104, 61, 28]  # of 144
    assert left["scope"].tolist() == ["encoder", "encoder", "all", "all"]
    assert left[["retained", "bleu"]].values.tolist() == [[48, 27.0], [35, 26.5], [48, 27.0], [16, 25.0]]
    for scope, own in right.groupby("scope"):
        counts = tables.heads.loc[tables.heads["scope"] == scope, "type"].value_counts()
        assert own.groupby("type")["heads"].sum().to_dict() == {"encoder": 0} | counts.to_dict()
    whole = right[right["scope"] == ""].set_index(["type", "functions"])["heads"]
    assert whole["encoder", front.NONE] == (encoder["functions"].map(len) == 0).sum()
    assert (whole["encoder", "positional; syntactic"], whole["cross", "diagonal"]) == (1, 2)
    # The paired difference is that of the table of models; the baseline is the reference.
    expected = tables.models[INTERVAL].fillna(0.0).iloc[[0, 1, 0, 2]]
    np.testing.assert_array_equal(left[INTERVAL].to_numpy(float), expected.to_numpy(float))
    assert {"EN-FR", "baseline, 27.0", "48", "35", "16", "λ 0.01"} <= set(make.texts(front.draw(rows)))
