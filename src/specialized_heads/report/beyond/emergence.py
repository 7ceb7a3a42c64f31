"""When during training the heads of the baseline acquire their functions.

Each panel follows one kind of evidence over the baseline's training: the development loss, and for each function the best encoder
head at that moment, which need not be the same head throughout. Neighbours are the previous, the same and the next token (section
5.1), syntactic margins are accuracies above the best fixed offset (5.2), rare words the share of argmaxes on the least frequent
token (5.3), relevance that of the most relevant head of each layer (4).
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from specialized_heads.heads.functions import BY_NAME, FUNCTIONS, OF_TOKENS, POSITIONAL, SYNTACTIC
from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.report import style
from specialized_heads.report.data import Tables, parted

COLUMNS = ["corpus", "seed", "update", "measure", "name", "value", "layer", "head", "threshold"]
# Columns of the table of heads.
SHARES = {"share_-1": "previous token", "share_+0": "same token", "share_+1": "next token"}
BACKWARDS = "dependent → head"
PANELS = {  # measure: title of its panel
    "loss": "development loss, nats/token",
    "neighbours": "share at a neighbour",
    **{function.name: function.measure for function in FUNCTIONS if function.name != POSITIONAL},
    "relevance": "highest relevance in a layer",
}
THRESHOLDS = {function.name: function.threshold for function in OF_TOKENS}
THRESHOLDS |= {"neighbours": BY_NAME[POSITIONAL].threshold}
HEIGHT, KEY = 1.55, 1.0  # inches of a row of panels, and of the keys below the last one


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, seed, update, measure (a panel) and name (a curve), with the encoder head that it is of, if any.

    threshold: the share or margin that makes a function.
    """
    rows = []
    followed = tables.heads.loc[tables.heads["kind"] == "checkpoint", "corpus"].unique()
    logs = tables.logs[(tables.logs["kind"] == "baseline") & tables.logs["corpus"].isin(followed)]
    for point in logs.dropna(subset="dev_loss").itertuples():
        rows.append([point.corpus, point.seed, point.update, "loss", "", point.dev_loss, None, None, None])
    ends = logs.groupby(["corpus", "seed"])["update"].max()
    heads = tables.heads[tables.heads["kind"].isin(["checkpoint", "baseline"]) & tables.heads["corpus"].isin(followed)]
    margins = tables.relations.groupby("corpus")["syntactic_margin"].first()
    for (corpus, seed, update), same in heads.groupby(["corpus", "seed", "update"], sort=False, dropna=False):
        encoder = same[same["type"] == "encoder"]
        update = ends[corpus, seed] if pd.isna(update) else update
        for measure, name, values in curves(encoder):
            if values.notna().any():
                best = encoder.loc[values.idxmax()]
                threshold = margins[corpus] if measure == SYNTACTIC else THRESHOLDS.get(measure)
                rows.append([corpus, seed, update, measure, name, values.max(), best["layer"], best["head"], threshold])
    return pd.DataFrame(rows, columns=COLUMNS).astype({"layer": "Int64", "head": "Int64"})


def curves(encoder: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series]]:
    """For each curve but the loss: its panel, its name, and the value of each encoder head."""
    for column, name in SHARES.items():
        yield "neighbours", name, encoder[column]
    for column in encoder.filter(regex="_margin$"):
        yield SYNTACTIC, relation_name(column.removesuffix("_margin")), encoder[column]
    for function in OF_TOKENS:
        yield function.name, function.name, encoder[function.score]
    for layer, heads in encoder.groupby("layer"):
        yield "relevance", f"layer {layer}", encoder["relevance"].where(encoder.index.isin(heads.index))


def relation_name(column: str) -> str:
    """`nsubj_head_to_dependent` as the figure shows it: the relation, and which end looks at which."""
    relation, direction = parted(column)
    return f"{relation}, {'head → dependent' if direction == DIRECTIONS[0] else BACKWARDS}"


def draw(points: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus; curves are means over seeds, with the range of seeds behind them."""
    corpora = style.by(points, "corpus")
    first, last = points["update"].min(), points["update"].max()
    decades = 10.0 ** np.arange(8)
    ticks = [first, *decades[(decades >= 2 * first) & (decades <= last / 2)], last]
    figure = Figure(figsize=(style.DOUBLE, HEIGHT * len(corpora) + KEY), layout="constrained")
    grid = figure.subplots(len(corpora), len(PANELS), squeeze=False, sharex=True)
    for axes, corpus in zip(grid[:, 0], corpora, strict=True):
        axes.set_ylabel(style.wrap(corpus, inches=HEIGHT - 0.4))
    for column, (measure, title) in zip(grid.T, PANELS.items(), strict=True):
        looks = _looks(points.loc[points["measure"] == measure, "name"].unique())
        for axes, own in zip(column, corpora.values(), strict=True):
            _panel(axes, own[own["measure"] == measure], looks)
        column[0].set_title(style.wrap(title, inches=style.DOUBLE / len(PANELS) - 0.25, size=7), size=7)
        column[-1].set_xlabel("update")
        column[-1].set_xticks(ticks)
        column[-1].xaxis.set_major_formatter("{x:,.0f}")
        column[-1].xaxis.set_minor_formatter(NullFormatter())
        if len(looks) > 1:
            handles = [Line2D([], [], label=name.replace("dependent", "dep."), **look) for name, look in looks.items()]
            place = {"loc": "upper center", "bbox_to_anchor": (0.4, -0.28)}
            column[-1].legend(handles=handles, fontsize=6, handlelength=2.6, **place)
    return figure


def _looks(names: Iterable[str]) -> dict[str, dict[str, object]]:
    """How each curve of a panel is drawn; both directions of a relation have its colour, one of them dashes."""
    relations = list(dict.fromkeys(name.partition(",")[0] for name in names))
    looks = {}
    for name in names:
        look = style.series(relations.index(name.partition(",")[0]))
        line = "--" if name.endswith(BACKWARDS) else "-"
        looks[name] = {"color": look.colour, "marker": look.marker, "markersize": 2, "linestyle": line}
    return looks


def _panel(axes: Axes, points: pd.DataFrame, looks: dict[str, dict[str, object]]) -> None:
    for name, curve in points.groupby("name", sort=False):
        by_update, look = curve.groupby("update")["value"], looks[name]
        mean = by_update.mean()
        axes.plot(mean.index, mean, **look)
        axes.fill_between(mean.index, by_update.min(), by_update.max(), color=look["color"], alpha=0.2, linewidth=0)
    for threshold in points["threshold"].dropna().unique():
        axes.axhline(threshold, **style.PAPER_LINE)
    axes.set_xscale("log")
    axes.tick_params(labelsize=6)
    axes.grid(axis="y")
