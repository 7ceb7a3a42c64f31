"""Figure: are the same heads important on another set? (Michel et al. 2019, section 3.4).

A point is a head: the difference in BLEU that its ablation makes on the test set, and on the second set. Beside it the
correlation over all heads: Pearson's with a 95% interval and a p-value (Fisher's z), and Spearman's; with several seeds
their range over seeds.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.agreement import spearman
from specialized_heads.report.output import save_figure
from specialized_heads.report.runs import ABLATION_COLUMNS, TOO_FEW, Runs, read_runs
from specialized_heads.stage import arguments, run

COLUMNS = [
    "corpus", "second", "seed", "type", "layer", "head", "delta_test", "delta_second",
    "pearson", "pearson_low", "pearson_high", "pearson_p", "spearman",
]  # fmt: skip
KEYS = ["corpus", "seed", "type", "layer", "head"]
PANELS = 3  # per row
Z = 1.959964  # half the width of a 95% interval, in standard deviations


class Settings(Runs):
    second: dict[str, str]  # what the second set is called, by title of the corpus


def correlation(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Pearson's r with interval and p-value from Fisher's z, whose standard deviation is 1 / √(n - 3), and Spearman's.

    Returns:
        pearson, pearson_low, pearson_high, pearson_p, spearman; missing for fewer than four points or without variation.
    """
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return dict.fromkeys(COLUMNS[-5:], float("nan"))
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1 + 1e-15, 1 - 1e-15))
    z, deviation = math.atanh(r), 1 / math.sqrt(len(x) - 3)
    return {
        "pearson": r,
        "pearson_low": math.tanh(z - Z * deviation),
        "pearson_high": math.tanh(z + Z * deviation),
        "pearson_p": math.erfc(abs(z) / deviation / math.sqrt(2)),
        "spearman": spearman(pd.Series(x), pd.Series(y))[0],
    }


def numbers(tables: pd.DataFrame, second: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """One row per corpus, seed and head: delta_test and delta_second (BLEU without the head minus BLEU on these sets),
    second (what the second set is called), and the correlation over the heads of this corpus and seed."""
    ours = [table[table["what"] == "without"].set_index(KEYS)["delta"] for table in (tables, second)]
    pairs = pd.concat(ours, axis=1, keys=["delta_test", "delta_second"], join="inner").reset_index()
    frames = []
    for (corpus, _), same in pairs.groupby(["corpus", "seed"], sort=False):
        found = correlation(*(same[name].to_numpy(float) for name in ("delta_test", "delta_second")))
        frames.append(same.assign(second=names[corpus], **found))
    return pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


def draw(heads: pd.DataFrame) -> Figure:
    """Draw one panel per corpus; its seeds share it."""
    if heads.empty:
        return style.message_figure(f"Ablation on two sets: {TOO_FEW}", width=style.DOUBLE)
    corpora = dict(list(heads.groupby("corpus", sort=False)))
    columns = min(PANELS, len(corpora))
    rows = -(-len(corpora) // columns)
    width = style.SINGLE if columns == 1 else style.DOUBLE
    figure = Figure(figsize=(width, (2.6 if columns < PANELS else 2.4) * rows + 0.35), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (corpus, own) in zip(panels, corpora.items(), strict=False):
        for kind, (name, look) in style.TYPES.items():
            same = own[own["type"] == kind]
            points = {
                "linestyle": "none",
                "marker": look.marker,
                "color": look.colour,
                "alpha": 0.75,
                "markeredgewidth": 0,
            }
            axes.plot(same["delta_test"], same["delta_second"], markersize=3.2, label=name, **points)
        for line in (axes.axhline, axes.axvline):
            line(0, color="#BBBBBB", linewidth=0.7, zorder=0)
        axes.set(xlabel="BLEU without the head − BLEU, test set")
        axes.set_ylabel(style.wrap(f"the same, {own['second'].iloc[0]}", inches=2.2, size=7))
        axes.set_title(style.wrap(corpus, inches=width / columns - 0.8, size=7), size=7)
        _note(axes, own.groupby("seed").first())
    for axes in panels[len(corpora) :]:
        axes.set_axis_off()
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3 if width > style.SINGLE else 2,
        handlelength=1.2,
    )
    return figure


def _note(axes: Axes, seeds: pd.DataFrame) -> None:
    """The correlation, above the points."""
    if seeds["pearson"].isna().all():
        text = "no correlation: too few heads, or no effect"
    elif len(seeds) == 1:
        first = seeds.iloc[0]
        p = "< 0.001" if first["pearson_p"] < 0.001 else f"= {first['pearson_p']:.3f}"
        text = f"r = {first['pearson']:.2f} [{first['pearson_low']:.2f}, {first['pearson_high']:.2f}], p {p}\n"
        text += f"Spearman's ρ = {first['spearman']:.2f}"
    else:
        text = "\n".join(
            f"{name} {seeds[column].mean():.2f} [{seeds[column].min():.2f}, {seeds[column].max():.2f}]"
            for name, column in (("r =", "pearson"), ("Spearman's ρ =", "spearman"))
        )
        text += f"\nmean and range of {len(seeds)} seeds"
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))
    text = text.replace("-", "−")
    axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", size=6.5)


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables", "second"])
    settings = Settings.model_validate(args.settings)
    tables = [read_runs(paths, settings.runs, columns=ABLATION_COLUMNS) for paths in (args.tables, args.second)]
    heads = numbers(*tables, settings.second)
    save_figure(args.output, heads, lambda: draw(heads))


if __name__ == "__main__":
    run(main)
