"""Figure 10: in which layers of the decoder heads stay active as more heads are pruned (section 6.3.2).

Scope `all`; layers in pairs, as in the paper, the last one alone where their number is odd, and both alone where there are two.
The figure shows shares of the group's heads instead of counts, so that a pair and a single layer can be compared.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.data import Tables, with_ends
from specialized_heads.report.voita import sweep
from specialized_heads.report.voita.figure9 import active_heads, shares
from specialized_heads.stage import heads_text

COLUMNS = ["corpus", "kind", "lam", "target_heads", "seeds", "type", "layers", *with_ends("pruned"), "active", "heads"]
COLUMNS += [*with_ends("share"), "all_heads"]
TYPES = ("decoder", "cross")


def numbers(tables: Tables) -> pd.DataFrame:
    """`active_heads` by type and layers."""
    return active_heads(tables, _groups, COLUMNS)


def _groups(models: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for kind in TYPES:
        kept = np.stack(models[f"{kind}_layers"].to_list())  # (models, L)
        size = 2 if kept.shape[1] > 2 else 1
        for first in range(0, kept.shape[1], size):
            last = min(first + size, kept.shape[1])
            layers = f"{first + 1}-{last}" if last > first + 1 else f"{last}"
            heads, active = kept.max(axis=0)[first:last].sum(), kept[:, first:last].sum(axis=1)
            yield {"type": kind, "layers": layers, "heads": heads, "active": active}


def draw(points: pd.DataFrame) -> Figure:
    """Draw two panels per corpus: self-attention of the decoder and cross-attention."""
    corpora = style.by(points, "corpus")
    drawn = Figure(figsize=(style.DOUBLE, 2.3 * len(corpora)), layout="constrained")
    blocks = drawn.subfigures(len(corpora), 1, squeeze=False)[:, 0]
    for block, (corpus, rows) in zip(blocks, corpora.items(), strict=True):
        block.suptitle(style.wrap(corpus + sweep.seeds_note(rows), inches=style.DOUBLE, size=8))
        total = rows["all_heads"].iloc[0]
        for axes, kind in zip(block.subplots(1, 2, sharey=True), TYPES, strict=True):
            heads = rows[rows["type"] == kind].groupby("layers", sort=False)["heads"].first()
            looks = {layers: style.ordered(number, len(heads)) for number, layers in enumerate(heads.index)}
            shares(axes, rows[rows["type"] == kind], "layers", looks, total=total)
            axes.set(title=style.TYPES[kind][0], xlabel=f"heads pruned, of {total} of all types")
        block.axes[0].set_ylabel("active heads in the group")
        names = [
            f"layer{'s' * ('-' in layers)} {layers.replace('-', '–')} ({heads_text(heads[layers])})" for layers in looks
        ]
        handles = [*map(style.key, looks.values(), names), *sweep.key(points)]
        block.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawn
