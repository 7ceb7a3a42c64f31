"""Figure: the score of each task against the share of BERT's heads that is left, by the methods of both papers.

Left, heads removed in order of importance without training (Michel et al. 2019, figure 3); right, heads removed by gates during
fine-tuning (Voita et al. 2019). Bars are 95% bootstrap intervals of the score over sentences, or the range over seeds.
A hollow marker differs from the whole model at p < 0.01. The dotted line is the share of heads without which the paper's BERT
loses nothing.
"""

from math import nan
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import SYSTEMATIC_COLUMNS, Files, stack, stack_models
from specialized_heads.report.voita import paper, sweep
from specialized_heads.report.voita.paper import SIGNIFICANT
from specialized_heads.stage import read_json

INTERVAL = ("bleu_low", "bleu_high")
READS = {
    "tables": Files((*SYSTEMATIC_COLUMNS, *INTERVAL), by="runs"),
    "pruned": Files(read_json, by="models"),
}
METHODS = {"importance": "in order of importance, no training", "gates": "by gates, fine-tuned"}
COLUMNS = [
    "task", "method", "lam", "asked", "seeds", "heads", "total", "share", "bleu", "bleu_low", "bleu_high", "delta", "p_value",
]  # fmt: skip
REPORTED = {"color": style.PAPER_COLOUR, "linewidth": 0.8, "linestyle": ":"}


def numbers(tables: dict[Model, pd.DataFrame], pruned: dict[Model, Any]) -> pd.DataFrame:
    """One row per task, method and number of heads left; the score is called bleu, as in the tables of translation."""
    steps = stack_models(tables, (*SYSTEMATIC_COLUMNS, *INTERVAL)).rename(columns={"corpus": "task", "heads": "total"})
    steps = steps.assign(method="importance", heads=steps["total"] - steps["removed"], lam=nan, asked=nan)
    gates = [
        {"task": of.corpus, "method": "gates", "lam": of.lam, "asked": of.asked, "seed": of.seed}
        | {"heads": found["heads"], "total": found["total"], "delta": found["test"]["delta"]}
        | {"p_value": found["test"]["p_value"], "bleu": found["test"]["score"]}
        | {f"bleu_{end}": found["test"][f"score_{end}"] for end in ("low", "high")}
        for of, found in pruned.items()
    ]
    keys, values = ["task", "method", "lam", "asked", "total"], ["bleu", "delta"]
    # Importance removes the same numbers of heads from every seed; with gates, seeds of a target may keep different ones.
    measured = [(steps, values, [*keys, "heads"]), (pd.DataFrame(gates), [*values, "heads"], keys)]
    points = [sweep.over_seeds(*each, sort=False, p_values="delta") for each in measured if len(each[0])]
    return stack([each.assign(share=each["heads"] / each["total"]) for each in points], COLUMNS)


def draw(points: pd.DataFrame, *, metric: str) -> Figure:
    """Draw one panel per method, one line per task."""
    if points.empty:
        return style.message_figure(f"Share of heads: {sweep.NO_HEADS}", width=style.DOUBLE)
    drawn = Figure(figsize=(style.DOUBLE, 2.9), layout="constrained")
    panels = drawn.subplots(1, 2, sharey=True)
    tasks = style.by(points, "task")
    for axes, (method, title) in zip(panels, METHODS.items(), strict=True):
        for number, rows in enumerate(tasks.values()):
            same = rows[rows["method"] == method]
            if len(same):
                sweep.line(axes, same, x="share", y="bleu", look=style.series(number), level=SIGNIFICANT)
        axes.set(title=title, xlabel="heads left, share of all", xlim=(1.03, -0.03))
        axes.xaxis.set_major_formatter("{x:.0%}")
        axes.grid(axis="y")
    panels[0].set_ylabel(metric)
    panels[0].axvline(1 - paper.PRUNING_SHARES["BERT"], zorder=0, **REPORTED)
    handles = [style.key(style.series(number), task) for number, task in enumerate(tasks)]
    handles.append(style.marker_key(f"differs from the whole model, p < {SIGNIFICANT}"))
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return drawn
