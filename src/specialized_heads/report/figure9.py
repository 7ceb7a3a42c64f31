"""Figure 9: how many heads of each attention type stay active as more heads are pruned (section 6.3.2).

Scope `all`: the encoder's and the decoder's self-attention and cross-attention compete for the same penalty. One
panel per corpus, and one with the paper's own models, which its table 2 lists. Models pruned by λ and to a number of heads
are lines of their own.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

COLUMNS = [
    "corpus", "kind", "lam", "asked", "seeds", "type", "pruned", "pruned_low", "pruned_high", "active",
    "active_low", "active_high", "heads",
]  # fmt: skip
PANELS = 3  # per row


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Points of every corpus that has models pruned with scope `all`, then the paper's.

    Returns:
        one row per target and attention type: corpus, kind (baseline, pruned, reported), lam or asked (number of heads), seeds
        (how many), type, pruned (heads of all types), active (heads of this type), both with `_low` and `_high` (range
        over seeds), heads (of this type, before pruning). No rows where nothing was pruned.
    """
    rows = []
    for title, scores in tables.items():
        models = sweep.models(scores, scope="all")
        for point, same in sweep.points(models):
            for kind in style.TYPES:
                row = {"corpus": title, "type": kind} | point
                row |= sweep.spread(same["pruned"], "pruned") | sweep.spread(same[f"{kind}_total"], "active")
                rows.append(row | {"heads": models[f"{kind}_total"].max()})
    if rows:
        rows += _reported()
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus and one for each of the paper's corpora."""
    if points.empty:
        return style.message_figure(f"Figure 9: {sweep.NO_PRUNED} (scope: all)", width=style.DOUBLE)
    corpora = dict(list(points.groupby("corpus", sort=False)))
    both = sweep.both_kinds(points)
    rows = -(-len(corpora) // PANELS)
    figure = Figure(figsize=(style.DOUBLE, 2.0 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, PANELS, squeeze=False).ravel()
    for axes, (corpus, own) in zip(panels, corpora.items(), strict=False):
        for kind, (_, look) in style.TYPES.items():
            for series, line in sweep.split(own[own["type"] == kind], look, both=both):
                sweep.line(axes, series, x="pruned", y="active", look=line)
        heads = own.groupby("type")["heads"].first()
        # The line on which every type loses the same share of its heads.
        alike = axes.plot([0, heads.sum()], [heads.max(), 0], color="#AAAAAA", linewidth=0.7, zorder=0)
        axes.set(xlim=(-0.02 * heads.sum(), heads.sum()), ylim=(-0.03 * heads.max(), 1.05 * heads.max()))
        axes.set(xlabel=f"heads pruned, of {heads.sum():.0f}", ylabel=f"active heads, of {heads.max():.0f}")
        axes.set_title(style.wrap(corpus + sweep.seeds_note(own), inches=style.DOUBLE / PANELS - 0.1, size=7), size=7)
        axes.grid(axis="y")
    for axes in panels[len(corpora) :]:
        axes.set_axis_off()
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.line) for _, look in style.TYPES.values()
    ]
    labels = [*(name for name, _ in style.TYPES.values()), "all types pruned alike", *[sweep.ASKED_LABEL] * both]
    figure.legend([*handles, *alike, *sweep.key(both=both)], labels, loc="outside lower center", ncols=3 if both else 4)
    return figure


def _reported() -> list[dict]:
    """The paper's models (table 2) and, for each of its corpora, the unpruned one."""
    whole = paper.HEADS_PER_TYPE
    rows = []
    for corpus in (paper.WMT, paper.SUBTITLES):
        models = [(whole, whole, whole)] + [(r.encoder, r.decoder, r.cross) for r in paper.TABLE2 if r.corpus == corpus]
        for active in models:
            for kind, count in zip(style.TYPES, active, strict=True):
                row = {"corpus": corpus, "type": kind, "pruned": 3 * whole - sum(active), "active": count}
                rows.append(row | {"heads": whole, "kind": "reported"})
    return rows


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    points = numbers(read_all(args.scores, titles, columns=SCORE_COLUMNS))
    save_figure(args.output, points, lambda: draw(points))


if __name__ == "__main__":
    run(main)
