"""Figure: BLEU as heads are removed in order of importance, of all types together and of each by itself (Michel et al.
2019, sections 4.2 and 5).

No training in between. A hollow marker differs from the whole model at p < 0.01, for every seed and in the same direction.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.output import save_figure
from specialized_heads.report.runs import SIGNIFICANT, SYSTEMATIC_COLUMNS, TOO_FEW, Runs, read_runs
from specialized_heads.stage import arguments, run

GROUPS = {"all": ("all types", style.SERIES[3])} | style.TYPES
COLUMNS = [
    "corpus", "pruned", "removed", "heads", "share", "seeds", "bleu", "bleu_low", "bleu_high",
    "delta", "delta_low", "delta_high", "p_value",
]  # fmt: skip
PANELS = 2  # per row
NOTE = {"va": "top", "size": 6, "color": style.PAPER_COLOUR}


def numbers(tables: pd.DataFrame) -> pd.DataFrame:
    """One row per corpus, group of heads and step.

    Returns:
        corpus, pruned (all, or a type), removed (heads), heads (of the group), share (removed of heads), seeds (how many),
        bleu and delta (from the whole model) with `_low` and `_high` (range over seeds), p_value (`sweep.p_of_seeds`).
        Models that lack the heads of a group have no row for it.
    """
    known = tables[tables["heads"] > 0]
    rows = []
    for (corpus, pruned, removed, heads), same in known.groupby(["corpus", "pruned", "removed", "heads"], sort=False):
        row = {"corpus": corpus, "pruned": pruned, "removed": removed, "heads": heads, "share": removed / heads}
        row |= {"seeds": len(same), "p_value": sweep.p_of_seeds(same["p_value"], same["delta"])}
        rows.append(row | sweep.spread(same["bleu"], "bleu") | sweep.spread(same["delta"], "delta"))
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, one line per group of heads."""
    if points.empty:
        return style.message_figure(f"Pruning in order of importance: {TOO_FEW}", width=style.DOUBLE)
    corpora = dict(list(points.groupby("corpus", sort=False)))
    columns = min(PANELS, len(corpora))
    rows = -(-len(corpora) // columns)
    width = style.DOUBLE if columns > 1 else 0.72 * style.DOUBLE
    figure = Figure(figsize=(width, 2.5 * rows + 0.7), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (corpus, own) in zip(panels, corpora.items(), strict=False):
        _panel(axes, own)
        axes.set_title(style.wrap(corpus + sweep.seeds_note(own), inches=width / columns - 0.3, size=7), size=7)
    for axes in panels[len(corpora) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.line) for _, look in GROUPS.values()
    ]
    labels = [name for name, _ in GROUPS.values()]
    handles.append(Line2D([], [], color="#777777", marker="o", markerfacecolor="white", linestyle="none"))
    labels.append(f"differs from the whole model, p < {SIGNIFICANT}")
    handles.append(Line2D([], [], color=style.PAPER_COLOUR, linestyle=":", linewidth=0.8))
    labels.append(style.wrap(paper.PRUNING, inches=width / 2 - 0.4, size=6.5))
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _panel(axes: Axes, own: pd.DataFrame) -> None:
    for pruned, (_, look) in GROUPS.items():
        same = own[own["pruned"] == pruned]
        same = same.assign(share_low=same["share"], share_high=same["share"])  # no bar
        sweep.line(axes, same, x="share", y="bleu", look=look)
        hollow = same[same["p_value"] < SIGNIFICANT]
        axes.plot(
            hollow["share"],
            hollow["bleu"],
            marker=look.marker,
            color=look.colour,
            markerfacecolor="white",
            linestyle="none",
        )
    axes.axhline(own.loc[own["removed"] == 0, "bleu"].iloc[0], color="#777777", linewidth=0.7, linestyle="--", zorder=0)
    axes.set(xlim=(-0.03, 1.03), ylim=(0, 1.15 * own["bleu_high"].max() or 1.0))
    axes.set(xlabel="heads removed, share of their group", ylabel="BLEU")
    axes.xaxis.set_major_formatter("{x:.0%}")
    for name, share in paper.PRUNING_SHARES.items():
        axes.axvline(share, color=style.PAPER_COLOUR, linewidth=0.8, linestyle=":", zorder=0)
        axes.text(share + 0.01, 0.99, name, transform=axes.get_xaxis_transform(), **NOTE)
    axes.grid(axis="y")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables"])
    runs = Runs.model_validate(args.settings).runs
    points = numbers(read_runs(args.tables, runs, columns=SYSTEMATIC_COLUMNS))
    save_figure(args.output, points, lambda: draw(points))


if __name__ == "__main__":
    run(main)
