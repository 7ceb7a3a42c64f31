"""Drift of functions: which head carries each function as heads are removed, and how well it does so (section 6.2.2).

One panel per scope of pruning, one row per function, one column per model from the baseline to the smallest. A cell names the
head with the highest score of the function, as layer-head, and the score: for a relation the margin over the best fixed offset,
otherwise the share of argmaxes at one relative position, on the diagonal, or on the rarest token. Heads keep their numbers when
others are removed, so a name that stays the same is a function that stays with its head.
"""

from itertools import product
from math import nan

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from specialized_heads.heads.functions import BESIDE, OF_TOKENS
from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack
from specialized_heads.report.voita import paper, sweep

COLUMNS = ["corpus", "scope", "model", "lam", "target_heads", "seed", "heads", "type", "function", "layer", "head"]
COLUMNS += ["measure", "score", "labelled", "carrier"]
SAME, MOVED, NONE = "the same head", "another head", "no head has a score"
LOST = "another head, the first one is pruned"
ROW = 0.2  # inches: height of a line in a cell
MOST = 8  # columns with the name and the score of a head beside each other
SHARE, MARGIN = "share of argmaxes", "margin over the best fixed offset"
GREENS = LinearSegmentedColormap.from_list("shares", ["#F4F7F2", "#A8CDA0", "#2F7D4F"])
SCALES = {
    SHARE: ScalarMappable(Normalize(0, 1), GREENS),
    MARGIN: ScalarMappable(Normalize(-0.4, 0.4), matplotlib.colormaps["PRGn"]),
}
EDGES = {
    SAME: {"edgecolor": "#777777", "linewidth": 0.6},
    MOVED: {"edgecolor": "#332288", "linewidth": 1.1, "linestyle": "--"},
    LOST: {"edgecolor": "#C2410C", "linewidth": 1.4},
}
# Attention type, row, column of the score, label of such heads, and preferred offsets that count. In the decoder offset 0 is the
# token generated last.
POSITIONS = [
    ("encoder", "positional −1", "positional_share", "positional", (-1,)),
    ("encoder", "positional 0", "positional_share", "positional", (0,)),
    ("encoder", "positional +1", "positional_share", "positional", (1,)),
    ("decoder", "positional 0, decoder", "positional_share", "positional", (0,)),
    ("decoder", "positional −1, decoder", "positional_share", "positional", (-1,)),
    ("cross", "diagonal, cross", "positional_share", "diagonal", range(-BESIDE, BESIDE + 1)),
]


def numbers(tables: Tables) -> pd.DataFrame:
    """The best head for each function in each model.

    One row per scope of pruning, model (the baseline first) and function; heads: left, of the types that the scope prunes;
    measure: what the score is; labelled: whether the head has the function; carrier: whether it is the
    baseline's head. A function without a score in any model, such as a relation without arcs, is left out.
    """
    corpus = tables.swept("encoder", "all")
    relations = list(tables.of(corpus).relations["relation"].unique())
    frames = []
    for scope in style.SCOPES:
        models = {model["model"]: (model, heads) for model, heads in tables.each(corpus, scope)}
        if len(models) < 2:
            continue
        types = ["encoder"] if scope == "encoder" else list(style.TYPES)
        rows = []
        for model, own in models.values():
            shared = {key: model[key] for key in ("corpus", "model", "lam", "target_heads", "seed")}
            shared |= {"scope": scope, "heads": int(own["type"].isin(types).sum()), "whole": not model["scope"]}
            rows += [shared | carrier for carrier in _carriers(own, types, relations)]
        frame = pd.DataFrame(rows)
        first = frame[frame["whole"]].set_index("function")
        cells = frame.to_dict("records")
        frame["carrier"] = [_moved(cell, first.loc[cell["function"]], models[cell["model"]][1]) for cell in cells]
        frame = frame[frame.groupby("function")["score"].transform("count") > 0]
        frames.append(sweep.in_order(frame, {"heads": False, "whole": False, **sweep.WEAKEST_FIRST}))
    return stack(frames, COLUMNS).astype({"layer": "Int64", "head": "Int64"})


