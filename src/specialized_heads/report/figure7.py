"""Figure 7: BLEU against the number of encoder heads that pruning leaves (section 6.2.1).

Left, BLEU of every corpus; the bars are 95% bootstrap intervals over sentences, or the range over seeds where there are
several. Right, the same as a difference from the baseline over the share of heads, which is where the paper's two
statements can stand beside ours. Models pruned by λ and to a number of heads are lines of their own. A hollow marker
differs from its baseline at p < 0.05 (paired bootstrap), for every seed and in the same direction.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

COLUMNS = [
    "corpus", "kind", "lam", "asked", "seeds", "heads", "heads_low", "heads_high", "share", "share_low", "share_high",
    "bleu", "bleu_low", "bleu_high", "delta", "delta_low", "delta_high", "p_value", "sentences",
]  # fmt: skip
SIGNIFICANT = 0.05


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Points of every corpus that has models with pruned encoder heads, then the paper's.

    Returns:
        one row per point: corpus, kind (baseline, pruned, reported), lam or asked (number of heads), seeds (how many), heads,
        share (of the baseline's encoder heads), bleu, delta (BLEU minus the baseline of the same seed), each with
        `_low` and `_high` (range over seeds; for bleu with one seed the bootstrap interval; for delta with one seed
        missing), p_value (`sweep.p_of_seeds`), sentences (of the test set). No rows where nothing was pruned.
    """
    rows = []
    for title, scores in tables.items():
        models = sweep.models(scores, scope="encoder")
        baselines = models[models["kind"] == "baseline"].set_index("seed")
        for point, same in sweep.points(models):
            full = same["seed"].map(baselines["encoder_total"])
            row = {"corpus": title} | point
            row |= sweep.spread(same["encoder_total"], "heads") | sweep.spread(same["encoder_total"] / full, "share")
            rows.append(row | sweep.against(same, baselines["bleu"]) | {"sentences": same["sentences"].iloc[0]})
    if rows:
        for said in paper.FIGURE7:
            share = said.heads / paper.HEADS_PER_TYPE
            rows.append(
                {"corpus": said.corpus, "kind": "reported", "heads": said.heads, "share": share, "delta": -said.loss}
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw the points, BLEU on the left, difference from the baseline on the right."""
    if points.empty:
        return style.message_figure(f"Figure 7: {sweep.NO_PRUNED} (scope: encoder)", width=style.DOUBLE)
    corpora = dict(list(points.groupby("corpus", sort=False)))
    both = sweep.both_kinds(points)
    figure = Figure(figsize=(style.DOUBLE, 2.4 + 0.13 * ((len(corpora) + 4) // 2)), layout="constrained")
    absolute, relative = figure.subplots(1, 2)
    handles, labels = [], []
    for number, (corpus, own) in enumerate(corpora.items()):
        if corpus in paper.MARKERS:
            look = style.Series(style.PAPER_COLOUR, paper.MARKERS[corpus], "none")
            relative.plot(
                own["share"],
                own["delta"],
                marker=look.marker,
                color=look.colour,
                markersize=6,
                linestyle="none",
                zorder=4,
            )
            label = corpus
        else:
            look = style.series(number)
            baseline = own.loc[own["kind"] == "baseline", "bleu"]
            absolute.axhline(baseline.iloc[0], color=look.colour, linewidth=0.8, linestyle="--", alpha=0.7)
            for axes, x, y in ((absolute, "heads", "bleu"), (relative, "share", "delta")):
                for series, line in sweep.split(own, look, both=both):
                    # From the smallest model to the whole one, where two have as many heads: x falls as λ rises.
                    sweep.line(axes, series.iloc[::-1], x=x, y=y, look=line)
                    _hollow(axes, series[series["p_value"] < SIGNIFICANT], x=x, y=y, look=line)
            label = f"{corpus}, n = {own['sentences'].iloc[0]:,.0f}{sweep.seeds_note(own)}"
        size = 6 if corpus in paper.MARKERS else None
        handles.append(Line2D([], [], color=look.colour, marker=look.marker, markersize=size, linestyle=look.line))
        labels.append(style.wrap(label, inches=style.DOUBLE / 2 - 0.4, size=6.5))
    relative.axhline(0, color="#777777", linewidth=0.8, linestyle="--")
    absolute.set(
        xlabel="encoder heads retained", ylabel="BLEU of n test sentences", title="(a) BLEU", xlim=(-0.5, None)
    )
    relative.set(xlabel="encoder heads retained, share of all", ylabel="BLEU − baseline", xlim=(-0.03, 1.03))
    relative.set_title("(b) difference from the baseline")
    relative.xaxis.set_major_formatter("{x:.0%}")
    for axes in (absolute, relative):
        axes.grid(axis="y")
        sweep.widen(axes)
    handles.append(Line2D([], [], color="#777777", linestyle="--", linewidth=0.8))
    handles.append(Line2D([], [], color="#777777", marker="o", markerfacecolor="white", linestyle="none"))
    handles.append(Line2D([], [], color="#777777", marker="|", markersize=7, linestyle="none"))
    labels += ["baseline, no head pruned", "differs from the baseline, p < 0.05"]
    labels.append(
        "95% bootstrap interval" if points["seeds"].max() < 2 else "95% bootstrap interval, or range of seeds"
    )
    handles += sweep.key(both=both)
    labels += [sweep.ASKED_LABEL] * both
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _hollow(axes: Axes, points: pd.DataFrame, *, x: str, y: str, look: style.Series) -> None:
    axes.plot(points[x], points[y], marker=look.marker, color=look.colour, markerfacecolor="white", linestyle="none")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    points = numbers(read_all(args.scores, titles, columns=SCORE_COLUMNS))
    save_figure(args.output, points, lambda: draw(points))


if __name__ == "__main__":
    run(main)
