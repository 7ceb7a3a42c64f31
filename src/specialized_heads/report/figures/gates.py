"""Gates (section 6.1): the distribution that they are drawn from (figure 6), and how they open and
close during pruning."""

from itertools import count, cycle
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
MOST = {True: 6, False: 3}  # models shown, of one attention type or of several
# P(open) of a gate that is 1 with probability 0.9
FULLY_OPEN = expit(logit(1 - CLOSED) + 2 * BETA * log(HIGH / -LOW))
ROW = 0.025  # inches of a gate
TARGET = ["lam", "target_heads"]
CHOICE = {"color": "black", "linewidth": 2.0, "solid_capstyle": "butt"}
PRUNING_COLUMNS = "corpus seed scope lam target_heads type layer head update p_open".split()
PRUNING_COLUMNS += ["functions"]
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
    left.suptitle("construction, log α = 0")
    _construction(left.subplots(), points)
    right.suptitle("Hard Concrete for several log α")
    closed, between, open_ = right.subplots(1, 3, width_ratios=[1.45, 1.8, 1.45])
    hard = points[points["curve"] == "Hard Concrete"]
    names = [style.minus(f"{value:.0f}") for value in LOG_ALPHAS]
    looks = [style.ordered(place, len(LOG_ALPHAS)) for place in range(len(LOG_ALPHAS))]
    for axes, x, title in ((closed, 0.0, "P(g = 0)"), (open_, 1.0, "P(g = 1)")):
        masses = hard.loc[(hard["quantity"] == "probability") & (hard["x"] == x), "y"]
        bars = axes.bar(names, masses, color=[look.colour for look in looks])
        axes.bar_label(bars, fmt="{:.2f}", size=6, padding=1)
        axes.set(title=title, xlabel="log α", ylabel="probability", ylim=(0, 1.05))
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
    model = ["corpus", "seed", "scope", "lam", "target_heads"]
    heads = tables.heads[
        (tables.heads["kind"] == "baseline") & tables.heads["seed"].isin(logs["seed"])
    ]
    heads = heads.assign(functions=heads["functions"].map("; ".join))[
        ["corpus", "type", "layer", "head", "functions"]
    ]
    # A given baseline may lack some heads.
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
    The bar above a panel, and "choosing", is the phase in which gates decide: the updates during
    which gates close or open again (P(open) crosses 0.1), as far as the records tell. "Undecided"
    counts the gates that are neither closed nor fully open with probability 0.9 when the heads are
    chosen: at the end or, with a target number of heads, where the gates become constants, which
    shows as saturated greys.
    """
    blocks, heights, notes = [], [], []
    for scope, gates in style.by(table, "scope").items():
        ordered = sweep.in_order(gates, sweep.WEAKEST_FIRST)
        models = [own for _, own in ordered.groupby(TARGET, dropna=False, sort=False)]
        types = [kind for kind in style.TYPES if kind in set(gates["type"])]
        most = MOST[len(types) == 1]
        shown = [[models[place]] for place in style.evenly(len(models), most=most)]
        # Models of one type are beside each other; of several, each has a row.
        rows = [sum(shown, [])] if len(types) == 1 else [own * len(types) for own in shown]
        heads = gates.groupby("type").apply(lambda own: own.groupby(["layer", "head"]).ngroups)
        heights.append(len(rows) * (0.75 + max(0.4, ROW * heads.max())) + 0.3)
        blocks.append((scope, types, rows))
        if len(models) > most:
            notes.append(f"{style.SCOPES[scope]}: {most} of {len(models)} models shown")
    heights[-1] += 0.4  # the colour bar
    drawn = Figure(figsize=(style.DOUBLE, 0.75 + sum(heights)), layout="constrained")
    title = f"{table['corpus'].iloc[0]}, seed {table['seed'].iloc[0]}: gates during pruning"
    drawn.suptitle(style.wrap("; ".join([title, *notes]), inches=style.DOUBLE, size=8))
    mesh = None
    parts = drawn.subfigures(len(blocks), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, (scope, types, rows) in zip(parts, blocks, strict=True):
        part.suptitle(style.SCOPES[scope])
        grid = part.subplots(len(rows), len(rows[0]), squeeze=False)
        for line, models in zip(grid, rows, strict=True):
            for axes, kind, own in zip(line, cycle(types), models):
                mesh = _model(axes, own, kind, name=len(types) > 1) or mesh
                axes.locator_params(axis="x", nbins=4 if len(line) < 5 else 2)
            line[0].set_ylabel("layer")
        style.label_lowest(grid, "update")
    bar = {"location": "bottom", "shrink": 0.3, "aspect": 30}
    style.colour_bar(part, mesh, grid, "P(gate is open)", **bar)
    found = {
        ALIAS.get(name, name) for names in table["functions"].unique() for name in names.split("; ")
    }
    present = {name: look for name, look in LOOKS.items() if name in found}
    handles = [style.marker_key(name, **look) for name, look in present.items()]
    handles.append(Line2D([], [], label="choosing: gates close, or open again", **CHOICE))
    text = "undecided: closed or open with a probability below 0.9"
    style.legend(drawn, [*handles, style.marker_key(text, marker="")], ncols=2)
    return drawn


def _model(axes: Axes, gates: pd.DataFrame, kind: str, *, name: bool) -> QuadMesh | None:
    """The panel of a model and one type, named in its title where there are several; None where the
    model has no such gates."""
    panel = gates[gates["type"] == kind]
    if panel.empty:
        axes.set_axis_off()
        return None
    cells = panel.pivot_table(index=["layer", "head"], columns="update", values="p_open")
    functions = panel.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])["functions"]
    mesh = _panel(axes, cells, functions.reindex(cells.index))
    target = sweep.target(*panel[["lam", "target_heads"]].iloc[0])
    title = f"{style.TYPES[kind][0]}, " * name + target
    axes.set_title(title + _choice(axes, cells), size=6)
    return mesh


def _panel(axes: Axes, cells: pd.DataFrame, functions: pd.Series) -> QuadMesh:
    """P(open) of one model and type: heads downwards by layer, updates to the right."""
    # A record describes the gates at its update; its cell reaches back to the record before.
    edges = np.concatenate([[0], cells.columns.to_numpy()])
    mesh = axes.pcolormesh(
        edges, np.arange(len(cells) + 1), cells.to_numpy(), vmin=0, vmax=1, cmap=style.GREYS
    )
    mesh.set_rasterized(True)
    sizes = cells.groupby(level="layer").size()
    ends = sizes.cumsum().to_numpy()
    axes.hlines(ends[:-1], 0, edges[-1], color="white", linewidth=1.4)
    axes.set_yticks(ends - sizes.to_numpy() / 2, [str(layer) for layer in sizes.index])
    axes.tick_params(axis="y", length=0, pad=7)
    axes.invert_yaxis()
    for row, names in enumerate(functions):
        for place, name in enumerate(ALIAS.get(name, name) for name in names.split("; ") if name):
            x, transform = -0.02 * (place + 1), axes.get_yaxis_transform()
            axes.plot(
                x, row + 0.5, clip_on=False, transform=transform, markersize=2.5, **LOOKS[name]
            )
    axes.xaxis.set_major_formatter("{x:,.0f}")
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
    text = "no gate closes"
    if len(updates):
        edges = [0, *cells.columns]
        start = edges[edges.index(updates[0]) - 1]
        text = f"choosing: {start:,}–{updates[-1]:,}"
        axes.plot(
            [start, updates[-1]],
            [1.02, 1.02],
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            **CHOICE,
        )
    return f"\n{text}\nundecided: {between}/{len(cells)}"
