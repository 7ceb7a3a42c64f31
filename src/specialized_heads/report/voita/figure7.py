"""Figure 7: what it costs in BLEU to leave fewer encoder heads (section 6.2.1).

The difference in BLEU from the reference: the baseline, or the model trained for as long with λ 0 if that one differs from it.
Bars are 95% intervals of the paired bootstrap; with several seeds, the mean of theirs, as in the claims, with the lowest and the
highest seed beside it. The paper's two results are beside ours. A hollow marker differs from the reference at p < 0.05, for every
seed and in the same direction. A grey square has undecided gates, and does not count in the claims.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack, with_ends
from specialized_heads.report.voita import paper, sweep

COLUMNS = ["corpus", "kind", "lam", "target_heads", "seeds", *with_ends("heads", "share", "bleu", "difference")]
COLUMNS += ["difference_lowest", "difference_highest", "p_value", "decided", "reference", "sentences"]


def numbers(tables: Tables) -> pd.DataFrame:
    """Points of each corpus that has models with pruned encoder heads, then the paper's.

    The columns are those of `sweep.costs`.
    """
    corpora = style.by(tables.pruned(), "corpus")
    points = stack(
        [sweep.costs(scores, scope="encoder").assign(corpus=title) for title, scores in corpora.items()], COLUMNS
    )
    reported = pd.DataFrame(paper.FIGURE7).assign(kind="reported", reference="baseline")
    reported = reported.assign(share=reported["heads"] / paper.HEADS_PER_TYPE, difference=-reported["loss"])
    return stack([points, reported], COLUMNS) if len(points) else points


def draw(points: pd.DataFrame) -> Figure:
    """Draw the differences of each corpus, and the paper's."""
    corpora = style.by(points, "corpus")
    drawn = Figure(figsize=(style.DOUBLE, 2.6 + 0.13 * ((len(corpora) + 4) // 2)), layout="constrained")
    axes = drawn.add_subplot()
    handles = []
    for number, (corpus, rows) in enumerate(corpora.items()):
        if corpus in paper.MARKERS:
            point = {"color": style.PAPER_COLOUR, "marker": paper.MARKERS[corpus], "markersize": 6}
            handles += axes.plot(rows["share"], rows["difference"], zorder=4, label=corpus, linestyle="none", **point)
            continue
        look = style.series(number)
        for series, line in sweep.split(rows, look):
            # Where two models have equally many heads, the line comes from the stronger penalty: x falls as λ rises.
            sweep.line(axes, series.iloc[::-1], x="share", y="difference", look=line)
        for control in rows[rows["lam"] == 0].itertuples():
            place = {"xytext": (-5, 5 + 8 * number), "textcoords": "offset points", "ha": "right"}
            axes.annotate("λ 0", (control.share, control.difference), size=6.5, color=look.colour, **place)
        sizes = f"n = {rows['sentences'].iloc[0]:,.0f}" + sweep.seeds_note(rows, text=", mean of {} seeds")
        handles.append(style.key(look, f"{corpus}, {sizes}; reference: {sweep.reference_text(rows)}"))
    for handle in handles:
        handle.set_label(style.wrap(handle.get_label(), inches=style.DOUBLE / 2 - 0.4, size=6.5))
    axes.axhline(0, **style.REFERENCE)
    whole = {paper.HEADS_PER_TYPE, *points.loc[points["kind"] == "baseline", "heads"]}
    of = f"{whole.pop():.0f}" if len(whole) == 1 else "all"
    style.share_axis(axes, xlabel=f"encoder heads retained, share of {of}", ylabel="change in BLEU")
    sweep.widen(axes)
    handles += [
        Line2D([], [], label="reference", **style.REFERENCE),
        sweep.hollow_key(),
        *sweep.bars_key(points),
    ]
    drawn.legend(handles=[*handles, *sweep.key(points)], loc="outside lower center", ncols=2)
    return drawn
