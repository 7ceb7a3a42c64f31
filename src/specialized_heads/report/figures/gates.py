"""Gates (section 6.1): the distribution that they are drawn from (figure 6), and how they open and
close during pruning."""

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
from specialized_heads.report import style, sweep
from specialized_heads.report.claims.of_scores import CLOSED
from specialized_heads.report.data import Tables, first_seed

LOG_ALPHAS = (-3.0, -1.0, 0.0, 1.0, 3.0)
SHOWN = 0.0  # log α of the left panel
POINTS = 401  # per curve
MOST = 6  # panels beside each other
# P(open) of a gate that is 1 with probability 0.9
FULLY_OPEN = expit(logit(1 - CLOSED) + 2 * BETA * log(HIGH / -LOW))
ROW = 0.025  # inches of a gate
CHOICE = {"color": "black", "linewidth": 2.0, "solid_capstyle": "butt"}
PRUNING_COLUMNS = [
    "corpus",
    "scope",
    "lam",
    "target_heads",
    "type",
    "layer",
    "head",
    "update",
    "p_open",
    "functions",
]
LOOKS = {
    each.name: {"marker": look.marker, "color": style.FUNCTIONS[each.name]["facecolor"]}
    for each, look in zip(FUNCTIONS, style.SERIES)
}
ALIAS = {"diagonal": "positional"}  # what is a diagonal in cross-attention is a position elsewhere


def concrete_density(s: np.ndarray, log_alpha: float) -> np.ndarray:
    """Density of the Concrete variable, s in (0, 1); P(it is at most s) is expit(β logit(s) − log
    α)."""
    below = expit(BETA * logit(s) - log_alpha)
    return BETA * below * (1 - below) / (s * (1 - s))


def stretched_density(g: np.ndarray, log_alpha: float) -> np.ndarray:
    """Density of the stretched variable, g in (-0.1, 1.1); inside (0, 1) it is the gate's own
    density."""
    return concrete_density((g - LOW) / (HIGH - LOW), log_alpha) / (HIGH - LOW)


def point_masses(log_alpha: float) -> tuple[float, float]:
    """P(g = 0) and P(g = 1)."""
    closed, at_most_open = (
        expit(BETA * logit((g - LOW) / (HIGH - LOW)) - log_alpha) for g in (0, 1)
    )
    return float(closed), float(1 - at_most_open)


def figure6_numbers(tables: Tables | None = None) -> pd.DataFrame:
    """Curves and point masses: curve (Concrete, stretched, Hard Concrete), log_alpha, x, quantity
    (density, probability), y."""
    inner = np.linspace(0, 1, POINTS)
    # The Concrete density is infinite at 0 and 1, the stretched one at its own ends; both axes end
    # below that.
    open_inner = inner[1:-1]
    stretched = LOW + (HIGH - LOW) * open_inner
    curves = [
        ("Concrete", SHOWN, open_inner, "density", concrete_density(open_inner, SHOWN)),
        ("stretched", SHOWN, stretched, "density", stretched_density(stretched, SHOWN)),
    ]
    for log_alpha in LOG_ALPHAS:
        curves.append(
            ("Hard Concrete", log_alpha, inner, "density", stretched_density(inner, log_alpha))
        )
        curves.append(
            ("Hard Concrete", log_alpha, [0.0, 1.0], "probability", point_masses(log_alpha))
        )
    columns = ["curve", "log_alpha", "x", "quantity", "y"]
    return pd.concat(
        [pd.DataFrame(dict(zip(columns, curve))) for curve in curves], ignore_index=True
    )


def figure6_draw(points: pd.DataFrame) -> Figure:
    """Figure 6: the Hard Concrete distribution of a gate (section 6.1), from its closed form; it
    reads no data.

    Left, the construction: a Concrete variable on (0, 1) is stretched to (-0.1, 1.1), and values
    outside of [0, 1] are moved to 0 and 1. Right, the effect of log α: the two point masses, as
    probabilities, and the density between them.
    """
    figure = Figure(figsize=(style.DOUBLE, 2.3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.1])
    left.suptitle("(a) construction, log α = 0")
    _construction(left.subplots(), points)
    right.suptitle("(b) Hard Concrete for several log α")
    closed, between, open_ = right.subplots(1, 3, width_ratios=[1.45, 1.8, 1.45])
    hard = points[points["curve"] == "Hard Concrete"]
    names = [style.minus(f"{value:.0f}") for value in LOG_ALPHAS]
    looks = [style.ordered(place, len(LOG_ALPHAS)) for place in range(len(LOG_ALPHAS))]
    for axes, x, title in ((closed, 0.0, "P(g = 0)"), (open_, 1.0, "P(g = 1)")):
        masses = hard.loc[(hard["quantity"] == "probability") & (hard["x"] == x), "y"]
        bars = axes.bar(names, masses, color=[look.colour for look in looks])
        axes.bar_label(bars, fmt="{:.2f}", size=5, padding=1)
        axes.set(title=title, xlabel="log α", ylabel="probability", ylim=(0, 1))
    curves = hard[hard["quantity"] == "density"].groupby("log_alpha")
    for look, name, (_, curve) in zip(looks, names, curves, strict=True):
        between.plot(
            curve["x"], curve["y"], color=look.colour, linestyle=look.line, label=f"log α = {name}"
        )
    between.set(title="0 < g < 1", xlabel="g", ylabel="density", xlim=(0, 1), ylim=(0, 1))
    right.legend(
        *between.get_legend_handles_labels(), loc="outside lower center", ncols=5, columnspacing=1.2
    )
    return figure