def _carriers(table: pd.DataFrame, types: list[str], relations: list[str]) -> list[dict[str, object]]:
    """The best head of one model for each function."""
    functions = [row for row in POSITIONS if row[0] == "encoder"]
    functions += [("encoder", function.name, function.score, function.name, None) for function in OF_TOKENS]
    for relation, direction in product(relations, DIRECTIONS):
        column, name = f"{relation}_{direction}", f"{relation} {paper.direction_label(relation, direction)}"
        functions.append(("encoder", name, f"{column}_margin", column, None))
    functions += [row for row in POSITIONS if row[0] != "encoder" and row[0] in types]
    rows = []
    for kind, function, column, label, offsets in functions:
        known = table[(table["type"] == kind) & table[column].notna()]
        if offsets is not None:
            known = known[known["positional_offset"].isin(offsets)]
        measure = MARGIN if column.endswith("_margin") else SHARE
        row = {"type": kind, "function": function, "measure": measure, "score": nan, "labelled": False}
        if len(known):
            best = known.loc[known[column].astype(float).idxmax()]
            labels = [*best["functions"], *(best["relations"] if kind == "encoder" else [])]
            row |= {"layer": best["layer"], "head": best["head"], "score": best[column], "labelled": label in labels}
        rows.append(row)
    return rows


def _moved(row: dict, first: pd.Series, heads: pd.DataFrame) -> str:
    """What became of the baseline's head for a function, given the heads of the model that this row is about."""
    if pd.isna(row["score"]):
        return NONE
    if (row["layer"], row["head"]) == (first["layer"], first["head"]):
        return SAME
    left = (heads["type"] == row["type"]) & (heads["layer"] == first["layer"]) & (heads["head"] == first["head"])
    return MOVED if pd.isna(first["score"]) or left.any() else LOST


def draw(cells: pd.DataFrame) -> Figure:
    """Draw one panel per scope, one below the other."""
    scopes = style.by(cells, "scope")
    # Few columns keep the width of a cell instead of stretching over the page.
    columns = max([5, *(scope["model"].nunique() for scope in scopes.values())])
    row = ROW if columns <= MOST else 1.4 * ROW
    heights = [row * scope["function"].nunique() + 0.75 for scope in scopes.values()]
    drawn = Figure(figsize=(style.DOUBLE, sum(heights) + 1.6), layout="constrained")
    title = f"{cells['corpus'].iloc[0]}: the best head for each function"
    drawn.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
    grid = drawn.subplots(len(scopes), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (scope, rows) in zip(grid, scopes.items(), strict=True):
        _panel(axes, rows, scope=scope, columns=columns)
    for label, scale in SCALES.items():
        style.colour_bar(drawn, scale, grid, label, location="bottom", aspect=60, pad=0.02)
    handles = [Rectangle((0, 0), 1, 1, facecolor="white", **edge) for edge in EDGES.values()]
    handles.append(Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="#CCCCCC", hatch="//////", linewidth=0))
    names = ["the baseline's head", MOVED, "another head, the baseline's is pruned", "no head"]
    heading = {"title": "bold: passes the threshold", "title_fontsize": 6.5}
    drawn.legend(handles, names, loc="outside lower center", ncols=4, **heading)
    return drawn


def _panel(axes: Axes, cells: pd.DataFrame, *, scope: str, columns: int) -> None:
    models, functions = style.by(cells, "model"), list(cells["function"].unique())
    between, characters = (": ", 12) if columns <= MOST else ("\n", 6)
    size = min(6.5, 72 * (style.DOUBLE - 1.5) / columns / (0.6 * characters))
    for x, model in enumerate(models.values()):
        for cell in model.itertuples():
            y = functions.index(cell.function)
            if pd.isna(cell.score):
                style.hatched_cell(axes, x, y, width=0.92, height=0.84)
                continue
            face = SCALES[cell.measure].to_rgba(cell.score)
            axes.add_patch(Rectangle((x - 0.46, y - 0.42), 0.92, 0.84, facecolor=face, **EDGES[cell.carrier]))
            if size >= 4.5:
                look = {"size": size, "weight": "bold" if cell.labelled else "normal"}
                look["color"] = "white" if style.is_dark(face) else "black"
                score = style.minus(f"{cell.score:{'+z' if cell.measure == MARGIN else ''}.2f}")
                text = f"{cell.layer}-{cell.head}{between}{score}"
                axes.text(x, y, text, ha="center", va="center_baseline", linespacing=1, **look)
    axes.set_xticks(range(len(models)), [sweep.column_label(model.iloc[0], columns) for model in models.values()])
    axes.set_yticks(range(len(functions)), functions)
    style.bare(axes)
    axes.tick_params(axis="x", labelsize=min(6.5, 1.25 * size))
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(len(functions) - 0.5, -0.5))
    what = "encoder heads left" if scope == "encoder" else "heads left, of all types"
    axes.set_title(f"{style.SCOPES[scope]}; below each column: {what}")
