"""Similarity of heads: how similar the attention of heads of the same type is, in the unpruned model (our own figure).

Rows and columns are heads in the order of their layers. A cell is the mean Jensen-Shannon distance between two heads' attention:
0 for heads that always attend alike, 1 for heads that never give weight to the same token. Light blocks along the diagonal are
layers whose heads resemble each other.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.inputs import Files, stack

PAIR_COLUMNS = ("type", "layer", "head", "other_layer", "other_head", "distance", "queries")
READS = {"pairs": Files(PAIR_COLUMNS)}
DISTANCES = LinearSegmentedColormap.from_list("distances", ["#FFF8E5", "#E39A4A", "#6B2A17"])


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The pairs of heads of each corpus, each pair once."""
    return stack([table.assign(corpus=title) for title, table in tables.items()], ["corpus", *PAIR_COLUMNS])


def draw(pairs: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw one row of three panels per corpus; a type with fewer than two heads gets a message."""
    known = pairs["distance"].dropna()
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    heights = [2.4 if title in set(pairs["corpus"]) else 0.7 for title in titles]
    drawn = Figure(figsize=(style.DOUBLE, sum(heights) + 0.2), layout="constrained")
    for row, title in zip(style.blocks(drawn, titles, height_ratios=heights), titles, strict=True):
        mesh = None
        for axes, name, same in style.panel_per_type(row, pairs[pairs["corpus"] == title]):
            if same["distance"].notna().any():
                axes.set_title(f"{name} (n = {same['queries'].iloc[0]:,})", size=6.5)
                mesh = _panel(axes, same, low=low, high=high)
            else:
                why = "fewer than two heads" if same.empty else "no target sentences"
                style.message(axes, f"{name}: {why}", inches=style.DOUBLE / 3 - 0.3)
        if mesh:
            style.colour_bar(row, mesh, list(row.axes), "Jensen-Shannon distance", pad=0.01, aspect=18)
    return drawn


def _panel(axes: Axes, pairs: pd.DataFrame, *, low: float, high: float) -> QuadMesh:
    """One type of one model: the symmetric matrix of distances, with lines between layers."""
    pairs = pairs.set_index(["layer", "head", "other_layer", "other_head"])["distance"]
    matrix = pairs.unstack(["other_layer", "other_head"])
    heads = matrix.index.union(matrix.columns.set_names(matrix.index.names)).sort_values()
    values = matrix.reindex(index=heads, columns=heads).to_numpy(float)
    values = np.where(np.isnan(values), values.T, values)
    mesh = style.heat_map(axes, values, colours=DISTANCES, low=low, high=high, edgecolors="none", linewidth=0)
    layers = heads.get_level_values("layer").to_numpy()
    starts = [0, *np.flatnonzero(np.diff(layers)) + 1, len(heads)]
    for start in starts[1:-1]:
        axes.axhline(start - 0.5, color="white", linewidth=1.2)
        axes.axvline(start - 0.5, color="white", linewidth=1.2)
    middles = [(first + last - 1) / 2 for first, last in zip(starts, starts[1:])]
    names = [str(layers[start]) for start in starts[:-1]]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names)
    axes.set(xlabel="layer", ylabel="layer", aspect="equal")
    return mesh
