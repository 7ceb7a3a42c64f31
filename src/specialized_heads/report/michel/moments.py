"""Figure: share of its BLEU that the model keeps without its least important heads, at several steps of its training
(Michel et al. 2019, section 6).

Importance and BLEU are those of the model at that step. Heads of all types are removed together. For a classification task, it is
the share of what the model has learned: its score less that of the most frequent label.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.claims.evidence import MIN_LEARNED
from specialized_heads.report.claims.of_ablation import MIN_BLEU
from specialized_heads.report.data import Tables, in_order_of_importance, score_name, with_ends
from specialized_heads.report.voita import sweep

KEYS = ["corpus", "update", "removed", "share"]
COLUMNS = [*KEYS, "seeds", "bleu_full", *with_ends("kept"), "metric"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, moment of training (missing: its end) and number of removed heads; kept: BLEU over `bleu_full`.

    A seed whose whole model has less than 1 BLEU is left out; without any other, `kept` is missing. Those of tasks
    count from the most frequent label.
    """
    rows = in_order_of_importance(tables)
    rows = rows[rows["what"] == "all"]
    tasks = tables.tasks()
    floors = dict(zip(tasks["corpus"], tasks.get("majority", ())))
    floor = rows["corpus"].map(floors).astype(float).fillna(0.0)
    least = rows["corpus"].isin(list(floors)).map({True: MIN_LEARNED, False: MIN_BLEU}).astype(float)
    learned = rows["bleu_full"] - floor
    rows = rows.assign(kept=((rows["bleu"] - floor) / learned).where(learned >= least))
    usable = rows["kept"].notna()
    some = usable.groupby([rows[key] for key in KEYS], dropna=False).transform("any")
    points = sweep.over_seeds(rows[usable | ~some], ["bleu_full", "kept"], KEYS, sort=False)
    return points.assign(metric=score_name(rows))[COLUMNS].astype({"update": "Int64"})


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, one line per training step, from dark (early) to light."""
    drawn, panels = sweep.panel_per_corpus(points, height=2.4 + 0.09 * (points["update"].nunique() + 2))
    for axes, rows in panels:
        metric = rows["metric"].iloc[0]
        groups = list(rows.groupby("update", dropna=False))  # the finished model last
        for number, (moment, same) in enumerate(groups):
            name = "end of training" if pd.isna(moment) else f"{moment} updates"
            label = f"{name}: {same['bleu_full'].iloc[0]:.1f}" + ", not shown" * bool(same["kept"].isna().all())
            sweep.line(axes, same, x="share", y="kept", look=style.ordered(number, len(groups)), label=label)
        what = f"{metric}, share of the whole model's" if metric == "BLEU" else f"share of the learned {metric}"
        style.share_axis(axes, xlabel="heads removed, share of all", ylabel=what)
        axes.yaxis.set_major_formatter("{x:.0%}")
        low, high = min([0.0, *rows["kept_low"].dropna()]), max([1.0, *rows["kept_high"].dropna()])
        axes.set_ylim(low - 0.03 * (high - low), 1.05 * high)
        title = f"{metric} of the whole model after"
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2, title=title)
    return drawn
