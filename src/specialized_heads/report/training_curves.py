"""Training curves: loss against updates, of every model of the experiment that was trained.

One panel per corpus, kind of model and scope of pruning; a colour per λ or number of heads, or, where a criterion chose the
heads, per criterion at all numbers of heads. Lines are the training loss, points the loss on the development set, both in
nats per target token. The two differ by more than the data: training counts label smoothing and dropout, and gates that are
drawn anew, the development loss none of them. Behind models that start from the baseline, or that are to equal it, the
baseline's last development loss is dashed.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style, sweep
from specialized_heads.report.experiment import Model, Models, every
from specialized_heads.report.inputs import read_log
from specialized_heads.report.output import save_figure
from specialized_heads.stage import UserError, arguments, run

ACROSS, HEIGHT = 3, 1.7  # panels beside each other; inches of a panel
MOST = 6  # entries of a panel's key; of more models so many are named that lie evenly among them
ROOM = 0.15  # of the height that the lines take, above them, for each row of the key and for two at the least
KEYS = ["corpus", "kind", "scope", "criterion", "lam", "asked", "seed"]
COLUMNS = [*KEYS, "update", "loss", "dev_loss"]
TITLES = {
    "pruned": "pruned",
    "scratch": "from scratch",
    "count": "as many heads, from scratch",
    "regularised": "with gates, from scratch",
    "finetuned": "cut by a criterion, fine-tuned",
}
SCOPES = {"encoder": "encoder", "all": "all types"}


def numbers(models: list[Model], records: list[pd.DataFrame]) -> pd.DataFrame:
    """Losses of every model.

    Args:
        models: what each model is.
        records: the log of each one's training, one row per record.

    Returns:
        one row per record: corpus, kind, scope, criterion, lam or asked (number of heads), seed, update, loss (training, mean
        since the record before), dev_loss (missing where it was not measured).
    """
    frames = [
        record.reindex(columns=["update", "loss", "dev_loss"]).assign(**model._asdict())
        for model, record in zip(models, records, strict=True)
    ]
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True)[COLUMNS].astype({"lam": float, "asked": "Int64", "dev_loss": float})


def draw(curves: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, kind and scope."""
    panels = list(curves.groupby(["corpus", "kind", "scope"], sort=False))
    if not panels:
        return style.message_figure("Training curves: no models in this experiment", width=style.DOUBLE)
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(style.DOUBLE, HEIGHT * down + 0.4), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    inches = style.DOUBLE / across - 0.4
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, ((corpus, kind, scope), own) in zip(grid.flat, panels, strict=False):
        if kind != "baseline":
            base = curves[(curves["corpus"] == corpus) & (curves["kind"] == "baseline")].dropna(subset="dev_loss")
            for _, same in base.groupby("seed"):
                axes.axhline(same["dev_loss"].iloc[-1], color="#777777", linewidth=0.8, linestyle="--")
        _panel(axes, own)
        what = f"{TITLES[kind]} ({SCOPES[scope]})" if scope else kind
        axes.set_title(f"{style.wrap(corpus, inches=inches)}\n{style.wrap(what, inches=inches)}")
        axes.set_xlim(0, None)
        axes.grid(axis="y")
    for axes in grid[:, 0]:
        axes.set_ylabel("loss, nats per token")
    for column in grid.T:
        [axes for axes in column if axes.axison][-1].set_xlabel("update")
    handles = [
        Line2D([], [], color="#555555", linewidth=0.9, label="training, with label smoothing"),
        Line2D([], [], color="#555555", marker="o", markersize=3.5, linestyle=":", label="development set"),
        Line2D([], [], color="#777777", linestyle="--", linewidth=0.8, label="baseline's last on the development set"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _panel(axes: Axes, curves: pd.DataFrame) -> None:
    """The models of one panel; the seeds of one are lines of the same colour."""
    key = []
    for label, colour, same in _coloured(curves):
        for _, curve in same.groupby(["asked", "seed"], dropna=False):
            # A line of one point cannot be seen.
            marker = "." if len(curve) == 1 else None
            axes.plot(curve["update"], curve["loss"], color=colour, linewidth=0.9, marker=marker)
            held_out = curve.dropna(subset="dev_loss")
            axes.plot(held_out["update"], held_out["dev_loss"], color=colour, marker="o", markersize=3.5, linestyle=":")
        if label:
            key.append(Line2D([], [], color=colour, linewidth=0.9, label=label))
    if key:
        low, high = axes.get_ylim()
        columns = 2 if curves["criterion"].iloc[0] else 3  # names of criteria are longer
        axes.set_ylim(low, high + ROOM * max(2, math.ceil(len(key) / columns)) * (high - low))
        axes.legend(
            handles=key,
            loc="upper center",
            ncols=columns,
            fontsize=5.5,
            handlelength=1,
            labelspacing=0.2,
            columnspacing=1,
        )


def _coloured(curves: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """The curves of a panel by what gives them their colour: its name in the key ("": it has none), the colour, the curves."""
    if curves["criterion"].iloc[0]:
        return [(name, style.CRITERIA[name].colour, same) for name, same in curves.groupby("criterion", sort=False)]
    ordered = sweep.in_order(curves, sweep.WEAKEST_FIRST)
    targets = list(ordered.groupby(["lam", "asked"], dropna=False, sort=False))
    named = set(np.linspace(0, len(targets) - 1, min(MOST, len(targets))).round().astype(int))
    parts = []
    for place, ((lam, asked), same) in enumerate(targets):
        label = sweep.target(lam, asked) if place in named and same["scope"].iloc[0] else ""
        parts.append((label, style.ordered(place, len(targets)).colour, same))
    return parts


def read_records(path: Path) -> pd.DataFrame:
    """The log of a training, one row per record; a `UserError` where it is missing, damaged or not one."""
    records = read_log(path)
    if not {"update", "loss"} <= set(records):
        raise UserError(f"{path}: has no losses; it is not the log of a training; delete it and run again")
    return records


def main() -> None:
    args = arguments(__doc__, files=["results", "output"])
    found = list(every(Models.model_validate(args.settings), args.results))
    curves = numbers([model for model, _ in found], [read_records(folder / "log.jsonl") for _, folder in found])
    save_figure(args.output, curves, lambda: draw(curves))


if __name__ == "__main__":
    run(main)
