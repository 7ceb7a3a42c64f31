"""Figure: BLEU as heads are removed in order of importance, of all types together and of each type (Michel et al. 2019,
sections 4.2 and 5).

There is no training in between. A hollow marker differs from the whole model at p < 0.05, for every seed and in the same
direction.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.data import Tables, in_order_of_importance, with_ends
from specialized_heads.report.voita import paper, sweep

GROUPS = {"all": ("all types", style.SERIES[3])} | style.TYPES
KEYS = ["corpus", "what", "removed", "heads"]
COLUMNS = [*KEYS, "share", "seeds", *with_ends("bleu", "delta"), "p_value"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, group of heads (`what`: all, or a type) and number of removed heads; delta: from the whole model."""
    steps = in_order_of_importance(tables)
    steps = steps[(steps["kind"] == "baseline") & steps["corpus"].isin(tables.corpora())]
    rows = sweep.over_seeds(steps, ["bleu", "delta"], KEYS, sort=False, p_values="delta")
    return rows.assign(share=rows["removed"] / rows["heads"])[COLUMNS]


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, one line per group of heads."""
    drawn, panels = sweep.panel_per_corpus(points, height=2.5, more_height=0.7)
    for axes, rows in panels:
        for what, (_, look) in GROUPS.items():
            sweep.line(axes, rows[rows["what"] == what], x="share", y="bleu", look=look)
        axes.axhline(rows.loc[rows["removed"] == 0, "bleu"].iloc[0], **style.REFERENCE, zorder=0)
        style.share_axis(axes, xlabel="heads removed, share of their group", ylabel="BLEU")
        most = rows["bleu_high"].max() or 1.0
        axes.set_ylim(-0.03 * most, 1.15 * most)
        for name, share in paper.PRUNING_SHARES.items():
            axes.axvline(share, zorder=0, **style.PAPER_LINE)
            note = {"va": "top", "size": 6, "color": style.PAPER_COLOUR, "transform": axes.get_xaxis_transform()}
            axes.text(share + 0.01, 0.99, name, **note)
    handles = [style.key(look, name) for name, look in GROUPS.values()]
    text = style.wrap(paper.PRUNING, inches=drawn.get_figwidth() / 2 - 0.4, size=6.5)
    handles += [sweep.hollow_key("whole model"), Line2D([], [], label=text, **style.PAPER_LINE)]
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawn
