"""Figure 2: relevance and function of the encoder's self-attention heads on each of the other corpora.

All corpora share one scale of relevance, so that their heads can be compared.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import cells
from specialized_heads.report.data import Tables


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of all corpora but the first (`cells.ranked_heads`)."""
    return cells.ranked_heads(tables, tables.corpora()[1:])


def draw(heads: pd.DataFrame) -> Figure:
    return cells.draw(heads, across=min(2, heads["corpus"].nunique()), confidence=False)
