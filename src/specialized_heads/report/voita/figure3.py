"""Figure 3: position of the dependent of a relation relative to its head, in words (section 5.2).

Negative positions are to the left of the head. The first and the last bar include everything farther away, so the bars of a
panel sum to one. The most frequent position is the baseline that a syntactic head has to beat.
"""

import pandas as pd
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
    frames, title = [], tables.corpora()[0]
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
    relations = style.by(bars, "relation")
    drawn, grid, panels = style.panels(len(relations), across=PANELS, height=1.45, more_height=0.45, sharey=True)
    title = f"{bars['corpus'].iloc[0]}: position of the dependent relative to its head, words"
    drawn.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
    top = bars["share"].max()
    for axes, (relation, same) in zip(panels, relations.items(), strict=True):
        title = f"{relation}, {direction_label(relation, 'head_to_dependent')} (n = {same['arcs'].iloc[0]:,})"
        axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.15))
        axes.set(xlim=(-REACH - 0.7, REACH + 0.7), ylim=(0, 1.0 if pd.isna(top) else 1.15 * top))
        axes.set_xticks([-REACH, -3, -1, 1, 3, REACH], [f"≤−{REACH}", "−3", "−1", "1", "3", f"≥{REACH}"])
        axes.grid(axis="y")
        colours = same["baseline"].map({True: MOST_FREQUENT, False: COMMON})
        labels = [f"{bar.share:.0%}" if bar.baseline else "" for bar in same.itertuples()]
        axes.bar_label(axes.bar(same["position"], same["share"], width=0.8, color=colours), labels, padding=1.5)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of arcs")
    label = "most frequent position; figure 4 and table 1 leave out arcs within a subword"
    drawn.legend([Patch(facecolor=MOST_FREQUENT)], [label], loc="outside lower center", handlelength=1.2)
    return drawn
