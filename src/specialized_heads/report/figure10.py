"""Figure 10: in which layers of the decoder heads stay active as more heads are pruned (section 6.3.2).

Scope `all`; layers in pairs, as in the paper, the last one alone where their number is odd. Shares of the group's
heads and not counts, so that a pair and a single layer can be compared. Models pruned by λ and to a number of heads are
lines of their own.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style, sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

COLUMNS = [
    "corpus", "kind", "lam", "asked", "seeds", "type", "layers", "pruned", "pruned_low", "pruned_high",
    "active", "heads", "share", "share_low", "share_high", "all_heads",
]  # fmt: skip
TYPES = ("decoder", "cross")


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Points of every corpus that has models pruned with scope `all`.

    Returns:
        one row per target, attention type and group of layers: corpus, kind (baseline, pruned), lam or asked (number of
        heads), seeds (how many), type, layers ("1-2"), pruned (heads of all types), active (heads of the group, mean
        over seeds), heads (of the group, before pruning), share (active of heads), all_heads (of the model); `_low`
        and `_high` are ranges over seeds.
    """
    rows = []
    for title, scores in tables.items():
        models = sweep.models(scores, scope="all")
        for point, same in sweep.points(models):
            for kind in TYPES:
                full = np.max(np.stack(models[f"{kind}_heads"].to_list()), axis=0)  # heads per layer: (L,)
                kept = np.stack(same[f"{kind}_heads"].to_list())  # (seeds, L)
                for first in range(0, len(full), 2):
                    group = slice(first, first + 2)
                    active = pd.Series(kept[:, group].sum(1))
                    last = min(first + 2, len(full))
                    layers = f"{first + 1}-{last}" if last > first + 1 else f"{last}"
                    row = {"corpus": title, "type": kind, "layers": layers, "all_heads": same["all_heads"].iloc[0]}
                    row |= point
                    row |= sweep.spread(same["pruned"], "pruned") | sweep.spread(active / full[group].sum(), "share")
                    rows.append(row | {"active": active.mean(), "heads": full[group].sum()})
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw two panels per corpus: self-attention of the decoder and cross-attention."""
    if points.empty:
        return style.message_figure(f"Figure 10: {sweep.NO_PRUNED} (scope: all)", width=style.DOUBLE)
    corpora = dict(list(points.groupby("corpus", sort=False)))
    both = sweep.both_kinds(points)
    figure = Figure(figsize=(style.DOUBLE, 2.3 * len(corpora)), layout="constrained")
    blocks = figure.subfigures(len(corpora), 1, squeeze=False)[:, 0]
    for block, (corpus, own) in zip(blocks, corpora.items(), strict=True):
        block.suptitle(style.wrap(corpus + sweep.seeds_note(own), inches=style.DOUBLE, size=8))
        for axes, kind in zip(block.subplots(1, 2, sharey=True), TYPES, strict=True):
            groups = list(own[own["type"] == kind].groupby("layers", sort=False))
            handles = []
            for number, (layers, group) in enumerate(groups):
                which = f"layers {layers.replace('-', '–')}" if "-" in layers else f"layer {layers}"
                label, look = f"{which} ({group['heads'].iloc[0]} heads)", style.ordered(number, len(groups))
                for series, line in sweep.split(group, look, both=both):
                    sweep.line(axes, series, x="pruned", y="share", look=line)
                handles.append(Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.line, label=label))
            heads = own["all_heads"].iloc[0]
            axes.set(title=style.TYPES[kind][0], xlabel=f"heads pruned, of {heads} of all types", ylim=(-0.03, 1.05))
            axes.set_xlim(-0.02 * heads, heads)
            axes.yaxis.set_major_formatter("{x:.0%}")
            axes.grid(axis="y")
        block.axes[0].set_ylabel("active heads in the group")
        block.legend(handles=[*handles, *sweep.key(both=both)], loc="outside lower center", ncols=3 + both)
    return figure


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    points = numbers(read_all(args.scores, titles, columns=SCORE_COLUMNS))
    save_figure(args.output, points, lambda: draw(points))


if __name__ == "__main__":
    run(main)
