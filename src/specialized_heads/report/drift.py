"""Drift of functions: which head carries each function as heads disappear, and how well it does (section 6.2.2).

One panel per scope of pruning, one row per function, one column per model from the baseline to the smallest. A cell names the
head that has the function's highest score, layer-head, and its colour is that score: the share of argmaxes at one relative
position, on the diagonal, or on the rarest token, or the accuracy on a relation. Heads keep their numbers when others are
removed, so a name that stays is a function that stays with its head. The best head is the best of all that are left: it need
not pass the threshold that makes it a positional, syntactic or rare-words head. One that does is printed in bold. Looking at the
previous token, at the own one and at the next one are functions of their own: a head has the one that it looks at most often.
"""

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from specialized_heads.heads.functions import BESIDE
from specialized_heads.report import paper, pruned, style, sweep
from specialized_heads.report.inputs import HEAD_COLUMNS, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.report.sweep import NO_PRUNED
from specialized_heads.stage import Section, arguments, run

COLUMNS = [
    "scope", "model", "lam", "asked", "seed", "heads", "type", "function", "layer", "head", "score", "baseline",
    "labelled", "carrier",
]  # fmt: skip
SAME, MOVED, LOST, NONE = (
    "the same head",
    "another head",
    "another head, the first one is pruned",
    "no head has a score",
)
ROW = 0.2  # inches: height of a cell
SCORES = matplotlib.colors.LinearSegmentedColormap.from_list("scores", ["#F4F7F2", "#A8CDA0", "#2F7D4F"])
# By attention type: what the rows are called, the preferred offsets that belong there, and the label of such heads. In the
# decoder offset 0 is the token generated last.
POSITIONS = {
    "encoder": {
        "positional −1": ((-1,), "positional"),
        "positional 0": ((0,), "positional"),
        "positional +1": ((1,), "positional"),
    },
    "decoder": {"positional 0, decoder": ((0,), "positional"), "positional −1, decoder": ((-1,), "positional")},
    "cross": {"diagonal, cross": (range(-BESIDE, BESIDE + 1), "diagonal")},
}


class Settings(Section):
    """What the heads files are: the models' names, in the order of the files; the corpus's title and its relations."""

    names: list[str]
    title: str
    relations: list[str]


def numbers(tables: dict[str, pd.DataFrame], *, relations: list[str]) -> pd.DataFrame:
    """The best head of every function in every model.

    Args:
        tables: per-head table by model name, see `pruned.of_name`; the baseline among them.
        relations: whose accuracies the tables hold.

    Returns:
        one row per scope (of pruning; the baseline is the first model of each), model and function: scope, model, lam, asked
        (both missing: the baseline), seed, heads (left, of the types that the scope prunes), type, function, layer, head,
        score, baseline (accuracy of the best fixed offset, for relations), labelled (whether the head has the function),
        carrier (whether it is the head that carries it in the baseline). Models by falling number of heads, functions in the
        order of the figure; a function that no model has a score for, as a relation without arcs or an offset that no head
        prefers, is left out.
    """
    rows = []
    for scope in pruned.SCOPES:
        own = {name: table for name, table in tables.items() if pruned.of_name(name).scope in ("", scope)}
        if len(own) < 2:
            continue
        types = ["encoder"] if scope == "encoder" else list(style.TYPES)
        found = []
        for name, table in own.items():
            model, heads = pruned.of_name(name), int(table["type"].isin(types).sum())
            shared = {"scope": scope, "model": name, "lam": model.lam, "asked": model.asked, "seed": model.seed}
            shared |= {"heads": heads, "whole": not model.scope}
            found += [shared | carried for carried in _carriers(table, types, relations)]
        frame = pd.DataFrame(found)
        first = frame[frame["whole"]].set_index("function")
        frame["carrier"] = [_moved(row, first.loc[row["function"]], own) for row in frame.to_dict("records")]
        frame = frame[frame.groupby("function")["score"].transform("count") > 0]
        rows.append(sweep.in_order(frame, {"heads": False, "whole": False, **sweep.WEAKEST_FIRST}))
    frame = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    return frame.reindex(columns=COLUMNS).astype({"layer": "Int64", "head": "Int64"})


def _carriers(table: pd.DataFrame, types: list[str], relations: list[str]) -> list[dict[str, object]]:
    """The best head of one model for each function."""
    positions = {
        kind: [(kind, name, "positional_share", label, offsets) for name, (offsets, label) in rows.items()]
        for kind, rows in POSITIONS.items()
    }
    functions = [*positions["encoder"], ("encoder", "rare words", "rarest", "rare words", None)]
    for relation in relations:
        for direction in ("head_to_dependent", "dependent_to_head"):
            name = f"{relation} {paper.direction_label(relation, direction)}"
            functions.append(("encoder", name, f"{relation}_{direction}", f"{relation}_{direction}", None))
    functions += [row for kind in types if kind != "encoder" for row in positions[kind]]
    rows = []
    for kind, function, column, label, offsets in functions:
        known = table[(table["type"] == kind) & table[column].notna()]
        if offsets is not None:
            known = known[known["positional_offset"].isin(offsets)]
        row = {"type": kind, "function": function, "score": float("nan"), "labelled": False}
        if len(known):
            best = known.loc[known[column].astype(float).idxmax()]
            labels = [*best["functions"], *(best["relations"] if kind == "encoder" else [])]
            row |= {"layer": best["layer"], "head": best["head"], "score": best[column], "labelled": label in labels}
            row["baseline"] = best.get(f"{column}_baseline", float("nan"))
        rows.append(row)
    return rows


