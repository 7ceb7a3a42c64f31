"""Figure: the score of each task against the share of BERT's heads that is left, by the methods of both papers.

Left, heads removed in order of importance without training (Michel et al. 2019, figure 3); right, heads removed by gates during
fine-tuning (Voita et al. 2019). Bars are 95% bootstrap intervals of the score over sentences, or the range over seeds.
A hollow marker differs from the whole model at p < 0.05; a grey square has undecided gates. The dotted line is the share of heads
without which the paper's BERT loses nothing.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.claims.evidence import is_decided
from specialized_heads.report.data import Tables, in_order_of_importance, score_name, stack, with_ends
from specialized_heads.report.voita import paper, sweep

METHODS = {"importance": "in order of importance, no training", "gates": "by gates, fine-tuned"}
COLUMNS = ["task", "method", "lam", "target_heads", "seeds", "decided", "heads", "total", "share"]
COLUMNS += [*with_ends("bleu", "delta"), "p_value", "metric"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per task, method and number of heads left; the score is called bleu, as in the tables of translation."""
    names = {"corpus": "task", "heads": "total"}
    steps = in_order_of_importance(tables).query("kind == 'baseline' and metric != 'BLEU'").rename(columns=names)
    steps = steps.assign(method="importance", heads=steps["total"] - steps["removed"], decided=1.0)
    models = tables.tasks()
    whole = models[models["kind"] == "baseline"].groupby("corpus")["encoder_heads"].max()
    names = dict(zip(with_ends("difference"), with_ends("delta"), strict=True)) | {"encoder_heads": "heads"}
    gates = models[models["kind"] == "pruned"].rename(columns=names)
    decided = is_decided(gates).astype(float)
    gates = gates.assign(method="gates", total=gates["corpus"].map(whole), decided=decided).rename(
        columns={"corpus": "task"}
    )
    keys, values = ["task", "method", "lam", "target_heads", "total"], ["bleu", "delta", "decided"]
    # Importance removes the same numbers of heads from every seed; with gates, seeds of a target may keep different ones.
    measured = [(steps, values, [*keys, "heads"]), (gates, [*values, "heads"], keys)]
    points = [sweep.over_seeds(*each, sort=False, p_values="delta") for each in measured if len(each[0])]
    points = stack([each.assign(share=each["heads"] / each["total"]) for each in points], COLUMNS)
    return points.assign(metric=score_name(models))


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per method, one line per task."""
    drawn, _, panels = style.panels(2, across=2, height=2.9, sharey=True)
    tasks = style.by(points, "task")
    for axes, (method, title) in zip(panels, METHODS.items(), strict=True):
        for number, rows in enumerate(tasks.values()):
            same = rows[rows["method"] == method]
            if len(same):
                sweep.line(axes, same, x="share", y="bleu", look=style.series(number))
        style.share_axis(axes, title=title, xlabel="heads left, share of all")
        axes.invert_xaxis()
    panels[0].set_ylabel(points["metric"].iloc[0])
    panels[0].axvline(1 - paper.PRUNING_SHARES["BERT"], zorder=0, **style.PAPER_LINE)
    handles = [style.key(style.series(number), task) for number, task in enumerate(tasks)]
    text = f"Michel et al. 2019: no loss up to {paper.PRUNING_SHARES['BERT']:.0%} removed"
    handles += [
        sweep.hollow_key("whole model"),
        Line2D([], [], label=text, **style.PAPER_LINE),
        *sweep.undecided_key(points),
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawn
