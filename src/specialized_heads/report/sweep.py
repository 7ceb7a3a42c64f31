"""Pruned models along λ and head counts: how the seeds of one target become one point (figures 7, 9 and 10).

A target is what a model was pruned to: a λ, or a number of heads (`asked`). With one seed a point is that model. With
several it is their mean, and its range is from the lowest to the highest seed. Points of both kinds of target are joined
in the order of their number of heads; where two have the same, in the order of λ, then of the numbers asked for.

Tables show the mean and the standard deviation over seeds instead, with the number of seeds.
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
    """The models behind each point, the baselines first, then by λ, then by heads asked for.

    With them comes what every point says: kind, lam, asked, seeds (how many).
    """
    for (kind, lam, asked), same in models.groupby(["kind", "lam", "asked"], dropna=False):
        yield {"kind": kind, "lam": lam, "asked": asked, "seeds": len(same)}, same


def target(lam: float, asked: float) -> str:
    """How a table calls what a model was pruned to."""
    return f"λ {lam:g}" if pd.notna(lam) else f"{asked:.0f} {'head' if asked == 1 else 'heads'}"


def heads_text(models: pd.DataFrame) -> str:
    """Heads of the three types as `14/31/30`; over several seeds their means, with one digit where they differ."""
    means = [models[f"{kind}_total"].astype(float) for kind in style.TYPES]
    return "/".join(f"{m.mean():.0f}" if m.nunique() < 2 else f"{m.mean():.1f}" for m in means)


def bleu_text(scores: pd.Series, low: float, high: float, *, digits: int = 1) -> str:
    """BLEU of one seed with its bootstrap interval, if there is one, or mean ± standard deviation over several seeds."""
    if scores.isna().all():
        return ""
    if len(scores) > 1:
        return f"{scores.mean():.{digits}f} ± {scores.std():.{digits}f}"
    return f"{scores.iloc[0]:.{digits}f}" + ("" if pd.isna(low) else f" [{low:.1f}, {high:.1f}]")


def p_text(values: pd.Series) -> str:
    """The largest p-value over seeds; nothing where one is missing."""
    largest = values.max(skipna=False)
    if pd.isna(largest):
        return ""
    return "<0.001" if largest < 0.001 else f"{largest:.3f}"


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
