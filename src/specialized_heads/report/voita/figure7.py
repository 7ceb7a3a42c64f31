"""Figure 7: BLEU against the number of encoder heads that pruning leaves (section 6.2.1).

Left, BLEU of each corpus; bars are 95% bootstrap intervals over sentences or, with several seeds, their range. Right, the
difference from the baseline over the share of heads, which can be compared with the paper's two results. A hollow marker
differs from its baseline (paired bootstrap), for every seed and in the same direction.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack
from specialized_heads.report.voita import paper, sweep

COLUMNS = [
    "corpus", "kind", "lam", "target_heads", "seeds", "heads", "heads_low", "heads_high", "share", "share_low", "share_high",
    "bleu", "bleu_low", "bleu_high", "delta", "delta_low", "delta_high", "p_value", "sentences",
]  # fmt: skip


def numbers(tables: Tables) -> pd.DataFrame:
    """Points of each corpus that has models with pruned encoder heads, then the paper's.

    share: of the baseline's encoder heads; delta: BLEU minus that of the baseline of the same seed; `_low` and `_high`: see
    `sweep.over_seeds`.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        models = sweep.against_baseline(sweep.models(scores, scope="encoder"))
        full = models.loc[models["kind"] == "baseline"].set_index("seed")["encoder_heads"]
        models = models.assign(heads=models["encoder_heads"], share=models["encoder_heads"] / models["seed"].map(full))
        points = sweep.over_seeds(models, ["heads", "share", "bleu", "delta"], p_values="delta")
        frames.append(points.assign(corpus=title, sentences=models["sentences"].max()))
    points = stack(frames, COLUMNS)
    reported = pd.DataFrame(paper.FIGURE7)
    reported = reported.assign(kind="reported", share=reported["heads"] / paper.HEADS_PER_TYPE, delta=-reported["loss"])
    return stack([points, reported], COLUMNS) if len(points) else points


def draw(points: pd.DataFrame) -> Figure:
    """Draw the points, BLEU on the left, the difference from the baseline on the right."""
    if points.empty:
        return style.message_figure(f"Figure 7: {sweep.NO_PRUNED} (scope: encoder)", width=style.DOUBLE)
    corpora = style.by(points, "corpus")
    both = sweep.both_kinds(points)
    drawn = Figure(figsize=(style.DOUBLE, 2.4 + 0.13 * ((len(corpora) + 4) // 2)), layout="constrained")
    absolute, relative = drawn.subplots(1, 2)
    handles = []
    for number, (corpus, rows) in enumerate(corpora.items()):
        if corpus in paper.MARKERS:
            point = {"color": style.PAPER_COLOUR, "marker": paper.MARKERS[corpus], "markersize": 6}
            handles += relative.plot(rows["share"], rows["delta"], zorder=4, label=corpus, linestyle="none", **point)
            continue
        look = style.series(number)
        baseline = rows.loc[rows["kind"] == "baseline", "bleu"].iloc[0]
        absolute.axhline(baseline, **(style.REFERENCE | {"color": look.colour, "alpha": 0.7}))
        for axes, x, y in ((absolute, "heads", "bleu"), (relative, "share", "delta")):
            for series, line in sweep.split(rows, look, both=both):
                # Where two models have equally many heads, the line comes from the stronger penalty: x falls as λ rises.
                sweep.line(axes, series.iloc[::-1], x=x, y=y, look=line, level=sweep.SIGNIFICANT)
        handles.append(style.key(look, f"{corpus}, n = {rows['sentences'].iloc[0]:,.0f}{sweep.seeds_note(rows)}"))
    for handle in handles:
        handle.set_label(style.wrap(handle.get_label(), inches=style.DOUBLE / 2 - 0.4, size=6.5))
    relative.axhline(0, **style.REFERENCE)
    absolute.set(title="(a) BLEU", xlabel="encoder heads retained", ylabel="BLEU of n test sentences")
    absolute.set_xlim(-0.5, None)
    relative.set(title="(b) difference from the baseline", ylabel="BLEU − baseline", xlim=(-0.03, 1.03))
    relative.set_xlabel("encoder heads retained, share of all")
    relative.xaxis.set_major_formatter("{x:.0%}")
    for axes in (absolute, relative):
        axes.grid(axis="y")
        sweep.widen(axes)
    bars = "95% bootstrap interval" + (", or range of seeds" if points["seeds"].max() > 1 else "")
    handles += [
        Line2D([], [], label="baseline, no head pruned", **style.REFERENCE),
        style.marker_key(f"differs from the baseline, p < {sweep.SIGNIFICANT}"),
        style.marker_key(bars, marker="|", markersize=7),
    ]
    drawn.legend(handles=[*handles, *sweep.key(both=both)], loc="outside lower center", ncols=2)
    return drawn
