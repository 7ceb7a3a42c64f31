"""The study at a glance: what pruning costs in BLEU, beside the functions of the heads that are
left (sections 6.2 and 6.3).

Left, the models pruned with each scope over the share that is left of the heads that can go, the
encoder's or all: the difference in BLEU from the reference, as in figure 7; a filled marker differs
from the reference at p < 0.05, and a grey square has undecided gates. The paper's models
(section 6.2.1, table 2) are beside ours, against their baselines and in the colours of the two
scopes. Right, one row per model of the first seed: its heads by attention type, coloured by
function, in frames as long as the unpruned model has heads.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from specialized_heads.model.architecture import SCOPES
from specialized_heads.report import paper, style, sweep
from specialized_heads.report.claims.evidence import MODEL
from specialized_heads.report.data import Tables, stack, with_ends

NONE = "none found"
COLOURS = style.FUNCTIONS | {"diagonal": style.FUNCTIONS["positional"]}
ORDER = [
    "positional",
    "diagonal",
    *(name for name in style.FUNCTIONS if name not in ("positional", "other")),
]
LOOKS = {"encoder": style.series(0), "all": style.series(2)}
ROW, GAP = 0.17, 0.05  # inches of a row; space between attention types, as a share of all heads
POINTS = ["corpus", "scope", "kind", "lam", "target_heads", "seeds", "seed", "decided", "retained"]
POINTS += with_ends("share", "bleu", "difference")
POINTS += ["difference_lowest", "difference_highest", "p_value", "reference"]


def numbers(tables: Tables) -> pd.DataFrame:
    """The rows of both panels, of the first corpus that is pruned."""
    corpus = tables.swept("encoder", "all")
    scores = tables.of(corpus).models
    panels = {
        "left": points(scores, corpus),
        "right": survivors(tables, corpus).assign(corpus=corpus),
    }
    return pd.concat(
        [rows.assign(panel=panel) for panel, rows in panels.items()], ignore_index=True
    )


def points(scores: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """The left panel: one row per scope and target (`sweep.costs`, whose heads are `retained`),
    then the paper's models."""
    frames = [sweep.costs(scores, scope=scope).assign(corpus=corpus) for scope in LOOKS]
    frames = [points.rename(columns={"heads": "retained"}) for points in frames]
    rows = [("encoder", row.corpus, row.heads, -row.loss) for row in paper.FIGURE7]
    rows += [("all", row.corpus, row.heads, row.difference) for row in paper.TABLE2]
    reported = pd.DataFrame(rows, columns=["scope", "corpus", "retained", "difference"])
    whole = reported["scope"].map(lambda scope: len(SCOPES[scope]) * paper.HEADS_PER_TYPE)
    reported = reported.assign(
        share=reported["retained"] / whole, kind="reported", reference="baseline"
    )
    return stack([*frames, reported] if any(map(len, frames)) else [], POINTS)


def survivors(tables: Tables, corpus: str) -> pd.DataFrame:
    """The right panel: numbers of heads by model (scope "": the baseline), attention type and
    functions, with the model's BLEU.

    Attention types without heads have one row, of 0 heads.
    """
    rows = []
    for model, table in tables.each(corpus, *LOOKS):
        for kind in style.TYPES:
            functions = table.loc[table["type"] == kind, "functions"]
            counts = functions.map(
                lambda names: "; ".join(sorted(names, key=ORDER.index)) or NONE
            ).value_counts()
            for names in sorted(counts.index, key=_place) or [NONE]:
                rows.append(
                    model | {"type": kind, "functions": names, "heads": int(counts.get(names, 0))}
                )
    return pd.DataFrame(rows, columns=[*MODEL, "type", "functions", "heads", "bleu"])


def _place(functions: str) -> list[int]:
    """Sort key of heads with these functions: those with several follow those with the first of
    them alone."""
    return (
        [len(ORDER)] if functions == NONE else [ORDER.index(name) for name in functions.split("; ")]
    )


def draw(rows: pd.DataFrame) -> Figure:
    curve, heads = (rows[rows["panel"] == panel] for panel in ("left", "right"))
    heads = heads.astype({"heads": int, "seed": int})
    if curve.empty:
        return style.nothing()
    models = list(heads.groupby(MODEL, dropna=False, sort=False))
    # With equally many heads, by λ.
    models.sort(
        key=lambda row: (
            ["", *LOOKS].index(row[0][0]),
            -row[1]["heads"].sum(),
            np.nan_to_num(row[0][1]),
        )
    )
    drawn = Figure(
        figsize=(style.DOUBLE, max(2.3, 1.0 + ROW * (len(models) + 2)) + 0.7), layout="constrained"
    )
    drawn.suptitle(style.wrap(rows["corpus"].iloc[0], inches=style.DOUBLE, size=8))
    left, right = drawn.subplots(1, 2, width_ratios=[1, 1.25])
    _curve(left, curve)
    _rows(right, models)
    left.set_title("What pruning costs" + sweep.seeds_note(curve, text=", mean of {} seeds"))
    right.set_title(f"What is left, and what it does (seed {heads['seed'].iloc[0]})")
    marks = [
        style.key(style.Series(style.PAPER_COLOUR, mark, "none"), name)
        for name, mark in paper.MARKERS.items()
    ]
    handles = [*_key(heads), *sweep.filled_key(curve), *sweep.bars_key(curve), *sweep.key(curve)]
    style.legend(drawn, handles + marks, ncols=3)
    return drawn


def _curve(axes: Axes, curve: pd.DataFrame) -> None:
    """Differences against the heads that are left. The rows beside it name the two series."""
    scopes = style.by(curve[curve["kind"] != "reported"], "scope")
    axes.axhline(0, **style.REFERENCE)
    names = {scope: sweep.reference_text(own) for scope, own in scopes.items()}
    text = "\n".join(f"{scope}: {name}" for scope, name in names.items())
    if len(set(names.values())) == 1:
        text = names.popitem()[1]
    place = {"transform": axes.transAxes, "ha": "right", "va": "top", "color": style.PAPER_COLOUR}
    place["bbox"] = style.BEHIND_TEXT
    axes.text(0.99, 0.99, f"reference\n{text}", size=6.5, **place)
    for scope, points_of_scope in scopes.items():
        for series, look in sweep.split(points_of_scope, LOOKS[scope]):
            sweep.line(axes, series.iloc[::-1], x="share", y="difference", look=look)
    reported = curve[(curve["kind"] == "reported") & curve["scope"].isin(list(scopes))]
    for point in reported.itertuples():
        look = {"marker": paper.MARKERS[point.corpus], "color": LOOKS[point.scope].colour}
        axes.plot(point.share, point.difference, markersize=5, **look)
    style.share_axis(axes, "the prunable heads", ylabel="change in BLEU")
    sweep.widen(axes)
    axes.set_ylim(top=axes.get_ylim()[1] + 0.12 * np.ptp(axes.get_ylim()))  # room for the text


def _rows(axes: Axes, models: list[tuple[tuple, pd.DataFrame]]) -> None:
    """One row per model: a frame per attention type, filled from the left with the heads that are
    left."""
    whole = models[0][1].groupby("type", sort=False)["heads"].sum()
    total = whole.sum()
    starts = whole.cumsum() - whole + GAP * total * pd.Series(range(len(whole)), index=whole.index)
    # right ends of the two columns of numbers
    columns = [(1 + 2 * GAP + share) * total for share in (0.22, 0.37)]
    for kind, x in starts.items():
        axes.text(x + whole[kind] / 2, -0.62, kind, size=6.5, ha="center", va="bottom")
    for x, text in zip(columns, ("heads", "BLEU"), strict=True):
        axes.text(x, -0.62, text, size=6.5, ha="right", va="bottom")
    heights, y, above = [], -1.0, ""
    for (scope, *_), rows in models:
        y += 1.0
        if scope != above:
            y, above, look = y + 1.0, scope, LOOKS[scope]
            axes.plot(0.02 * total, y - 0.8, color=look.colour, marker=look.marker)
            name = {"size": 6.5, "va": "center_baseline", "color": look.colour}
            axes.text(0.05 * total, y - 0.8, style.SCOPES[scope], **name)
        for kind, cells in rows[rows["type"].map(whole) > 0].groupby("type", sort=False):
            corner = starts[kind], y - 0.38
            axes.add_patch(
                Rectangle(corner, whole[kind], 0.76, fill=False, edgecolor="#BBBBBB", linewidth=0.6)
            )
            _heads(axes, cells, left=starts[kind], bottom=y - 0.38)
        pruned = list(SCOPES[scope]) if scope else list(style.TYPES)
        heads = (
            f"{rows.loc[rows['type'].isin(pruned), 'heads'].sum()} of "
            f"{whole.reindex(pruned).sum():.0f}"
        )
        for x, text in zip(columns, (heads, f"{rows['bleu'].iloc[0]:.1f}"), strict=True):
            axes.text(x, y, text, size=6.5, va="center_baseline", ha="right")
        heights.append(y)
    labels = [
        sweep.target(lam, asked) if scope else "baseline" for (scope, lam, asked, _), _ in models
    ]
    axes.set_yticks(heights, labels)
    axes.set(xlim=(-0.01 * total, columns[-1]), ylim=(y + 0.6, -1.3), xticks=[])
    style.bare(axes)


def _heads(axes: Axes, cells: pd.DataFrame, *, left: float, bottom: float) -> None:
    """The heads of one type, each one unit wide; heads with several functions have all their fills,
    one above the other."""
    for functions, heads in cells[["functions", "heads"]].itertuples(index=False):
        names = ["other"] if functions == NONE else functions.split("; ")
        height = 0.76 / len(names)
        for place, name in enumerate(names):
            corner = left, bottom + place * height
            axes.add_patch(
                Rectangle(
                    corner, heads, height, edgecolor="#FFFFFFB0", linewidth=0, **COLOURS[name]
                )
            )
        left += heads


def _key(heads: pd.DataFrame) -> list[Patch]:
    """Legend of the functions that some heads have."""
    found = set("; ".join(heads["functions"]).split("; "))
    labels = {name: name for name in ORDER} | {NONE: "no function found"}
    return [
        Patch(label=label, edgecolor="white", linewidth=0, **COLOURS.get(name, COLOURS["other"]))
        for name, label in labels.items()
        if name in found
    ] + [Patch(facecolor="white", edgecolor="#BBBBBB", linewidth=0.6, label="pruned")]
