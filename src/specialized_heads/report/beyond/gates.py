"""Gates during pruning: the probability that each head's gate is open, from the first update to the last.

A panel is one pruned model and one attention type; a row of cells is a head, grouped by layers, and updates run to the right. A
marker beside a row is a function of the head before pruning. The bar above a panel is the choosing phase: the updates between
which gates close or open again (P(open) crosses 0.1), as far as the records tell. "Undecided" counts the gates that are
neither closed nor fully open with probability 0.9 when the heads are chosen: at the end or, with a target number of heads, where
the gates become constants, which shows as saturated colours.
"""

from itertools import count
from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import expit, logit

from specialized_heads.heads.functions import FUNCTIONS
from specialized_heads.model.gates import BETA, HIGH, LOW
from specialized_heads.report import style
from specialized_heads.report.claims.of_scores import CLOSED
from specialized_heads.report.data import Tables, first_seed
from specialized_heads.report.voita import sweep

MOST = 6  # panels beside each other
FULLY_OPEN = expit(logit(1 - CLOSED) + 2 * BETA * log(HIGH / -LOW))  # P(open) of a gate that is 1 with probability 0.9
ROW = 0.025  # inches of a gate
CHOICE = {"color": "black", "linewidth": 2.0, "solid_capstyle": "butt"}
COLUMNS = ["corpus", "scope", "lam", "target_heads", "type", "layer", "head", "update", "p_open", "functions"]
LOOKS = {
    each.name: {"marker": look.marker, "color": style.FUNCTIONS[each.name]["facecolor"]}
    for each, look in zip(FUNCTIONS, style.SERIES)
}
ALIAS = {"diagonal": "positional"}  # what is a diagonal in cross-attention is a position elsewhere


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per gate and record of the log of a model's training, with P(open); of the first corpus or task that is pruned.

    functions: of the head in the baseline.
    """
    logs = first_seed(tables.logs[tables.logs["kind"] == "pruned"])
    logs = logs[logs["corpus"] == logs["corpus"].iloc[0]] if len(logs) else logs
    model = ["corpus", "scope", "lam", "target_heads"]
    heads = tables.heads[(tables.heads["kind"] == "baseline") & tables.heads["seed"].isin(logs["seed"])]
    heads = heads.assign(functions=heads["functions"].map("; ".join))[["corpus", "type", "layer", "head", "functions"]]
    known = heads.groupby(["corpus", "type", "layer"])["head"].agg(list).to_dict()  # a given baseline may lack some
    gates = [
        [*(record[key] for key in model), kind, layer, head, record["update"], p_open]
        for record in logs.to_dict("records")
        for kind in style.TYPES
        if isinstance(record.get(f"open_{kind}"), list | np.ndarray)
        for layer, values in enumerate(record[f"open_{kind}"], start=1)
        for head, p_open in zip(known.get((record["corpus"], kind, layer), count(1)), values, strict=False)
    ]
    table = pd.DataFrame(gates, columns=COLUMNS[:-1]).astype({"lam": float, "target_heads": "Int64"})
    return table.merge(heads, "left").fillna({"functions": ""})


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per attention type and model, at most `MOST` models in a row, the scopes one below the other."""
    blocks, notes = [], []
    for scope, models in style.by(table, "scope").items():
        for kind, gates in style.by(models, "type").items():
            ordered = sweep.in_order(gates, sweep.WEAKEST_FIRST)
            panels = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
            blocks.append((scope, kind, [panels[place] for place in style.evenly(len(panels), most=MOST)]))
        if len(panels) > MOST:
            notes.append(f"{style.SCOPES[scope]}: {MOST} of {len(panels)} models shown")
    rows = [max(panel.groupby(["layer", "head"]).ngroups for _, panel in panels) for *_, panels in blocks]
    heights = [0.9 + max(0.4, ROW * heads) for heads in rows]
    drawn = Figure(figsize=(style.DOUBLE, 0.9 + sum(heights)), layout="constrained")
    headline = "; ".join([f"{table['corpus'].iloc[0]}: gates during pruning", *notes])
    drawn.suptitle(style.wrap(headline, inches=style.DOUBLE, size=8))
    across = max(len(panels) for *_, panels in blocks)
    grid = drawn.subplots(len(blocks), across, squeeze=False, height_ratios=heights)
    for (scope, kind, panels), line in zip(blocks, grid, strict=True):
        for axes in line[len(panels) :]:
            axes.set_axis_off()
        for axes, ((lam, asked), panel) in zip(line, panels, strict=False):
            cells = panel.pivot_table(index=["layer", "head"], columns="update", values="p_open")
            functions = panel.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])["functions"]
            mesh = _panel(axes, cells, functions.reindex(cells.index))
            axes.set_title(sweep.target(lam, asked) + _choice(axes, cells), size=6.5)
            axes.tick_params(labelleft=axes is line[0])
        name = f"{style.TYPES[kind][0]} ({style.SCOPES[scope]})"
        line[0].set_ylabel(f"{style.wrap(name, inches=0.9, size=6.5)}\nlayer", size=6.5)
    style.label_lowest(grid, "update")
    drawn.colorbar(mesh, ax=grid, location="bottom", pad=0.02, shrink=0.3, aspect=30, label="P(gate is open)")
    found = {ALIAS.get(name, name) for names in table["functions"].unique() for name in names.split("; ")}
    present = {name: look for name, look in LOOKS.items() if name in found}
    handles = [style.marker_key(name, markerfacecolor=look["color"], **look) for name, look in present.items()]
    handles.append(Line2D([], [], label="choosing phase", **CHOICE))
    drawn.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return drawn


