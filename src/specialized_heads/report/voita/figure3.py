"""Figure 3: position of the dependent of a relation relative to its head, in words (section 5.2).

Negative positions are to the left of the head. The first and the last bar include everything farther away, so the bars of a
panel sum to one. The most frequent position is the baseline that a syntactic head has to beat.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from specialized_heads.report import style
from specialized_heads.report.data import Tables
from specialized_heads.report.voita.paper import direction_label

COLUMNS = ["corpus", "relation", "arcs", "position", "count", "share", "baseline"]
REACH = 5  # words; the outermost bars also hold everything beyond
PANELS = 4  # per row
COMMON, MOST_FREQUENT = "#A9A9BC", "#332288"
POSITIONS = [position for position in range(-REACH, REACH + 1) if position]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per bar; share: of the relation's arcs, missing without any; baseline: whether it is the most frequent position."""
    frames = []
    for title in tables.corpora()[:1]:
        table = tables.of(title).relations
        for relation in table[table["direction"] == "head_to_dependent"].to_dict("records"):
            offsets = pd.Series(relation["offsets"], dtype=int).clip(-REACH, REACH)
            counts = pd.Series(relation["counts"], dtype=int).groupby(offsets).sum().reindex(POSITIONS, fill_value=0)
            bars = pd.DataFrame({"position": POSITIONS, "count": counts.to_numpy()})
            bars["share"] = bars["count"] / (relation["arcs"] or float("nan"))
            # An outermost bar covers several positions, so it is never the single most frequent one.
            bars["baseline"] = (bars["position"] == relation["baseline_offset"]) & (bars["position"].abs() < REACH)
            frames.append(bars.assign(corpus=title, relation=relation["relation"], arcs=relation["arcs"]))
    return pd.concat(frames, ignore_index=True)


def draw(bars: pd.DataFrame) -> Figure:
    """Draw one panel per relation, the corpora one below the other."""
    corpora = style.by(bars, "corpus")
    rows = [-(-corpus["relation"].nunique() // PANELS) for corpus in corpora.values()]
    heights = [1.45 * count + 0.25 for count in rows]
    drawn = Figure(figsize=(style.DOUBLE, sum(heights) + 0.2), layout="constrained")
    top = bars["share"].max()
    blocks = style.blocks(drawn, list(corpora), height_ratios=heights)
    for block, corpus, count in zip(blocks, corpora.values(), rows, strict=True):
        block.supxlabel("position of the dependent relative to its head, words")
        panels = block.subplots(count, PANELS, sharey=True, squeeze=False)
        for axes in panels[:, 0]:
            axes.set_ylabel("share of arcs")
        relations = style.by(corpus, "relation")
        for axes, (relation, relation_bars) in zip(panels.flat, relations.items(), strict=False):
            _panel(axes, relation, relation_bars, top=1.0 if pd.isna(top) else 1.15 * top)
        for axes in panels.flat[len(relations) :]:
            axes.set_axis_off()
    label = "most frequent position: the baseline of figure 4 and table 1"
    drawn.legend([Patch(facecolor=MOST_FREQUENT)], [label], loc="outside lower center", handlelength=1.2)
    return drawn


def _panel(axes: Axes, relation: str, bars: pd.DataFrame, *, top: float) -> None:
    arcs = bars["arcs"].iloc[0]
    title = f"{relation}, {direction_label(relation, 'head_to_dependent')} (n = {arcs:,})"
    axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.15))
    axes.set(xlim=(-REACH - 0.7, REACH + 0.7), ylim=(0, top))
    axes.set_xticks([-REACH, -3, -1, 1, 3, REACH], [f"≤−{REACH}", "−3", "−1", "1", "3", f"≥{REACH}"])
    if not arcs:
        axes.text(0.5, 0.5, "no arcs", ha="center", va="center", transform=axes.transAxes)
        return
    axes.grid(axis="y")
    colours = [MOST_FREQUENT if baseline else COMMON for baseline in bars["baseline"]]
    axes.bar(bars["position"], bars["share"], width=0.8, color=colours)
    for bar in bars[bars["baseline"]].itertuples():
        place = {"xy": (bar.position, bar.share), "xytext": (0, 1.5), "textcoords": "offset points"}
        axes.annotate(f"{bar.share:.0%}", ha="center", **place)
