"""Figure and table: when in training the heads of the baseline take on their functions.

Each panel follows one kind of evidence over the baseline's training, on a logarithmic axis of updates: the development loss,
and of the encoder's heads the best one at that moment for each function. It need not be the same head throughout. Neighbours
are the previous, the same and the next token (section 5.1), syntactic margins are accuracies above the best fixed offset
(section 5.2), rare words the share of argmaxes on the least frequent token (section 5.3), relevance that of the most relevant
head of each layer (section 4). The table says in which order they come.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.report import style
from specialized_heads.report.inputs import read_log, read_table
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import Section, UserError, arguments, run

COLUMNS = ["corpus", "seed", "update", "measure", "name", "value", "layer", "head"]
NEEDED = ("type", "layer", "head", "relevance", "positional_offset", "positional_share", "rarest")
BACKWARDS = "dependent → head"
NEIGHBOURS = {-1: "previous token", 0: "same token", 1: "next token"}
PANELS = {  # measure: title of its panel
    "loss": "development loss, nats/token",
    "neighbours": "share at a neighbour",
    "syntactic": "margin over the fixed offset",
    "rare words": "share at the rarest token",
    "relevance": "highest relevance in a layer",
}
HEIGHT = 2.5  # inches of a panel and its key
CAPTION = (
    "When each curve of figure emergence has gone half of its way from its value at the first checkpoint to that of the "
    "finished model and stays beyond, in updates of the baseline's training (geometric mean over seeds)."
)


class Moment(Section):
    """What a table of heads is of."""

    corpus: str  # its title
    seed: int
    update: int


class Training(Section):
    """A baseline, as its training log and table `functions` name it."""

    corpus: str
    seed: int


class Settings(Section):
    moments: list[Moment]  # of the tables of heads, in their order
    trainings: list[Training]  # of the logs, in their order
    thresholds: dict[str, float] = {}  # by measure: the share or margin that makes a function


def numbers(moments: list[tuple[Moment, pd.DataFrame]], trainings: list[tuple[Training, pd.DataFrame]]) -> pd.DataFrame:
    """One row per corpus, seed, update and curve.

    Args:
        moments: the tables of heads of the baseline at moments of its training.
        trainings: the logs of these baselines.

    Returns:
        corpus, seed, update, measure (a panel), name (a curve), value, and layer and head of the encoder head that it is of
        (missing for the loss).
    """
    rows = []
    for training, records in trainings:
        for record in records.dropna(subset="dev_loss").to_dict("records"):
            row = {"measure": "loss", "name": "", "value": record["dev_loss"]}
            rows.append(training.model_dump() | {"update": record["update"]} | row)
    for moment, table in moments:
        encoder = table[table["type"] == "encoder"]
        for measure, name, values in curves(encoder):
            if values.notna().any():
                best = encoder.loc[values.idxmax()]
                row = {"measure": measure, "name": name, "value": values.max()}
                rows.append(moment.model_dump() | row | {"layer": best["layer"], "head": best["head"]})
    return pd.DataFrame(rows, columns=COLUMNS).astype({"layer": "Int64", "head": "Int64"})


def curves(encoder: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series]]:
    """For each curve but the loss: its panel, its name, and the value of each encoder head."""
    for offset, name in NEIGHBOURS.items():
        yield "neighbours", name, encoder["positional_share"].where(encoder["positional_offset"] == offset, 0.0)
    for column in encoder.columns:
        relation, _, ending = column.rpartition("_margin")
        if relation.endswith(DIRECTIONS) and not ending:
            yield "syntactic", relation_name(relation), encoder[column]
    yield "rare words", "least frequent token", encoder["rarest"]
    for layer, heads in encoder.groupby("layer"):
        yield "relevance", f"layer {layer}", encoder["relevance"].where(encoder.index.isin(heads.index))


def relation_name(column: str) -> str:
    """`nsubj_head_to_dependent` as the figure shows it: the relation, and which end looks at which."""
    [direction] = [direction for direction in DIRECTIONS if column.endswith(direction)]
    arrow = "head → dependent" if direction == DIRECTIONS[0] else BACKWARDS
    return f"{column.removesuffix('_' + direction)}, {arrow}"


def draw(points: pd.DataFrame, thresholds: dict[str, float]) -> Figure:
    """Draw one row of panels per corpus; curves are means over seeds, with the range of seeds behind them."""
    if points.empty:
        return style.message_figure("Emergence: no checkpoints of the baseline in this experiment", width=style.DOUBLE)
    corpora = list(points.groupby("corpus", sort=False))
    down, across = 2 * len(corpora), 3
    figure = Figure(figsize=(style.DOUBLE, HEIGHT * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for number, (corpus, points_of_corpus) in enumerate(corpora):
        panels = grid[2 * number : 2 * number + 2].ravel()
        for axes, (measure, title) in zip(panels, PANELS.items(), strict=False):
            _panel(axes, points_of_corpus[points_of_corpus["measure"] == measure], thresholds.get(measure))
            axes.set_title(title)
        for axes in panels[len(PANELS) :]:
            axes.set_axis_off()
        panels[0].set_ylabel(style.wrap(corpus, inches=HEIGHT - 0.3))
    for axes in grid[-1]:
        axes.set_xlabel("update")
    return figure


def _panel(axes: Axes, points: pd.DataFrame, threshold: float | None) -> None:
    names = list(dict.fromkeys(points["name"]))
    both_ways = any(name.endswith(BACKWARDS) for name in names)  # one colour per relation, dashes for one direction
    for number, name in enumerate(names):
        by_update = points[points["name"] == name].groupby("update")["value"]
        mean, look = by_update.mean(), style.series(number // 2 if both_ways else number)
        line = "--" if name.endswith(BACKWARDS) else "-"
        axes.plot(mean.index, mean, color=look.colour, linestyle=line, marker=look.marker, markersize=2.5, label=name)
        axes.fill_between(mean.index, by_update.min(), by_update.max(), color=look.colour, alpha=0.2, linewidth=0)
    if threshold is not None:
        axes.axhline(threshold, color=style.PAPER_COLOUR, linestyle=":", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y")
    if len(names) > 1:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), fontsize=5.5, handlelength=2.4, labelspacing=0.2)


def first_updates(points: pd.DataFrame) -> pd.DataFrame:
    """When each curve comes: one row per corpus and curve.

    Returns:
        corpus, measure, name, seeds (how many), first and last (value at the first and the last moment, means over seeds),
        half (the update by which the curve has gone half of its way from the first to its last value, for good;
        geometric mean over seeds).
    """
    rows = []
    for (corpus, measure, name), curve in points.groupby(["corpus", "measure", "name"], sort=False):
        ends, halves = [], []
        for _, same in curve.sort_values("update").groupby("seed"):
            values = same["value"].to_numpy()
            ends.append((values[0], values[-1]))
            way = (values - values[0]) * np.sign(values[-1] - values[0])
            below = np.flatnonzero(way < way[-1] / 2)
            halves.append(same["update"].to_numpy()[below[-1] + 1 if len(below) else 0])
        first, last = np.mean(ends, axis=0)
        row = {"corpus": corpus, "measure": measure, "name": name, "seeds": len(ends), "first": first, "last": last}
        rows.append(row | {"half": round(np.exp(np.mean(np.log(halves))))})
    columns = ["corpus", "measure", "name", "seeds", "first", "last", "half"]
    return pd.DataFrame(rows, columns=columns).sort_values(["corpus", "half"], kind="stable", ignore_index=True)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, the earliest curve of each corpus first."""
    return pd.DataFrame(
        {
            "corpus": rows["corpus"],
            "curve": [PANELS[m] + (f": {name}" if name else "") for m, name in zip(rows["measure"], rows["name"])],
            "first": rows["first"].map("{:.2f}".format),
            "last": rows["last"].map("{:.2f}".format),
            "half-way update": rows["half"].map("{:,.0f}".format),
            "seeds": rows["seeds"].map(str),
        }
    )


def read(heads: list, records: list, settings: Settings) -> pd.DataFrame:
    """`numbers` from the files of a stage; a `UserError` where they and the settings do not fit."""
    if len(heads) != len(settings.moments) or len(records) != len(settings.trainings):
        raise UserError("settings: give one moment per table of heads, and one training per log")
    tables = [(moment, read_table(path, NEEDED)) for moment, path in zip(settings.moments, heads, strict=True)]
    logs = [
        (training, read_log(path, column="loss")) for training, path in zip(settings.trainings, records, strict=True)
    ]
    return numbers(tables, logs)


def main() -> None:
    args = arguments(__doc__, files=["figure", "table"], many=["heads", "records"])
    settings = Settings.model_validate(args.settings)
    points = read(args.heads, args.records, settings)
    save_figure(args.figure, points, lambda: draw(points, settings.thresholds))
    rows = first_updates(points)
    save_table(args.table, rows, shown(rows), caption=CAPTION)


if __name__ == "__main__":
    run(main)