def _panel(axes: Axes, cells: pd.DataFrame, functions: pd.Series) -> QuadMesh:
    """P(open) of one model and type: heads downwards by layer, updates to the right."""
    # A record describes the gates at its update; its cell reaches back to the record before.
    edges = np.concatenate([[0], cells.columns.to_numpy()])
    mesh = axes.pcolormesh(edges, np.arange(len(cells) + 1), cells.to_numpy(), vmin=0, vmax=1, cmap="cividis")
    mesh.set_rasterized(True)
    sizes = cells.groupby(level="layer").size()
    ends = sizes.cumsum().to_numpy()
    axes.hlines(ends[:-1], 0, edges[-1], color="white", linewidth=0.8)
    axes.set_yticks(ends - sizes.to_numpy() / 2, [str(layer) for layer in sizes.index])
    axes.tick_params(axis="y", length=0, pad=7)
    axes.invert_yaxis()
    for row, names in enumerate(functions):
        for place, name in enumerate(ALIAS.get(name, name) for name in names.split("; ") if name):
            x, transform = -0.02 * (place + 1), axes.get_yaxis_transform()
            axes.plot(x, row + 0.5, clip_on=False, transform=transform, markersize=2.5, **LOOKS[name])
    axes.spines[["left", "bottom"]].set_visible(False)
    return mesh


def _choice(axes: Axes, cells: pd.DataFrame) -> str:
    """Draw the choosing phase above the cells; return the lines of the title that describe it."""
    closed = (cells < CLOSED).astype(int)
    changes = closed.diff(axis=1).fillna(closed).any()
    updates = changes.index[changes]
    # Constant gates decide nothing: the choice was made at the last record before them.
    varying = cells.columns[((cells > 0) & (cells < 1)).any()]
    deciding = cells[varying[-1]] if len(varying) else cells.iloc[:, -1]
    between = int(deciding.between(CLOSED, FULLY_OPEN).sum())
    text = f"none below {CLOSED}"
    if len(updates):
        edges = [0, *cells.columns]
        start = edges[edges.index(updates[0]) - 1]
        text = f"choice: {start}–{updates[-1]}"
        axes.plot([start, updates[-1]], [1.02, 1.02], transform=axes.get_xaxis_transform(), clip_on=False, **CHOICE)
    return f"\n{text}\nundecided: {between} of {len(cells)}"
