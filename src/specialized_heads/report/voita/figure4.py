"""Figure 4: dependency scores of the encoder's heads for each relation and direction, corpus by corpus (section 5.2.2).

Every head is a dot. The best head is a marker with its 95% interval, and a ✓ where the head counts as syntactic for that
relation; a bar marks the accuracy of the most frequent relative position. The paper's best heads appear beside ours. The best
head is chosen on the sentences on which it is scored.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.voita import paper, table1
from specialized_heads.stage import heads_text

numbers = table1.accuracies
GROUPS = 8  # relations and directions per row of panels
ACROSS = 3  # columns of the legend
GOLDEN = 0.618  # spreads the dots of a column evenly, and the same way each time


def draw(scores: pd.DataFrame) -> Figure:
    """Draw one group of columns per relation and direction, one column per corpus."""
    groups = dict(list(scores.groupby(["relation", "direction"], sort=False)))
    # Colour and marker of each corpus.
    looks = {corpus: style.series(number)[:2] for number, corpus in enumerate(scores["corpus"].unique())}
    looks |= {corpus: (style.PAPER_COLOUR, marker) for corpus, marker in paper.MARKERS.items() if corpus in looks}
    names = list(groups)
    rows = [names[start : start + GROUPS] for start in range(0, len(names), GROUPS)]
    key = _key(scores, looks)
    drawn, _, panels = style.panels(len(rows), across=1, height=1.95, more_height=0.3 * -(-len(key) // ACROSS))
    for axes, row in zip(panels, rows, strict=True):
        for number, name in enumerate(row):
            columns = style.by(groups[name], "corpus")
            for slot, (corpus, look) in enumerate(looks.items()):
                if corpus in columns:
                    x = number + 0.05 + 0.9 * (slot + 0.5) / len(looks)
                    _column(axes, columns[corpus], x=x, half=0.3 / len(looks), look=look)
        labels = [f"{relation}\n{paper.direction_label(relation, direction)}" for relation, direction in row]
        axes.set_xticks([number + 0.5 for number in range(len(row))], labels)
        axes.tick_params(axis="x", length=0)
        for number in range(1, len(row)):
            axes.axvline(number, color="#CCCCCC", linewidth=0.5)
        axes.set(xlim=(0, GROUPS if len(rows) > 1 else len(row)), ylim=(0, 1), ylabel="accuracy of a head")
        axes.grid(axis="y")
    drawn.legend(handles=key, loc="outside lower center", ncols=ACROSS, handlelength=1.4)
    return drawn


def _column(axes: Axes, column: pd.DataFrame, *, x: float, half: float, look: tuple[str, str]) -> None:
    """One corpus in one group: its heads, its best head and its baseline, within `half` of `x`."""
    colour, marker = look
    if column["accuracy"].isna().all():
        axes.text(x, 0.02, "none", rotation=90, ha="center", va="bottom", size=6, color=colour)
    if column["baseline"].notna().any():
        axes.hlines(
            column["baseline"].iloc[0], x - half, x + half, color="black", linewidth=1.4, zorder=3, clip_on=False
        )
    others = column[~column["best"] & column["accuracy"].notna()]
    spread = [x + half * (2 * ((place * GOLDEN) % 1) - 1) for place in range(len(others))]
    axes.scatter(spread, others["accuracy"], s=2.5, color=colour, alpha=0.35, linewidths=0)
    for best in column[column["best"]].itertuples():
        if pd.notna(best.low):
            axes.vlines(x, best.low, best.high, color=colour, linewidth=0.9, zorder=4)
        axes.plot(x, best.accuracy, marker=marker, color=colour, zorder=5, linestyle="none", markersize=4.5)
        if best.syntactic:
            place = {"xy": (x, best.high), "xytext": (0, 1), "textcoords": "offset points", "ha": "center"}
            axes.annotate("✓", size=6, color=colour, **place)


def _key(scores: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> list[Line2D]:
    """The entries of the legend, with their labels in lines."""
    handles = []
    for corpus, (colour, marker) in looks.items():
        heads = scores.loc[scores["corpus"] == corpus, ["layer", "head"]].dropna().drop_duplicates()
        label = corpus if corpus in paper.MARKERS else f"{corpus} ({heads_text(len(heads))})"
        handles.append(style.marker_key(label, color=colour, marker=marker, markerfacecolor=colour))
    grey = {"color": style.PAPER_COLOUR}
    handles += [
        Line2D([], [], linestyle="none", label="✓: the best head (on these sentences) is syntactic"),
        style.marker_key("95% bootstrap interval", marker="|", markersize=7, **grey),
        Line2D([], [], color="black", linewidth=1.4, label="baseline: most frequent position"),
        style.marker_key("other heads", markersize=1.8, alpha=0.6, markerfacecolor=None, **grey),
    ]
    for handle in handles:
        handle.set_label(style.wrap(handle.get_label(), inches=style.DOUBLE / ACROSS - 0.15, size=6.5))
    return handles
