"""Pruned models along λ: how the seeds of one λ become one point (figures 7, 9 and 10).

With one seed a point is that model. With several it is their mean, and its range is from the lowest to the highest seed.
Points are joined in the order of their number of heads, and of λ where two have the same.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from specialized_heads.report import style

NO_PRUNED = "no pruned models in this experiment"


def models(scores: pd.DataFrame, *, scope: str) -> pd.DataFrame:
    """The models pruned with a scope, and the baselines; no rows at all where nothing was pruned with it.

    Returns:
        the rows of a table of scores, baselines with λ = 0.
    """
    pruned = scores[(scores["kind"] == "pruned") & (scores["scope"] == scope)]
    baselines = scores[scores["kind"] == "baseline"]
    return pd.concat([baselines, pruned]).fillna({"lam": 0.0}) if len(pruned) else pruned


def spread(values: pd.Series, name: str) -> dict[str, float]:
    """Mean and range over seeds, as `name`, `name_low` and `name_high`."""
    return {name: values.mean(), f"{name}_low": values.min(), f"{name}_high": values.max()}


def line(axes: Axes, points: pd.DataFrame, *, x: str, y: str, look: style.Series, label: str | None = None) -> None:
    """Draw points of a sweep, joined, with the bars that `<x>_low`, `<x>_high`, `<y>_low`, `<y>_high` give.

    A missing end of a bar means that there is no bar.
    """
    points = points.sort_values([x, "lam"])
    bars = {"fmt": "none", "ecolor": look.colour, "elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7}
    axes.errorbar(points[x], points[y], xerr=_bars(points, x), yerr=_bars(points, y), **bars)
    axes.plot(points[x], points[y], color=look.colour, marker=look.marker, linestyle=look.line, label=label)


def _bars(points: pd.DataFrame, name: str) -> np.ndarray | None:
    """Lengths of the two halves of each bar, (2, points); None where all are zero."""
    ends = [points[name] - points[f"{name}_low"], points[f"{name}_high"] - points[name]]
    lengths = np.stack([end.fillna(0.0).to_numpy() for end in ends])
    return lengths if lengths.any() else None
