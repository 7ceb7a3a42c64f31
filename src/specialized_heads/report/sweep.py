"""Pruned models along λ: how the seeds of one λ become one point (figures 7, 9 and 10).

With one seed a point is that model. With several it is their mean, and its range is from the lowest to the highest
seed. Points are joined in the order of their number of heads; where two have the same, in the order of λ.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from specialized_heads.report import style

NO_PRUNED = "no pruned models in this experiment"


def models(scores: pd.DataFrame, *, scope: str) -> pd.DataFrame:
    """The models pruned with a scope, and the baselines; no rows at all where nothing was pruned with it.

    Returns:
        the rows of a table of scores with two more columns: all_heads (of all attention types, before pruning) and
        pruned (how many of them are gone).
    """
    pruned = scores[(scores["kind"] == "pruned") & (scores["scope"] == scope)]
    baselines = scores[scores["kind"] == "baseline"]
    rows = pd.concat([baselines, pruned]) if len(pruned) else pruned
    totals = rows[["encoder_total", "decoder_total", "cross_total"]].sum(axis=1)
    return rows.assign(all_heads=totals.max(), pruned=totals.max() - totals)


def points(models: pd.DataFrame) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """The models behind each point, the baselines first, then by λ, with what every point says: kind, lam, seeds."""
    for (kind, lam), same in models.groupby(["kind", "lam"], dropna=False):
        yield {"kind": kind, "lam": lam, "seeds": len(same)}, same


def spread(values: pd.Series, name: str) -> dict[str, float]:
    """Mean and range over seeds, as `name`, `name_low` and `name_high`."""
    return {name: values.mean(), f"{name}_low": values.min(), f"{name}_high": values.max()}


def seeds_note(series: pd.DataFrame) -> str:
    """What a title says of the seeds behind a corpus's points: nothing where there is one."""
    most = series["seeds"].max()
    return f", {most:.0f} seeds (mean and range)" if most > 1 else ""


def line(axes: Axes, series: pd.DataFrame, *, x: str, y: str, look: style.Series, label: str | None = None) -> None:
    """Draw the points of a series, joined, with the bars that `<x>_low`, `<x>_high`, `<y>_low`, `<y>_high` give.

    Points with the same `x` are joined in the order in which they are given. A missing end of a bar means that there is
    no bar.
    """
    series = series.sort_values(x, kind="stable")
    bars = {"fmt": "none", "ecolor": look.colour, "elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7}
    axes.errorbar(series[x], series[y], xerr=_bars(series, x), yerr=_bars(series, y), **bars)
    axes.plot(series[x], series[y], color=look.colour, marker=look.marker, linestyle=look.line, label=label)


def _bars(series: pd.DataFrame, name: str) -> np.ndarray | None:
    """Lengths of the two halves of each bar, (2, points); None where all are zero."""
    ends = [series[name] - series[f"{name}_low"], series[f"{name}_high"] - series[name]]
    lengths = np.stack([end.fillna(0.0).to_numpy() for end in ends])
    return lengths if lengths.any() else None
