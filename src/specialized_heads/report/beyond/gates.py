"""Gates during pruning: the probability that each head's gate is open, from the first update to the last.

A panel is one pruned model and one attention type; a row of cells is a head, grouped by layers, and updates run to the right. A
column of panels is a λ or a number of heads. With a target number of heads the gates become constants before the end, which shows
as saturated colours.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.data import Tables, first_seed
from specialized_heads.report.voita import sweep

MOST = 5  # panels beside each other
SCOPES = {"encoder": "encoder only", "all": "all types"}
COLUMNS = ["corpus", "scope", "lam", "target_heads", "type", "layer", "head", "update", "p_open"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per gate and record of the log of a model's training, with P(open); of the first corpus or task that is pruned."""
    logs = first_seed(tables.logs[tables.logs["kind"] == "pruned"])
    logs = logs[logs["corpus"] == logs["corpus"].iloc[0]] if len(logs) else logs
    gates = [
        [
            record["corpus"],
            record["scope"],
            record["lam"],
            record["target_heads"],
            kind,
            layer,
            head,
            record["update"],
            p_open,
        ]
        for record in logs.to_dict("records")
        for kind in style.TYPES
        if isinstance(record.get(f"open_{kind}"), list | np.ndarray)
        for layer, values in enumerate(record[f"open_{kind}"], start=1)
        for head, p_open in enumerate(values, start=1)
    ]
    return pd.DataFrame(gates, columns=COLUMNS).astype({"lam": float, "target_heads": "Int64"})


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per attention type and model, at most `MOST` models in a row, the scopes one below the other."""
    if table.empty:
        return style.message_figure(f"Gates: {sweep.NO_PRUNED}", width=style.DOUBLE)
    blocks, notes = [], []
    for scope, models in style.by(table, "scope").items():
        for kind, gates in style.by(models, "type").items():
            ordered = sweep.in_order(gates, sweep.WEAKEST_FIRST)
            panels = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
            blocks.append((scope, kind, [panels[place] for place in style.evenly(len(panels), most=MOST)]))
        if len(panels) > MOST:
            notes.append(f"{SCOPES[scope]}: {MOST} of {len(panels)} models shown")
    tallest = max(panel.groupby(["layer", "head"]).ngroups for *_, panels in blocks for _, panel in panels)
    drawn = Figure(figsize=(style.DOUBLE, 0.7 + len(blocks) * max(1.35, 0.75 + 0.02 * tallest)), layout="constrained")
    headline = "; ".join([f"{table['corpus'].iloc[0]}: gates during pruning", *notes])
    drawn.suptitle(style.wrap(headline, inches=style.DOUBLE, size=8))
    grid = drawn.subplots(len(blocks), max(len(panels) for *_, panels in blocks), squeeze=False)
    for (scope, kind, panels), line in zip(blocks, grid, strict=True):
        for axes in line[len(panels) :]:
            axes.set_axis_off()
        for axes, ((lam, asked), panel) in zip(line, panels, strict=False):
            mesh = _panel(axes, panel)
            axes.set_title(sweep.target(lam, asked), size=7)
            axes.tick_params(labelleft=axes is line[0])
        name = style.wrap(style.TYPES[kind][0], inches=0.9, size=6.5)
        line[0].set_ylabel(f"{name}\n({SCOPES[scope]})\nlayer", size=6.5)
    style.label_lowest(grid, "update")
    drawn.colorbar(mesh, ax=grid, location="bottom", shrink=0.3, aspect=30, label="P(gate is open)")
    return drawn


def _panel(axes: Axes, panel: pd.DataFrame) -> QuadMesh:
    """The cells of one model and type: heads downwards by layer, updates to the right."""
    cells = panel.pivot_table(index=["layer", "head"], columns="update", values="p_open")
    # A record describes the gates at its update; its cell reaches back to the record before.
    edges = np.concatenate([[0], cells.columns.to_numpy()])
    mesh = axes.pcolormesh(edges, np.arange(len(cells) + 1), cells.to_numpy(), vmin=0, vmax=1, cmap="cividis")
    mesh.set_rasterized(True)
    sizes = cells.groupby(level="layer").size()
    ends = sizes.cumsum().to_numpy()
    axes.hlines(ends[:-1], 0, edges[-1], color="white", linewidth=0.8)
    axes.set_yticks(ends - sizes.to_numpy() / 2, [str(layer) for layer in sizes.index])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.spines[["left", "bottom"]].set_visible(False)
    return mesh
