"""Pruned models along λ and head counts: how the seeds of one target become one point (figures 7, 9 and 10).

A target is what a model was pruned to: a λ, or a number of heads (`asked`). With one seed a point is that model. With
several it is their mean, and its range is from the lowest to the highest seed. The two kinds of target are two procedures,
and two series wherever a figure has both, each from the baseline on. The points of a series are joined in the order of
their number of heads; where two have the same, in the order of λ.

Tables show the mean and the standard deviation over seeds instead, with the number of seeds.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from specialized_heads.report import style

NO_PRUNED = "no pruned models of this kind in this experiment"
ASKED = {"marker": ">", "line": (0, (1, 2))}  # in the colour of the series by λ
ASKED_LABEL = "asked: number of heads"
WEAKEST_FIRST = {"lam": True, "asked": False}  # for `in_order`: small λ, then many heads
SMALLEST_SPAN = 2.0  # BLEU; a shorter axis would make noise look like an effect


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


def in_order(rows: pd.DataFrame, order: dict[str, bool]) -> pd.DataFrame:
    """The rows sorted by these columns, each ascending (True) or descending, and numbered anew."""
    return rows.sort_values(list(order), ascending=list(order.values()), ignore_index=True)


def target(lam: float, asked: float) -> str:
    """How a table calls what a model was pruned to."""
    return f"λ {lam:g}" if pd.notna(lam) else f"{asked:.0f} {'head' if asked == 1 else 'heads'}"


def heads_text(models: pd.DataFrame) -> str:
    """Heads of the three types as `14/31/30`; over several seeds their means, with one digit where they differ."""
    means = [models[f"{kind}_total"].astype(float) for kind in style.TYPES]
    return "/".join(f"{m.mean():.0f}" if m.nunique() < 2 else f"{m.mean():.1f}" for m in means)


def value_text(
    value: float, *, sd: float, low: float = math.nan, high: float = math.nan, digits: int = 1, sign: bool = False
) -> str:
    """A cell of a table: mean ± standard deviation over seeds, or the value of one seed with its interval.

    Args:
        value: of one seed, or the mean; nothing is written where it is missing.
        sd: missing where there is one seed.
        low: where the interval of one seed begins; missing where it has none.
        high: where it ends.
        digits: after the point.
        sign: a plus before positive values.
    """
    if pd.isna(value):
        return ""
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    if pd.notna(sd):
        text += f" ± {sd:.{digits}f}"
    elif pd.notna(low):
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text.replace("-", "−")


def bleu_text(scores: pd.Series, low: float, high: float, *, digits: int = 1) -> str:
    """`value_text` of the scores of one model, one per seed."""
    return value_text(scores.mean(), sd=scores.std(), low=low, high=high, digits=digits)


def p_of_seeds(p_values: pd.Series, differences: pd.Series) -> float:
    """The p-value of a model with several seeds, from those of its differences from the baselines.

    It is the largest; 1 where some seeds gain and others lose, which is no difference that they share. Missing where one is.
    """
    if (differences > 0).any() and (differences < 0).any():
        return 1.0
    return float(p_values.max(skipna=False))


def p_text(p_value: float) -> str:
    """A p-value; nothing where it is missing."""
    if pd.isna(p_value):
        return ""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def spread(values: pd.Series, name: str) -> dict[str, float]:
    """Mean and range over seeds, as `name`, `name_low` and `name_high`."""
    return {name: values.mean(), f"{name}_low": values.min(), f"{name}_high": values.max()}


def against(same: pd.DataFrame, baselines: pd.Series) -> dict[str, float | None]:
    """BLEU of a model and its difference from the baseline, over its seeds.

    Args:
        same: scores of the model, one row per seed.
        baselines: BLEU of the baseline, by seed.

    Returns:
        bleu and delta, each with `_low` and `_high` (range over seeds; with one seed the bootstrap interval of bleu, and none of
        delta), and p_value, see `p_of_seeds`.
    """
    delta = same["bleu"] - same["seed"].map(baselines)
    row = spread(same["bleu"], "bleu") | spread(delta, "delta") | {"p_value": p_of_seeds(same["p_value"], delta)}
    if len(same) == 1:
        row |= {"bleu_low": same["bleu_low"].iloc[0], "bleu_high": same["bleu_high"].iloc[0]}
        row |= {"delta_low": None, "delta_high": None}
    return row


def seeds_note(series: pd.DataFrame) -> str:
    """What a title says of the seeds behind a corpus's points: nothing where there is one."""
    most = series["seeds"].max()
    return f", {most:.0f} seeds (mean and range)" if most > 1 else ""


def both_kinds(points: pd.DataFrame) -> bool:
    """Whether a figure has models pruned by λ and models pruned to a number of heads."""
    return bool(points["lam"].notna().any() and points["asked"].notna().any())


def split(points: pd.DataFrame, look: style.Series, *, both: bool) -> Iterator[tuple[pd.DataFrame, style.Series]]:
    """The series that some points are drawn as, with the look of each.

    Args:
        points: of one thing that the figure shows, the baseline among them.
        look: of this thing.
        both: whether the figure has both kinds of target (`both_kinds`); if not, there is one series.
    """
    asked, baseline = points["asked"].notna(), points["kind"] == "baseline"
    # The baseline, in both, has the marker of the series that is drawn last.
    if both and asked.any():
        yield points[asked | baseline], look._replace(**ASKED)
    if not both or not asked[~baseline].all():
        yield points[~asked] if both else points, look


def key(*, both: bool) -> list[Line2D]:
    """What a legend says of the look of models pruned to a number of heads, where there are others."""
    look = style.Series(style.PAPER_COLOUR, **ASKED)
    handle = Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.line, label=ASKED_LABEL)
    return [handle] if both else []


def widen(axes: Axes) -> None:
    """Let an axis of BLEU span `SMALLEST_SPAN` at least."""
    low, high = axes.get_ylim()
    missing = max(0.0, SMALLEST_SPAN - (high - low)) / 2
    axes.set_ylim(low - missing, high + missing)


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
    # The mean of equal numbers can be off by its last bit, beyond both of them.
    lengths = np.stack([end.fillna(0.0).to_numpy() for end in ends]).clip(min=0.0)
    return lengths if lengths.any() else None
