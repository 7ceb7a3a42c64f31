"""Gates during pruning: the probability that each head's gate is open, from the first update to the last.

A panel is one pruned model and one attention type; a row of cells is a head, grouped by layers, and updates run to the right. A
column of panels is a λ or a number of heads. Of a scope with more than `MOST` models the figure shows that many, evenly spaced,
and says so; its numbers hold all. With a target number of heads the gates become constants before the end, which shows as
saturated colours.
"""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.inputs import one_per_file, read_log
from specialized_heads.report.output import save_figure
from specialized_heads.report.voita import sweep
from specialized_heads.stage import Section, arguments, run

MOST = 5  # panels beside each other
SCOPES = {"encoder": "encoder only", "all": "all types"}
COLUMNS = ["scope", "lam", "asked", "type", "layer", "head", "update", "p_open"]


class Row(Section):
    """A pruned model, in the order of `--records`."""

    scope: str
    lam: float | None
    asked: int | None


class Settings(Section):
    title: str
    rows: list[Row]


def numbers(rows: list[Row], records: list[pd.DataFrame]) -> pd.DataFrame:
    """P(open) of each gate of each model.

    Args:
        rows: the target of each model.
        records: the log of each model's training, one row per record.

    Returns:
        one row per gate and record: scope, lam or asked (number of heads), type, layer and head (from 1), update, p_open.
    """
    gates = [
        [*row.model_dump().values(), *name.split("."), head, update, p_open]
        for row, record in zip(rows, records, strict=True)
        for update, layers in zip(record["update"], record["open"], strict=True)
        for name, values in layers.items()
        for head, p_open in enumerate(values, start=1)
    ]
    return pd.DataFrame(gates, columns=COLUMNS).astype({"lam": float, "asked": "Int64", "layer": int})


def draw(table: pd.DataFrame, *, title: str) -> Figure:
    """Draw one panel per attention type and model, at most `MOST` models in a row, the scopes one below the other."""
    if table.empty:
        return style.message_figure(f"Gates: {sweep.NO_PRUNED}", width=style.DOUBLE)
    blocks, notes = [], []
    for scope, models in style.by(table, "scope").items():
        for kind, gates in style.by(models, "type").items():
            ordered = sweep.in_order(gates, sweep.WEAKEST_FIRST)
            panels = list(ordered.groupby(["lam", "asked"], dropna=False, sort=False))
            places = np.linspace(0, len(panels) - 1, min(MOST, len(panels))).round().astype(int)
            blocks.append((scope, kind, [panels[place] for place in places]))
        if len(panels) > MOST:
            notes.append(f"{SCOPES[scope]}: {MOST} of {len(panels)} models shown")
    tallest = max(panel.groupby(["layer", "head"]).ngroups for *_, panels in blocks for _, panel in panels)
    drawn = Figure(figsize=(style.DOUBLE, 0.7 + len(blocks) * max(1.35, 0.75 + 0.02 * tallest)), layout="constrained")
    headline = "; ".join([f"{title}: gates during pruning", *notes])
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
    for column in grid.T:
        lowest = [axes for axes in column if axes.axison][-1]
        lowest.set_xlabel("update")
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


read_records = partial(read_log, column="open")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["records"])
    settings = Settings.model_validate(args.settings)
    one_per_file("rows", settings.rows, args.records)
    table = numbers(settings.rows, [read_records(path) for path in args.records])
    save_figure(args.output, table, lambda: draw(table, title=settings.title))


if __name__ == "__main__":
    run(main)
