"""Figure 2: relevance and function of the encoder's self-attention heads on each of the other corpora.

All corpora share one scale of relevance, so that their heads can be compared.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells, style
from specialized_heads.report.data import Tables


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of all corpora but the first (`cells.ranked_heads`)."""
    return cells.ranked_heads(tables, tables.corpora()[1:])


def draw(heads: pd.DataFrame) -> Figure:
    """Draw the heads of `cells.ranked_heads`, two corpora side by side; one whose model has no heads gets a message."""
    titles = list(heads["corpus"].unique())
    heads = heads.dropna(subset="layer")
    if not titles:
        return style.message_figure("This experiment has one corpus; there is no other to compare it with.")
    across = min(2, len(titles))
    width = style.DOUBLE if across == 2 else style.SINGLE
    beside = [heads[heads["corpus"].isin(titles[start : start + across])] for start in range(0, len(titles), across)]
    heights = [cells.CELL_HEIGHT * cells.deepest(models) + 0.75 for models in beside]
    drawn = Figure(figsize=(width, sum(heights) + (0.25 if across == 2 else 0.4)), layout="constrained")
    blocks = drawn.subfigures(len(beside), across, height_ratios=heights, squeeze=False).flat
    for block, title in zip(blocks, titles, strict=False):  # the last block may stay empty
        model = heads[heads["corpus"] == title]
        block.suptitle(style.wrap(f"{title}: {len(model)} encoder heads", inches=width / across, size=8))
        if model.empty:
            style.message(block.subplots(), "no encoder head is left in this model", inches=width / across)
            continue
        relevance, function = block.subplots(1, 2, width_ratios=[1.22, 1])
        cell_width = 1.2 / int(model["layer"].max())
        cells.value_grid(block, relevance, model, "relevance", cells.relevance_range(heads), cell_width=cell_width)
        cells.function_grid(function, model, cell_width=cell_width)
        relevance.set(title="relevance, share of the layer", ylabel="rank by relevance")
        function.set(title="function (head no.)")
    style.function_legend(drawn)
    return drawn
