"""Figure 1: relevance, confidence and function of the encoder's self-attention heads, by layer and relevance.

The first corpus; figure 2 shows the others.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells
from specialized_heads.report.data import Tables


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of the first corpus (`cells.ranked_heads`)."""
    return cells.ranked_heads(tables, tables.corpora()[:1])


def draw(heads: pd.DataFrame) -> Figure:
    return cells.draw(heads, across=1, confidence=True)