def _moved(row: dict, first: pd.Series, tables: dict[str, pd.DataFrame]) -> str:
    """What became of the head that carries a function in the baseline."""
    if pd.isna(row["score"]):
        return NONE
    if (row["layer"], row["head"]) == (first["layer"], first["head"]):
        return SAME
    heads = tables[row["model"]]
    if pd.isna(first["score"]):
        return MOVED
    left = (heads["type"] == row["type"]) & (heads["layer"] == first["layer"]) & (heads["head"] == first["head"])
    return MOVED if left.any() else LOST


def draw(cells: pd.DataFrame, *, title: str) -> Figure:
    """Draw one panel per scope below each other."""
    if cells.empty:
        return style.message_figure(f"Drift of functions: {NO_PRUNED}", width=style.DOUBLE)
    scopes = dict(list(cells.groupby("scope", sort=False)))
    # Few columns keep the width of a cell instead of stretching over the page.
    columns = max([5, *(scope["model"].nunique() for scope in scopes.values())])
    heights = [ROW * scope["function"].nunique() + 0.75 for scope in scopes.values()]
    figure = Figure(figsize=(style.DOUBLE, sum(heights) + 0.75), layout="constrained")
    figure.suptitle(style.wrap(f"{title}: the head that does best at each function", inches=style.DOUBLE, size=8))
    panels = figure.subplots(len(scopes), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (scope, own) in zip(panels, scopes.items(), strict=True):
        _panel(axes, own, scope=scope, columns=columns)
    mesh = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, 1), SCORES)
    bar = figure.colorbar(mesh, ax=list(panels), pad=0.01, aspect=30, fraction=0.03)
    bar.set_label("score: share of argmaxes, or accuracy")
    bar.outline.set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, facecolor="white", **_edge(kind)) for kind in (SAME, MOVED, LOST)]
    handles.append(Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="#CCCCCC", hatch="//////", linewidth=0))
    names = ["the baseline's head", MOVED, "another head, the baseline's is pruned", "no head"]
    figure.legend(
        handles, names, loc="outside lower center", ncols=4, title="bold: passes the threshold", title_fontsize=6.5
    )
    return figure


def _edge(carrier: str) -> dict[str, object]:
    """The frame of a cell."""
    line = {SAME: ("#777777", "-", 0.6), MOVED: ("#332288", "--", 1.1), LOST: ("#C2410C", "-", 1.1)}
    colour, dash, width = line[carrier]
    return {"edgecolor": colour, "linestyle": dash, "linewidth": width}


def _panel(axes: Axes, cells: pd.DataFrame, *, scope: str, columns: int) -> None:
    models, functions = list(cells["model"].unique()), list(cells["function"].unique())
    narrow = columns > 8
    size = min(6.5, 72 * (style.DOUBLE - 1.6) / columns / 2.4)
    for cell in cells.to_dict("records"):
        x, y = models.index(cell["model"]), functions.index(cell["function"])
        if pd.isna(cell["score"]):
            corner = (x - 0.46, y - 0.42), 0.92, 0.84
            axes.add_patch(Rectangle(*corner, facecolor="white", edgecolor="#CCCCCC", hatch="////", linewidth=0))
            continue
        face = SCORES(cell["score"])
        axes.add_patch(Rectangle((x - 0.46, y - 0.42), 0.92, 0.84, facecolor=face, **_edge(cell["carrier"])))
        weight = "bold" if cell["labelled"] else "normal"
        colour = "white" if cell["score"] > 0.75 else "black"
        text = f"{cell['layer']}-{cell['head']}"
        if size >= 4.5:
            axes.text(x, y, text, size=size, ha="center", va="center_baseline", weight=weight, color=colour)
    heads = [cells.loc[cells["model"] == model].iloc[0] for model in models]
    labels = [f"{row['heads']}\n{pruned.label(row['lam'], row['asked'])}" for row in heads]
    axes.set_xticks(range(len(models)), [label.replace(" ", "\n") if narrow else label for label in labels])
    axes.set_yticks(range(len(functions)), functions)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(len(functions) - 0.5, -0.5))
    what = "encoder heads left" if scope == "encoder" else "heads left, of all types"
    axes.set_title(f"{pruned.SCOPES[scope]}; below each column: {what}")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads"])
    settings = Settings.model_validate(args.settings)
    columns = (*HEAD_COLUMNS, "positional_offset", "positional_share", "rarest")
    columns += tuple(
        f"{name}_{end}" for name in settings.relations for end in ("head_to_dependent", "dependent_to_head")
    )
    cells = numbers(read_all(args.heads, settings.names, columns=columns), relations=settings.relations)
    save_figure(args.output, cells, lambda: draw(cells, title=settings.title))


if __name__ == "__main__":
    run(main)
