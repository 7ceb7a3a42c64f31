"""Figure 10: in which layers of the decoder heads stay active as more heads are pruned (section 6.3.2).

Scope `all`; layers in pairs, as in the paper, the last one alone where their number is odd, and both alone where there are two.
The figure shows shares of the group's heads instead of counts, so that a pair and a single layer can be compared.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack
from specialized_heads.report.voita import sweep

COLUMNS = [
    "corpus", "kind", "lam", "target_heads", "seeds", "type", "layers", "pruned", "pruned_low", "pruned_high",
    "active", "heads", "share", "share_low", "share_high", "all_heads",
]  # fmt: skip
TYPES = ("decoder", "cross")


def numbers(tables: Tables) -> pd.DataFrame:
    """Points of each corpus that has models pruned with scope `all`: one row per target, attention type and group of layers.

    pruned: heads of all types, of `all_heads`; active: heads of the group, of `heads` before pruning, also as a share; `_low` and
    `_high`: range over seeds.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        models = sweep.models(scores, scope="all")
        if len(models):
            groups = [group for kind in TYPES for group in _groups(models, kind)]
            rows = pd.concat([group.assign(place=place) for place, group in enumerate(groups)])
            keys = [*sweep.TARGET, "place", "type", "layers", "heads", "all_heads"]
            frames.append(sweep.over_seeds(rows, ["pruned", "active", "share"], keys).assign(corpus=title))
    return stack(frames, COLUMNS)


def _groups(models: pd.DataFrame, kind: str) -> list[pd.DataFrame]:
    """The models once per group of layers, with the heads of this type that are active there."""
    kept = np.stack(models[f"{kind}_layers"].to_list())  # (models, L)
    groups, size = [], 2 if kept.shape[1] > 2 else 1
    for first in range(0, kept.shape[1], size):
        last = min(first + size, kept.shape[1])
        heads, active = kept.max(axis=0)[first:last].sum(), kept[:, first:last].sum(axis=1)
        layers = f"{first + 1}-{last}" if last > first + 1 else f"{last}"
        groups.append(models.assign(type=kind, layers=layers, heads=heads, active=active, share=active / heads))
    return groups


def draw(points: pd.DataFrame) -> Figure:
    """Draw two panels per corpus: self-attention of the decoder and cross-attention."""
    if points.empty:
        return style.message_figure(f"Figure 10: {sweep.NO_PRUNED} (scope: all)", width=style.DOUBLE)
    corpora = style.by(points, "corpus")
    both = sweep.both_kinds(points)
    drawn = Figure(figsize=(style.DOUBLE, 2.3 * len(corpora)), layout="constrained")
    titles = [corpus + sweep.seeds_note(rows) for corpus, rows in corpora.items()]
    for block, rows in zip(style.blocks(drawn, titles), corpora.values(), strict=True):
        for axes, kind in zip(block.subplots(1, 2, sharey=True), TYPES, strict=True):
            groups = style.by(rows[rows["type"] == kind], "layers")
            handles = []
            for number, (layers, group) in enumerate(groups.items()):
                look = style.ordered(number, len(groups))
                for series, line in sweep.split(group, look, both=both):
                    sweep.line(axes, series, x="pruned", y="share", look=line)
                name = f"layers {layers.replace('-', '–')}" if "-" in layers else f"layer {layers}"
                handles.append(style.key(look, f"{name} ({group['heads'].iloc[0]} heads)"))
            heads = rows["all_heads"].iloc[0]
            axes.set(title=style.TYPES[kind][0], xlabel=f"heads pruned, of {heads} of all types")
            axes.set(xlim=(-0.02 * heads, heads), ylim=(-0.03, 1.05))
            axes.yaxis.set_major_formatter("{x:.0%}")
            axes.grid(axis="y")
        block.axes[0].set_ylabel("active heads in the group")
        block.legend(handles=[*handles, *sweep.key(both=both)], loc="outside lower center", ncols=3 + both)
    return drawn