def _construction(axes: Axes, points: pd.DataFrame) -> None:
    for curve, look in (("Concrete", style.series(3)), ("stretched", style.series(0))):
        here = points[points["curve"] == curve]
        axes.plot(here["x"], here["y"], color=look.colour, linestyle=look.line, label=curve)
    outside = (here["x"] <= 0) | (here["x"] >= 1)
    axes.fill_between(
        here["x"], here["y"], where=outside, color=look.colour, alpha=0.3, linewidth=0
    )
    for mass, x, side in zip(point_masses(SHOWN), (0.07, 0.93), ("left", "right"), strict=True):
        axes.text(x, 1.45, f"moved to {round(x)}:\nP = {mass:.2f}", ha=side, va="center", size=6)
        axes.axvline(round(x), color="#888888", linewidth=0.5)
    axes.set(xlim=(LOW, HIGH), ylim=(0, 2.6), xlabel="value", ylabel="density")
    axes.legend(loc="upper center")


def pruning_numbers(tables: Tables) -> pd.DataFrame:
    """One row per gate and record of the log of a model's training, with P(open); of the first
    corpus or task that is pruned.

    functions: of the head in the baseline.
    """
    logs = first_seed(tables.logs[tables.logs["kind"] == "pruned"])
    logs = logs[logs["corpus"] == logs["corpus"].iloc[0]] if len(logs) else logs
    model = ["corpus", "scope", "lam", "target_heads"]
    heads = tables.heads[
        (tables.heads["kind"] == "baseline") & tables.heads["seed"].isin(logs["seed"])
    ]
    heads = heads.assign(functions=heads["functions"].map("; ".join))[
        ["corpus", "type", "layer", "head", "functions"]
    ]
    # a given baseline may lack some
    known = heads.groupby(["corpus", "type", "layer"])["head"].agg(list).to_dict()
    gates = [
        [*(record[key] for key in model), kind, layer, head, record["update"], p_open]
        for record in logs.to_dict("records")
        for kind in style.TYPES
        if isinstance(record.get(f"open_{kind}"), list | np.ndarray)
        for layer, values in enumerate(record[f"open_{kind}"], start=1)
        for head, p_open in zip(
            known.get((record["corpus"], kind, layer), count(1)), values, strict=False
        )
    ]
    table = pd.DataFrame(gates, columns=PRUNING_COLUMNS[:-1]).astype(
        {"lam": float, "target_heads": "Int64"}
    )
    return table.merge(heads, "left").fillna({"functions": ""})


def pruning_draw(table: pd.DataFrame) -> Figure:
    """Gates during pruning: the probability that each head's gate is open, from the first update to
    the last.

    A panel is one pruned model and one attention type; a row of cells is a head, grouped by layers,
    and updates run to the right. A marker beside a row is a function of the head before pruning.
    The bar above a panel is the choosing phase: the updates between which gates close or open again
    (P(open) crosses 0.1), as far as the records tell. "Undecided" counts the gates that are neither
    closed nor fully open with probability 0.9 when the heads are chosen: at the end or, with a
    target number of heads, where the gates become constants, which shows as saturated colours.
    """
    blocks, notes = [], []
    for scope, models in style.by(table, "scope").items():
        for kind, gates in style.by(models, "type").items():
            ordered = sweep.in_order(gates, sweep.WEAKEST_FIRST)
            panels = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
            blocks.append(
                (scope, kind, [panels[place] for place in style.evenly(len(panels), most=MOST)])
            )
        if len(panels) > MOST:
            notes.append(f"{style.SCOPES[scope]}: {MOST} of {len(panels)} models shown")
    rows = [
        max(panel.groupby(["layer", "head"]).ngroups for _, panel in panels)
        for *_, panels in blocks
    ]
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
            functions = panel.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])[
                "functions"
            ]
            mesh = _panel(axes, cells, functions.reindex(cells.index))
            axes.set_title(sweep.target(lam, asked) + _choice(axes, cells), size=6.5)
            axes.tick_params(labelleft=axes is line[0])
        name = f"{style.TYPES[kind][0]} ({style.SCOPES[scope]})"
        line[0].set_ylabel(f"{style.wrap(name, inches=0.9, size=6.5)}\nlayer", size=6.5)
    style.label_lowest(grid, "update")
    drawn.colorbar(
        mesh, ax=grid, location="bottom", pad=0.02, shrink=0.3, aspect=30, label="P(gate is open)"
    )
    found = {
        ALIAS.get(name, name) for names in table["functions"].unique() for name in names.split("; ")
    }
    present = {name: look for name, look in LOOKS.items() if name in found}
    handles = [
        style.marker_key(name, markerfacecolor=look["color"], **look)
        for name, look in present.items()
    ]
    handles.append(Line2D([], [], label="choosing phase", **CHOICE))
    drawn.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return drawn


def _panel(axes: Axes, cells: pd.DataFrame, functions: pd.Series) -> QuadMesh:
    """P(open) of one model and type: heads downwards by layer, updates to the right."""
    # A record describes the gates at its update; its cell reaches back to the record before.
    edges = np.concatenate([[0], cells.columns.to_numpy()])
    mesh = axes.pcolormesh(
        edges, np.arange(len(cells) + 1), cells.to_numpy(), vmin=0, vmax=1, cmap="cividis"
    )
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
            axes.plot(
                x, row + 0.5, clip_on=False, transform=transform, markersize=2.5, **LOOKS[name]
            )
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
        axes.plot(
            [start, updates[-1]],
            [1.02, 1.02],
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            **CHOICE,
        )
    return f"\n{text}\nundecided: {between} of {len(cells)}"
