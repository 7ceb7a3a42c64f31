"""Heads drawn as cells of a grid, layer by layer, sorted by relevance within the layer (figures 1 and 2).

The most relevant head of a layer is on top. A cell's value is printed in it as long as that can be read; the colour
bar is always there. A head without a value is hatched, a layer that has fewer heads than another ends earlier.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.patches import Rectangle

from specialized_heads.report import style
from specialized_heads.report.inputs import encoder_heads

CELL_HEIGHT = 0.2  # inches
# Grey to black would hide the printed values, and blue is the colour of positional heads: light to dark purple.
VALUES: Colormap = LinearSegmentedColormap.from_list("values", ["#FBF8FC", "#C9B5D8", "#8A63A8", "#4B1D6B"])
COLUMNS = ["corpus", "layer", "rank", "head", "relevance", "confidence", "functions"]


def ranked_heads(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Encoder heads of every corpus with their rank by relevance in their layer, 1 for the most relevant.

    Returns:
        one row per head: corpus, layer, rank, head, relevance, confidence, functions ("; " between several).
    """
    frames = []
    for title, table in tables.items():
        heads = encoder_heads(table).sort_values(
            ["layer", "relevance", "head"], ascending=[True, False, True], na_position="last"
        )
        frames.append(heads.assign(corpus=title, rank=heads.groupby("layer").cumcount() + 1)[COLUMNS])
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=COLUMNS)


def value_grid(axes: Axes, heads: pd.DataFrame, *, column: str, low: float, high: float, cell_width: float) -> QuadMesh:
    """Draw one value of the heads of one model as a heat map.

    Args:
        axes: where.
        heads: rows of `ranked_heads`, one model.
        column: which value.
        low: value of the lightest colour.
        high: value of the darkest colour.
        cell_width: width of a cell in inches, which decides whether values are printed.

    Returns:
        the mesh, for a colour bar.
    """
    layers, ranks = _grid(axes, heads)
    values = np.ma.masked_all((ranks, layers))
    size = min(7.0, cell_width * 72 / 2.7, CELL_HEIGHT * 72 / 1.6)
    for head in heads.to_dict("records"):
        value, row, column_index = head[column], head["rank"] - 1, head["layer"] - 1
        if pd.isna(value):
            corner = column_index + 0.5, row + 0.5
            axes.add_patch(Rectangle(corner, 1, 1, facecolor="white", edgecolor="#BBBBBB", hatch="////", linewidth=0))
            continue
        values[row, column_index] = value
        if size >= 4.5:
            dark = (value - low) / (high - low) > 0.6
            text = f"{value:.2f}".replace("-", "−")
            axes.text(
                head["layer"],
                head["rank"],
                text,
                size=size,
                ha="center",
                va="center",
                color="white" if dark else "black",
            )
    edges = np.arange(layers + 1) + 0.5, np.arange(ranks + 1) + 0.5
    return axes.pcolormesh(*edges, values, cmap=VALUES, vmin=low, vmax=high, edgecolors="white", linewidth=1.0)


def function_grid(axes: Axes, heads: pd.DataFrame, *, cell_width: float) -> None:
    """Draw the functions of the heads of one model; the number in a cell is the head's own number in its layer."""
    _grid(axes, heads)
    size = min(7.0, cell_width * 72 / 1.8, CELL_HEIGHT * 72 / 1.6)
    for head in heads.to_dict("records"):
        left, bottom = head["layer"] - 0.5, head["rank"] - 0.5
        style.function_cell(axes, head["functions"].split("; "), left=left, bottom=bottom, width=1, height=1)
        if size >= 4.5:
            style.cell_text(axes, head["layer"], head["rank"], str(head["head"]), size=size)


def relevance_range(heads: pd.DataFrame) -> tuple[float, float]:
    """Ends of the colour scale for relevance: zero, or the most negative value, to the highest."""
    known = heads["relevance"].dropna()
    return min([0.0, *known]), max([0.0, *known]) or 1.0


def deepest(heads: pd.DataFrame) -> int:
    """The largest number of heads in a layer, at least 3, which leaves room for a line of text instead."""
    return max([3, *heads["rank"]])


def _grid(axes: Axes, heads: pd.DataFrame) -> tuple[int, int]:
    """Set up the axes, layers from left to right and ranks from top to bottom; return how many there are of each."""
    layers, ranks = int(heads["layer"].max()), int(heads["rank"].max())
    axes.set(xlim=(0.5, layers + 0.5), ylim=(ranks + 0.5, 0.5), xticks=range(1, layers + 1), yticks=range(1, ranks + 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return layers, ranks
