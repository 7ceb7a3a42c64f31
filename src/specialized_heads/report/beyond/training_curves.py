"""Training curves: loss against updates, for each model of the experiment that was trained.

One panel per corpus, kind of model and scope of pruning. Colours, dashes and markers are the λ or the number of heads or, where a
criterion chose the heads, the criterion at all numbers of heads. Lines are the training loss, points the loss on the development
set. The two differ in more than the data: the training loss includes label smoothing, dropout and random gates, the development
loss does not.
"""

import math
from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.data import Tables
from specialized_heads.report.voita import sweep

ACROSS, HEIGHT = 3, 1.7  # panels beside each other; inches of a panel
MOST = 8  # entries of a panel's legend; of more models that many are named, evenly spaced
COLUMNS = ["corpus", "kind", "scope", "criterion", "lam", "target_heads", "seed", "update", "loss", "dev_loss"]
TITLES = {
    "pruned": "pruned",
    "scratch": "from scratch",
    "continued": "from scratch, second decay",
    "count": "as many heads, from scratch",
    "continued_count": "as many heads, second decay",
    "regularised": "with gates, from scratch",
    "continued_regularised": "with gates at first, second decay",
    "finetuned": "cut by a criterion, fine-tuned",
}
DEVELOPMENT = {"markersize": 2.5, "linestyle": "none"}
THIN = {"linewidth": 0.9}


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per record of each model's log; loss: of training, mean since the record before; unit: what it is per."""
    tasks = set(tables.tasks()["corpus"])
    units = ["sentence" if corpus in tasks else "token" for corpus in tables.logs["corpus"]]
    return tables.logs.reindex(columns=COLUMNS).assign(unit=units).astype({"dev_loss": float})


def draw(curves: pd.DataFrame) -> Figure:
    groups = list(curves.groupby(["corpus", "kind", "scope"], sort=False))
    drawn, grid, panels = style.panels(len(groups), across=ACROSS, height=HEIGHT, more_height=0.4)
    inches = style.DOUBLE / grid.shape[1] - 0.4
    for axes, ((corpus, kind, scope), same) in zip(panels, groups, strict=True):
        if kind != "baseline":
            base = curves[(curves["corpus"] == corpus) & (curves["kind"] == "baseline")].dropna(subset="dev_loss")
            for loss in base.groupby("seed")["dev_loss"].last():
                axes.axhline(loss, **style.REFERENCE)
        _panel(axes, same)
        what = f"{TITLES[kind]} ({scope})" if scope else kind
        axes.set_title(f"{style.wrap(corpus, inches=inches)}\n{style.wrap(what, inches=inches)}")
        axes.set_xlim(0, None)
        axes.grid(axis="y")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"loss, nats per {' or '.join(curves['unit'].unique())}")
    style.label_lowest(grid, "update")
    handles = [
        Line2D([], [], color=style.PAPER_COLOUR, label="training", **THIN),
        Line2D([], [], color=style.PAPER_COLOUR, label="development set", marker="o", **DEVELOPMENT),
        Line2D([], [], label="baseline's last on the development set", **style.REFERENCE),
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn


def _panel(axes: Axes, curves: pd.DataFrame) -> None:
    """The models of one panel; the seeds of a model are lines of the same colour."""
    key = []
    for label, look, same in _looks(curves):
        for _, curve in same.groupby(["target_heads", "seed"], dropna=False):
            # A line of one point would be invisible.
            line = {"color": look.colour, "linestyle": look.line, "marker": "." if len(curve) == 1 else None}
            axes.plot(curve["update"], curve["loss"], **line, **THIN)
            held_out = curve.dropna(subset="dev_loss")
            axes.plot(held_out["update"], held_out["dev_loss"], color=look.colour, marker=look.marker, **DEVELOPMENT)
        if label:
            key.append(style.key(look, label, markersize=2.5, **THIN))
    if key:
        axes.margins(y=0.15 + 0.15 * math.ceil(len(key) / 2))  # room for the rows of the legend
        axes.set_ylim(axes.dataLim.y0 - 0.05 * axes.dataLim.height, None)
        axes.legend(handles=key, loc="upper center", ncols=2, fontsize=5.5, handlelength=1.8, columnspacing=0.8)


def _looks(curves: pd.DataFrame) -> Iterator[tuple[str, style.Series, pd.DataFrame]]:
    """The curves of a panel by their look: the label in the legend ("": none), the look, and the curves."""
    if curves["criterion"].iloc[0]:
        for name, same in style.by(curves, "criterion").items():
            yield name, style.CRITERIA[name], same
        return
    ordered = sweep.in_order(curves, sweep.WEAKEST_FIRST)
    targets = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
    named = style.evenly(len(targets), most=MOST)
    for place, ((lam, asked), same) in enumerate(targets):
        label = sweep.target(lam, asked) if place in named and same["scope"].iloc[0] else ""
        yield label, style.ordered(place, len(targets)), same
