"""Similarity of heads: how alike the heads of each attention type attend, in the unpruned model (figure of our own).

Rows and columns are heads in the order of their layers; a cell is the mean Jensen-Shannon distance of two heads' attention,
0 for heads that always attend alike, 1 for heads that never give weight to the same token. Blocks along the diagonal that are
lighter than what surrounds them are layers whose heads do alike.
"""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.inputs import Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

PAIR_COLUMNS = ("type", "layer", "head", "other_layer", "other_head", "distance", "queries")
COLUMNS = ["corpus", *PAIR_COLUMNS]
DISTANCES = matplotlib.colors.LinearSegmentedColormap.from_list("distances", ["#FFF8E5", "#E39A4A", "#6B2A17"])


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The pairs of heads of each corpus: corpus, and the columns of the similarity stage, each pair once."""
    frames = [table.assign(corpus=title)[COLUMNS] for title, table in tables.items() if len(table)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def draw(pairs: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw one row of three panels per corpus; a type with fewer than two heads says so."""
    known = pairs["distance"].dropna()
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    heights = [2.4 if title in set(pairs["corpus"]) else 0.7 for title in titles]
    figure = Figure(figsize=(style.DOUBLE, sum(heights) + 0.2), layout="constrained")
    rows = figure.subfigures(len(titles), 1, squeeze=False, height_ratios=heights)[:, 0]
    for row, title in zip(rows, titles, strict=True):
        own = pairs[pairs["corpus"] == title]
        row.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
        panels = row.subplots(1, len(style.TYPES))
        meshes = []
        for axes, (kind, (name, _)) in zip(panels, style.TYPES.items(), strict=True):
            here = own[own["type"] == kind]
            if here["distance"].notna().any():
                axes.set_title(f"{name} (n = {here['queries'].iloc[0]:,})", size=6.5)
                meshes.append(_panel(axes, here, low=low, high=high))
            else:
                why = "fewer than two heads" if here.empty else "no target sentences"
                style.message(axes, f"{name}: {why}", inches=style.DOUBLE / 3 - 0.3)
        if meshes:
            bar = row.colorbar(meshes[0], ax=list(panels), pad=0.01, aspect=18)
            bar.outline.set_visible(False)
            bar.set_label("Jensen-Shannon distance")
    return figure


def _panel(axes: Axes, pairs: pd.DataFrame, *, low: float, high: float) -> QuadMesh:
    """One type of one model: the symmetric matrix of distances, its layers set apart by lines."""
    ends = [pairs[["layer", "head"]], pairs[["other_layer", "other_head"]].set_axis(["layer", "head"], axis=1)]
    heads = sorted(set(pd.concat(ends).itertuples(index=False, name=None)))
    place = {head: number for number, head in enumerate(heads)}
    matrix = np.ma.masked_all((len(heads), len(heads)))
    for pair in pairs.to_dict("records"):
        i, j = place[pair["layer"], pair["head"]], place[pair["other_layer"], pair["other_head"]]
        matrix[i, j] = matrix[j, i] = pair["distance"]
    edges = np.arange(len(heads) + 1) - 0.5
    mesh = axes.pcolormesh(edges, edges, matrix, cmap=DISTANCES, vmin=low, vmax=high)
    layers = [layer for layer, _ in heads]
    starts = [number for number in range(1, len(heads)) if layers[number] != layers[number - 1]]
    for start in starts:
        axes.axhline(start - 0.5, color="white", linewidth=1.2)
        axes.axvline(start - 0.5, color="white", linewidth=1.2)
    bounds = [0, *starts, len(heads)]
    middles = [(first + last - 1) / 2 for first, last in zip(bounds, bounds[1:])]
    names = [str(layers[start]) for start in bounds[:-1]]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names)
    axes.set(xlim=(-0.5, len(heads) - 0.5), ylim=(len(heads) - 0.5, -0.5), xlabel="layer", aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("layer")
    return mesh


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["pairs"])
    titles = Titles.model_validate(args.settings).titles
    pairs = numbers(read_all(args.pairs, titles, columns=PAIR_COLUMNS))
    save_figure(args.output, pairs, lambda: draw(pairs, titles=titles))


if __name__ == "__main__":
    run(main)
