"""Figure 2: relevance and function of the encoder's self-attention heads on each of the other corpora.

All corpora share one scale of relevance, so that their heads can be compared.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report.data import Tables
from specialized_heads.report.voita.figure1 import drawn, ranked_heads


def numbers(tables: Tables) -> pd.DataFrame:
    """The heads of all corpora but the first (`ranked_heads`)."""
    return ranked_heads(tables, tables.corpora()[1:])


def draw(heads: pd.DataFrame) -> Figure:
    return drawn(heads, across=min(2, heads["corpus"].nunique()), confidence=False)
