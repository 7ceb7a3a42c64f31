"""Figure 3: where the dependent of a relation stands relative to its head, in words (section 5.2).

Negative positions are to the left of the head. The first and the last bar hold everything farther away, so the bars
of a panel sum to one. The most frequent position is the baseline that a syntactic head has to beat.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specialized_heads.report import style
from specialized_heads.report.inputs import RELATION_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.report.paper import direction_label
from specialized_heads.stage import arguments, run

REACH = 5  # words; the outermost bars are "so many or more"
PANELS = 4  # per row
COMMON, MOST_FREQUENT = "#A9A9BC", "#332288"


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Bars of every relation.

    Returns:
        one row per bar: corpus, relation, arcs (of the relation), position (-5 and 5 hold all farther ones), count,
        share (of the arcs; missing where there are none), baseline (whether the bar is the most frequent position).
    """
    rows = []
    for title, table in tables.items():
        for relation in table[table["direction"] == "head_to_dependent"].to_dict("records"):
            counts = {position: 0 for position in range(-REACH, REACH + 1) if position}
            for offset, count in zip(relation["offsets"], relation["counts"], strict=True):
                counts[max(-REACH, min(REACH, int(offset)))] += int(count)
            for position, count in counts.items():
                rows.append(
                    {
                        "corpus": title,
                        "relation": relation["relation"],
                        "arcs": relation["arcs"],
                        "position": position,
                        "count": count,
                        "share": count / relation["arcs"] if relation["arcs"] else None,
                        # An outermost bar holds several positions, so it never is the single most frequent one.
                        "baseline": abs(position) < REACH and position == relation["baseline_offset"],
                    }
                )
    return pd.DataFrame(rows)


def draw(bars: pd.DataFrame) -> Figure:
    """Draw the bars, one panel per relation, the corpora below each other."""
    corpora = dict(list(bars.groupby("corpus", sort=False)))
    rows = {title: -(-corpus["relation"].nunique() // PANELS) for title, corpus in corpora.items()}
    heights = [1.45 * count + 0.25 for count in rows.values()]
    figure = Figure(figsize=(style.DOUBLE, sum(heights) + 0.2), layout="constrained")
    blocks = figure.subfigures(len(corpora), 1, height_ratios=heights, squeeze=False)[:, 0]
    top = bars["share"].max()
    for block, (title, corpus) in zip(blocks, corpora.items(), strict=True):
        block.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
        block.supxlabel("position of the dependent relative to its head, words")
        panels = block.subplots(rows[title], PANELS, sharey=True, squeeze=False)
        for axes in panels[:, 0]:
            axes.set_ylabel("share of arcs")
        relations = list(corpus.groupby("relation", sort=False))
        for axes, (relation, relation_bars) in zip(panels.flat, relations, strict=False):
            _panel(axes, relation, relation_bars, top=1.0 if pd.isna(top) else 1.15 * top)
        for axes in panels.flat[len(relations) :]:
            axes.set_axis_off()
    figure.legend(
        [Patch(facecolor=MOST_FREQUENT)],
        ["most frequent position: the baseline of figure 4 and table 1"],
        loc="outside lower center",
        handlelength=1.2,
    )
    return figure


def _panel(axes: Axes, relation: str, bars: pd.DataFrame, *, top: float) -> None:
    arcs = bars["arcs"].iloc[0]
    title = f"{relation}, {direction_label(relation, 'head_to_dependent')} (n = {arcs:,})"
    axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.15))
    ends = {-REACH: f"≤−{REACH}", REACH: f"≥{REACH}"}
    positions = [-REACH, -3, -1, 1, 3, REACH]
    axes.set(xlim=(-REACH - 0.7, REACH + 0.7), ylim=(0, top))
    axes.set_xticks(positions, [ends.get(position, str(position).replace("-", "−")) for position in positions])
    if not arcs:
        axes.text(0.5, 0.5, "no arcs", ha="center", va="center", transform=axes.transAxes)
        return
    colours = [MOST_FREQUENT if baseline else COMMON for baseline in bars["baseline"]]
    axes.grid(axis="y")
    axes.bar(bars["position"], bars["share"], width=0.8, color=colours)
    for bar in bars[bars["baseline"]].to_dict("records"):
        axes.annotate(
            f"{bar['share']:.0%}", (bar["position"], bar["share"]), (0, 1.5), ha="center", textcoords="offset points"
        )


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["relations"])
    titles = Titles.model_validate(args.settings).titles
    bars = numbers(read_all(args.relations, titles, columns=RELATION_COLUMNS))
    save_figure(args.output, bars, lambda: draw(bars))


if __name__ == "__main__":
    run(main)
