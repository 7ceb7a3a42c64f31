"""Figure 1: relevance, confidence and function of the encoder's self-attention heads, by layer and relevance.

One row of three panels per corpus; the paper shows one corpus here and the others in figure 2.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells, style
from specialized_heads.report.inputs import HEAD_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run


def draw(heads: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw the heads that `cells.ranked_heads` returns; a model without encoder heads is named in text."""
    models = {title: heads[heads["corpus"] == title] for title in titles}
    heights = [cells.CELL_HEIGHT * cells.deepest(model) + 0.65 for model in models.values()]
    figure = Figure(figsize=(style.DOUBLE, sum(heights) + 0.25), layout="constrained")
    rows = figure.subfigures(len(models), 1, height_ratios=heights, squeeze=False)[:, 0]
    for row, (title, model) in zip(rows, models.items(), strict=True):
        row.suptitle(style.wrap(f"{title}: {len(model)} encoder heads", inches=style.DOUBLE, size=8))
        if model.empty:
            style.message(row.subplots(), "no encoder head is left in this model", inches=style.DOUBLE)
            continue
        relevance, confidence, function = row.subplots(1, 3, width_ratios=[1.12, 1.12, 1])
        width = 1.75 / int(model["layer"].max())
        low, high = cells.relevance_range(model)
        meshes = {
            relevance: cells.value_grid(relevance, model, column="relevance", low=low, high=high, cell_width=width),
            confidence: cells.value_grid(confidence, model, column="confidence", low=0, high=1, cell_width=width),
        }
        for axes, mesh in meshes.items():
            row.colorbar(mesh, ax=axes, pad=0.02, aspect=18).outline.set_visible(False)
        cells.function_grid(function, model, cell_width=width)
        relevance.set(title="(a) relevance (LRP), share of layer", ylabel="rank by relevance")
        confidence.set(title="(b) confidence")
        function.set(title="(c) function (head no.)")
        for axes in (relevance, confidence, function):
            axes.set_xlabel("layer")
    style.function_legend(figure)
    return figure


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads"])
    titles = Titles.model_validate(args.settings).titles
    heads = cells.ranked_heads(read_all(args.heads, titles, columns=HEAD_COLUMNS))
    save_figure(args.output, heads, lambda: draw(heads, titles=titles))


if __name__ == "__main__":
    run(main)
