"""Figure 1: relevance, confidence and function of the encoder's self-attention heads, by layer and relevance.

The first corpus; figure 2 shows the others.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells, style
from specialized_heads.report.data import Tables


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of the first corpus (`cells.ranked_heads`)."""
    return cells.ranked_heads(tables, tables.corpora()[:1])


def draw(heads: pd.DataFrame) -> Figure:
    """Draw the heads of `cells.ranked_heads`; a corpus whose model has no encoder heads gets a message."""
    models = {corpus: rows.dropna(subset="layer") for corpus, rows in style.by(heads, "corpus").items()}
    heights = [cells.CELL_HEIGHT * cells.deepest(model) + 0.65 for model in models.values()]
    drawn = Figure(figsize=(style.DOUBLE, sum(heights) + 0.25), layout="constrained")
    headings = [f"{title}: {len(model)} encoder heads" for title, model in models.items()]
    for row, model in zip(style.blocks(drawn, headings, height_ratios=heights), models.values(), strict=True):
        if model.empty:
            style.message(row.subplots(), "no encoder head is left in this model", inches=style.DOUBLE)
            continue
        relevance, confidence, function = row.subplots(1, 3, width_ratios=[1.12, 1.12, 1])
        width = 1.75 / int(model["layer"].max())
        cells.value_grid(row, relevance, model, "relevance", cells.relevance_range(model), cell_width=width)
        cells.value_grid(row, confidence, model, "confidence", (0, 1), cell_width=width)
        cells.function_grid(function, model, cell_width=width)
        relevance.set(title="(a) relevance, share of the layer", ylabel="rank by relevance")
        confidence.set(title="(b) confidence")
        function.set(title="(c) function (head no.)")
    style.function_legend(drawn)
    return drawn
