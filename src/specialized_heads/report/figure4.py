"""Figure 4: dependency scores of the encoder's heads for each relation and direction, corpus by corpus (section 5.2.2).

Every head is a dot; the best one is a marker with its 95% interval, filled where the head counts as syntactic for that
relation; a bar marks the accuracy of the most frequent relative position. Beside ours stand the paper's best heads. The best
head is chosen on the sentences that it is scored on.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import paper, style
from specialized_heads.report.dependency import accuracies
from specialized_heads.report.inputs import HEAD_COLUMNS, RELATION_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

GROUPS = 8  # relations and directions per row of panels
GOLDEN = 0.618  # spreads the dots of a column evenly and the same way each time


def draw(scores: pd.DataFrame) -> Figure:
    """Draw what `accuracies` returns, one group of columns per relation and direction, one column per corpus."""
    groups = list(scores[["relation", "direction"]].drop_duplicates().itertuples(index=False, name=None))
    corpora = list(scores["corpus"].unique())
    rows = [groups[start : start + GROUPS] for start in range(0, len(groups), GROUPS)]
    legend_rows = -(-(len(corpora) + 4) // 3)
    figure = Figure(figsize=(style.DOUBLE, 1.95 * len(rows) + 0.15 * legend_rows), layout="constrained")
    for axes, row in zip(figure.subplots(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        for number, (relation, direction) in enumerate(row):
            here = scores[(scores["relation"] == relation) & (scores["direction"] == direction)]
            for slot, corpus in enumerate(corpora):
                column = here[here["corpus"] == corpus]
                if len(column):
                    x = number + 0.05 + 0.9 * (slot + 0.5) / len(corpora)
                    _column(axes, column, x=x, half=0.3 / len(corpora), look=_look(corpora, corpus))
        labels = [f"{relation}\n{paper.direction_label(relation, direction)}" for relation, direction in row]
        axes.set_xticks([number + 0.5 for number in range(len(row))], labels)
        axes.tick_params(axis="x", length=0)
        for number in range(1, len(row)):
            axes.axvline(number, color="#CCCCCC", linewidth=0.5)
        axes.set(xlim=(0, GROUPS if len(rows) > 1 else len(row)), ylim=(0, 1), ylabel="accuracy of a head")
        axes.grid(axis="y")
    _legend(figure, scores, corpora)
    return figure


def _look(corpora: list[str], corpus: str) -> tuple[str, str]:
    """Colour and marker of a corpus."""
    if corpus in paper.MARKERS:
        return style.PAPER_COLOUR, paper.MARKERS[corpus]
    look = style.series(corpora.index(corpus))
    return look.colour, look.marker


def _column(axes: Axes, column: pd.DataFrame, *, x: float, half: float, look: tuple[str, str]) -> None:
    """One corpus in one group: its heads, its best head, its baseline, within `half` of `x`."""
    colour, marker = look
    if column["accuracy"].isna().all():
        axes.text(x, 0.02, "none", rotation=90, ha="center", va="bottom", size=6, color=colour)
    if column["baseline"].notna().any():
        axes.hlines(column["baseline"].iloc[0], x - half, x + half, color="black", linewidth=1.4, zorder=3)
    others = column[~column["best"] & column["accuracy"].notna()]
    spread = [x + half * (2 * ((place * GOLDEN) % 1) - 1) for place in range(len(others))]
    axes.scatter(spread, others["accuracy"], s=2.5, color=colour, alpha=0.35, linewidths=0)
    for best in column[column["best"]].to_dict("records"):
        value = best["accuracy"]
        if pd.notna(best["low"]):
            axes.vlines(x, best["low"], best["high"], color=colour, linewidth=0.9, zorder=4)
        fill = colour if best["syntactic"] or best["reported"] else "white"
        axes.plot(
            x, value, marker=marker, color=colour, markerfacecolor=fill, markersize=4.5, zorder=5, linestyle="none"
        )


def _legend(figure: Figure, scores: pd.DataFrame, corpora: list[str]) -> None:
    handles, labels = [], []
    for corpus in corpora:
        colour, marker = _look(corpora, corpus)
        heads = scores.loc[scores["corpus"] == corpus, ["layer", "head"]].dropna().drop_duplicates()
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="none"))
        labels.append(corpus if corpus in paper.MARKERS else f"{corpus} ({len(heads)} heads)")
    handles.append(Line2D([], [], color="#555555", marker="o", markerfacecolor="white", linestyle="none"))
    handles.append(Line2D([], [], color="#555555", marker="|", markersize=7, linestyle="none"))
    handles.append(Line2D([], [], color="black", linewidth=1.4))
    handles.append(Line2D([], [], color="#555555", marker="o", markersize=1.8, alpha=0.6, linestyle="none"))
    labels += ["hollow: best head (on these sentences) is not syntactic", "95% bootstrap interval"]
    labels += ["baseline: most frequent position", "other heads"]
    labels = [style.wrap(label, inches=style.DOUBLE / 3 - 0.15, size=6.5) for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=1.4)


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads", "relations"])
    titles = Titles.model_validate(args.settings).titles
    heads = read_all(args.heads, titles, columns=HEAD_COLUMNS)
    scores = accuracies(heads, read_all(args.relations, titles, columns=RELATION_COLUMNS))
    save_figure(args.output, scores, lambda: draw(scores))


if __name__ == "__main__":
    run(main)
