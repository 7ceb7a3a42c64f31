"""Figure 2: relevance and function of the encoder's self-attention heads on each further corpus.

One scale of relevance for all corpora, so that their heads can be compared. Where an experiment has a single corpus,
the figure says so.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells, style
from specialized_heads.report.inputs import HEAD_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run


def draw(heads: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw the heads that `cells.ranked_heads` returns, two corpora side by side; a model without heads is named in
    text."""
    if not titles:
        return style.message_figure("This experiment has one corpus; there is no further one to compare it with.")
    columns = min(2, len(titles))
    rows = -(-len(titles) // columns)
    width = style.DOUBLE if columns == 2 else style.SINGLE
    heights = []
    for row in range(rows):
        beside = heads[heads["corpus"].isin(titles[row * columns : (row + 1) * columns])]
        heights.append(cells.CELL_HEIGHT * cells.deepest(beside) + 0.75)
    figure = Figure(figsize=(width, sum(heights) + (0.25 if columns == 2 else 0.4)), layout="constrained")
    blocks = figure.subfigures(rows, columns, height_ratios=heights, squeeze=False).flat
    low, high = cells.relevance_range(heads)
    for block, title in zip(blocks, titles, strict=False):  # the last block may stay empty
        model = heads[heads["corpus"] == title]
        block.suptitle(style.wrap(f"{title}: {len(model)} encoder heads", inches=width / columns, size=8))
        if model.empty:
            style.message(block.subplots(), "no encoder head is left in this model", inches=width / columns)
            continue
        relevance, function = block.subplots(1, 2, width_ratios=[1.22, 1])
        cell_width = 1.2 / int(model["layer"].max())
        mesh = cells.value_grid(relevance, model, column="relevance", low=low, high=high, cell_width=cell_width)
        block.colorbar(mesh, ax=relevance, pad=0.02, aspect=18).outline.set_visible(False)
        cells.function_grid(function, model, cell_width=cell_width)
        relevance.set(title="relevance (LRP)", xlabel="layer", ylabel="rank by relevance")
        function.set(title="function (head no.)", xlabel="layer")
    style.function_legend(figure)
    return figure


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads"])
    titles = Titles.model_validate(args.settings).titles
    heads = cells.ranked_heads(read_all(args.heads, titles, columns=HEAD_COLUMNS))
    save_figure(args.output, heads, lambda: draw(heads, titles=titles))


if __name__ == "__main__":
    run(main)
