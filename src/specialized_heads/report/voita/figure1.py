"""Figure 1: relevance, confidence and function of the encoder's self-attention heads, by layer and relevance.

The first corpus; figure 2 shows the others. The most relevant head of a layer is on top. Relevances are divided by the sum of
their absolute values over the layer, so that a column sums to 1 if none is negative. Values are printed in the cells as long as
they are legible. A bar at the foot of a cell has the colour of the head's function. A cell without a value is hatched; a layer
with fewer heads than another ends earlier.
"""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, FigureBase

from specialized_heads.report import style
from specialized_heads.report.data import Tables, encoder_heads, first_seed, stack

CELL_HEIGHT = 0.2  # inches
SMALLEST_TEXT = 4.5  # points; smaller numbers are left out
# Grey to black would hide the printed values, and blue is the colour of positional heads: light to dark purple.
VALUES = LinearSegmentedColormap.from_list("values", ["#FBF8FC", "#C9B5D8", "#8A63A8", "#4B1D6B"])
BAR = 0.14  # height of the mark of a function, in cells
COLUMNS = ["corpus", "layer", "rank", "head", "relevance", "confidence", "functions"]


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of the first corpus (`ranked_heads`)."""
    return ranked_heads(tables, tables.corpora()[:1])


def draw(heads: pd.DataFrame) -> Figure:
    return drawn(heads, across=1, confidence=True)


def ranked_heads(tables: Tables, corpora: Iterable[str]) -> pd.DataFrame:
    """The encoder heads of each corpus's baseline, with their share and rank by relevance in the layer, 1 for the most relevant.

    Of the first seed. A model without encoder heads has one row.
    """
    frames = []
    for corpus in corpora:
        heads = encoder_heads(first_seed(tables.analysed(corpus, "baseline")))
        heads = heads.sort_values(["layer", "relevance", "head"], ascending=[True, False, True])
        total = heads["relevance"].abs().groupby(heads["layer"]).transform("sum")
        heads["relevance"] /= total.where(total > 0, 1.0)
        heads = heads.assign(rank=heads.groupby("layer").cumcount() + 1)
        frames.append((heads if len(heads) else pd.DataFrame([{}])).assign(corpus=corpus))
    return stack(frames, COLUMNS).astype(dict.fromkeys(("layer", "rank", "head"), "Int64"))


def value_grid(
    block: FigureBase, axes: Axes, heads: pd.DataFrame, column: str, ends: tuple[float, float], *, cell_width: float
) -> None:
    """Draw one value of the heads of a model as a heat map, functions marked, with a colour bar from one end to the other.

    `cell_width` is in inches; numbers are not printed in narrow cells.
    """
    values = heads.pivot(index="rank", columns="layer", values=column)
    values = values.reindex(index=range(1, heads["rank"].max() + 1), columns=range(1, heads["layer"].max() + 1))
    size = min(7.0, cell_width * 72 / 2.7, CELL_HEIGHT * 72 / 1.6)
    digits, (low, high) = "z.2f" if size >= SMALLEST_TEXT else "", ends
    mesh = style.heat_map(axes, values.to_numpy(float), colours=VALUES, low=low, high=high, digits=digits, size=size)
    for head in heads[heads[column].isna()].itertuples():
        style.hatched_cell(axes, head.layer, head.rank)
    for head in heads[heads["functions"] != "other"].itertuples():
        bar = {"left": head.layer - 0.47, "bottom": head.rank + 0.47 - BAR, "width": 0.94, "height": BAR}
        style.function_cell(axes, head.functions.split("; "), **bar)
    style.colour_bar(block, mesh, axes, pad=0.02, aspect=18)


def function_grid(axes: Axes, heads: pd.DataFrame, *, cell_width: float) -> None:
    """Draw the functions of the heads of a model; the number in a cell is the head's number in its layer."""
    size = min(7.0, cell_width * 72 / 1.8, CELL_HEIGHT * 72 / 1.6)
    for head in heads.itertuples():
        corner = {"left": head.layer - 0.5, "bottom": head.rank - 0.5}
        style.function_cell(axes, head.functions.split("; "), **corner, width=1, height=1)
        if size >= SMALLEST_TEXT:
            style.cell_text(axes, head.layer, head.rank, str(head.head), size=size)
    style.bare(axes)


def drawn(heads: pd.DataFrame, *, across: int, confidence: bool) -> Figure:
    """Draw `ranked_heads`, this many corpora side by side, on one scale; a model without encoder heads gets a message.

    Relevance and function of each head, and its confidence if there is room for it.
    """
    titles = list(heads["corpus"].unique())
    heads = heads.dropna(subset="layer")
    width = style.DOUBLE if across == 2 or confidence else style.SINGLE
    beside = [heads[heads["corpus"].isin(titles[start : start + across])] for start in range(0, len(titles), across)]
    heights = [CELL_HEIGHT * max([3, *models["rank"]]) + 0.75 for models in beside]
    figure = Figure(figsize=(width, sum(heights) + (0.25 if width == style.DOUBLE else 0.4)), layout="constrained")
    blocks = figure.subfigures(len(beside), across, height_ratios=heights, squeeze=False).flat
    known = heads["relevance"].dropna()
    ends = {"relevance": (min([0.0, *known]), max([0.0, *known]) or 1.0)}
    if confidence:
        ends["confidence"] = (0.0, 1.0)
    for block, title in zip(blocks, titles, strict=False):  # the last block may stay empty
        model = heads[heads["corpus"] == title]
        block.suptitle(
            style.wrap(f"{title}: {len(model)} encoder head{'s' * (len(model) != 1)}", inches=width / across, size=8)
        )
        if model.empty:
            style.message(block.subplots(), "no encoder head is left in this model", inches=width / across)
            continue
        *maps, function = block.subplots(1, len(ends) + 1, width_ratios=[*[1.2] * len(ends), 1])
        layers, ranks = int(model["layer"].max()), int(model["rank"].max())
        cell_width = (1.75 if confidence else 1.2) / layers
        for axes, (column, scale) in zip(maps, ends.items(), strict=True):
            value_grid(block, axes, model, column, scale, cell_width=cell_width)
        function_grid(function, model, cell_width=cell_width)
        for axes, name in zip([*maps, function], ("relevance, share of the layer", *[*ends][1:], "function (head)")):
            axes.set(title=name, xlim=(0.5, layers + 0.5), ylim=(ranks + 0.5, 0.5), xlabel="layer")
            axes.set(xticks=range(1, layers + 1), yticks=range(1, ranks + 1))
        maps[0].set_ylabel("rank by relevance")
    style.function_legend(figure)
    return figure
