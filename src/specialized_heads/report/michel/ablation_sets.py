"""Figure: are the same heads important on another set? (Michel et al. 2019, section 3.4).

A point is a head: the difference in BLEU that its removal makes on the test set and on the second set. The panel states the
correlation over all heads: Pearson's with a 95% interval and a p-value, and Spearman's; with several seeds, the means of
these. scipy's p-value of Pearson's r is that of a t test; ours comes from Fisher's z, like the interval.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from specialized_heads.report import style
from specialized_heads.report.data import Tables, removed, score_name, stack, with_ends

CORRELATION = [*with_ends("pearson"), "pearson_p", "spearman"]
COLUMNS = ["corpus", "second", "seed", "type", "layer", "head", "delta_test", "delta_second", *CORRELATION, "metric"]
KEYS = ["corpus", "seed", "type", "layer", "head"]
PANELS = 3  # per row


def correlation(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Pearson's r with interval and p-value from Fisher's z, whose standard deviation is 1 / √(n - 3), and Spearman's ρ.

    All are NaN for fewer than four points or without variation.
    """
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return dict.fromkeys(CORRELATION, math.nan)
    pearson = stats.pearsonr(x, y)
    r = np.clip(pearson.statistic, -1 + 1e-15, 1 - 1e-15)
    p_value = 2 * stats.norm.sf(abs(math.atanh(r)) * math.sqrt(len(x) - 3))
    values = r, *pearson.confidence_interval(), p_value, stats.spearmanr(x, y).statistic
    return dict(zip(CORRELATION, map(float, values), strict=True))


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, seed and head: the change in BLEU without it on both sets, and the correlation over these heads."""
    first, second = (removed(tables, "without", measured_on=name) for name in ("test", "second"))
    pairs = first.merge(second[[*KEYS, "delta"]], on=KEYS, suffixes=("_test", "_second"))
    frames = []
    for _, same in pairs.groupby(["corpus", "seed"], sort=False):
        known = correlation(same["delta_test"].to_numpy(float), same["delta_second"].to_numpy(float))
        frames.append(same.assign(**known))
    return stack(frames, COLUMNS)


def draw(heads: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, with all its seeds."""
    corpora, metric = style.by(heads, "corpus"), score_name(heads)
    across = min(PANELS, len(corpora))
    width, height = style.SINGLE if across == 1 else style.DOUBLE, 2.6 if across < PANELS else 2.4
    drawn, _, panels = style.panels(len(corpora), across=across, height=height, more_height=0.35, width=width)
    types = {kind: look for kind, look in style.TYPES.items() if kind in set(heads["type"])}  # BERT has one
    for axes, (corpus, rows) in zip(panels, corpora.items(), strict=False):
        for kind, (name, look) in types.items():
            same = rows[rows["type"] == kind]
            points = {"linestyle": "none", "marker": look.marker, "color": look.colour, "alpha": 0.75}
            axes.plot(same["delta_test"], same["delta_second"], markersize=3.2, markeredgewidth=0, label=name, **points)
        for line in (axes.axhline, axes.axvline):
            line(0, color="#BBBBBB", linewidth=0.7, zorder=0)
        axes.set(xlabel=f"{metric} without the head − {metric}, test set")
        axes.set_ylabel(style.wrap(f"the same, {rows['second'].iloc[0]}", inches=2.2, size=7))
        axes.set_title(style.wrap(corpus, inches=width / across - 0.8, size=7), size=7)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.3 * (high - low))
        note = {"transform": axes.transAxes, "va": "top", "size": 6.5, "bbox": style.BEHIND_TEXT}
        axes.text(0.03, 0.97, _note(rows.groupby("seed").first()), **note)
    if len(types) > 1:
        columns = 3 if width > style.SINGLE else 2
        legend = panels[0].get_legend_handles_labels()
        drawn.legend(*legend, loc="outside lower center", ncols=columns, handlelength=1.2)
    return drawn


def _note(seeds: pd.DataFrame) -> str:
    """The correlation in words, the mean of those of all seeds."""
    mean, several = seeds[CORRELATION].mean(), len(seeds) > 1
    if pd.isna(mean["pearson"]):
        return "no correlation: too few heads, or no effect"
    text = f"r = {mean['pearson']:.2f} [{mean['pearson_low']:.2f}, {mean['pearson_high']:.2f}]"
    if not several:
        text += ", p < 0.001" if mean["pearson_p"] < 0.001 else f", p = {mean['pearson_p']:.3f}"
    text += f"\nSpearman's ρ = {mean['spearman']:.2f}" + f"\nmeans of {len(seeds)} seeds" * several
    return style.minus(text)
