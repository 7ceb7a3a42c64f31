"""BERT's classification tasks: what it has learned, its scores with fewer heads, and its speed
(Michel et al. 2019)."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.data import (
    Tables,
    in_order_of_importance,
    is_decided,
    joined,
    score_name,
    stack,
    with_ends,
)
from specialized_heads.stage import heads_text

SETS = {"": "matched", "second_": "mismatched"}  # start of the columns of a test set
KNOWN = [*with_ends("bag_of_words"), "majority"]
SCORES = [*with_ends("bleu"), *KNOWN, "sentences"]
TASKS_COLUMNS = ["task", "set", "metric", "sentences", "seeds", "majority"]
TASKS_COLUMNS += [*with_ends("bag_of_words", "score"), "margin"]
TASKS_CAPTION = (
    "Scores in percent of the fine-tuned BERT (95% bootstrap interval over sentences, or over "
    "several seeds, n, mean and range), of a logistic regression over the counts of subwords in "
    "each segment, and of the most frequent label; margin: BERT minus the better of these two. "
    "Matched: the domain of the training set; mismatched: another one."
)
METHODS = {"importance": "in order of importance, no training", "gates": "by gates, fine-tuned"}
PRUNING_COLUMNS = "task method lam target_heads seeds seed decided heads total share".split()
PRUNING_COLUMNS += [*with_ends("bleu", "delta"), "p_value", "metric"]
SMALL = 6.0  # points; larger losses do not show in the lower panels
MEASURED = ["sentences", "heads", "total", *with_ends("speed", "gain"), "parameters", "device"]
SPEED_CAPTION = (
    "Sentences per second with all heads and without the least important half, which is removed "
    "from the weights, and the gain: "
    "medians over rounds, in brackets the smallest and largest (on a CPU by the time that the "
    "thread computes); paper: "
    "the gain of bert-base on MNLI on a GPU (Michel et al. 2019, table 4)"
)


def tasks_numbers(tables: Tables) -> pd.DataFrame:
    """One row per task and test set."""
    frames = []
    for task, models in style.by(tables.tasks().query("kind == 'baseline'"), "corpus").items():
        for start, name in SETS.items():
            if f"{start}bleu" not in models or models[f"{start}bleu"].isna().any():
                continue
            names = {f"{start}{name}": name.replace("bleu", "score") for name in SCORES}
            own = models[list(names)].rename(columns=names).assign(metric=models["metric"])
            rows = sweep.over_seeds(own, ["score"], ["metric", "sentences"])
            known = own.iloc[0][KNOWN].to_dict()
            margin = rows["score"] - max(known["bag_of_words"], known["majority"])
            frames.append(rows.assign(task=task, set=name, margin=margin, **known))
    return stack(frames, TASKS_COLUMNS).astype({"sentences": int})


def tasks_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table: what BERT has learned of each task, beside the most frequent label and a bag of
    words."""
    lines = [
        {
            "task": row["task"],
            "test set": row["set"],
            "sentences": f"{row['sentences']:,}",
            "n": str(row["seeds"]),
            "metric": row["metric"],
            "majority": f"{row['majority']:.1f}",
            "bag of words": sweep.interval_text(row, "bag_of_words"),
            "BERT": sweep.interval_text(row, "score"),
            "margin": style.minus(f"{row['margin']:+.1f}"),
        }
        for row in rows.to_dict("records")
    ]
    return sweep.without_constant(pd.DataFrame(lines))


def pruning_numbers(tables: Tables) -> pd.DataFrame:
    """One row per task, method and number of heads left; the score is called bleu, as in the tables
    of translation."""
    names = {"corpus": "task", "heads": "total"}
    steps = (
        in_order_of_importance(tables)
        .query("kind == 'baseline' and metric != 'BLEU'")
        .rename(columns=names)
    )
    steps = steps.assign(method="importance", heads=steps["total"] - steps["removed"], decided=1.0)
    models = tables.tasks()
    whole = models[models["kind"] == "baseline"].groupby("corpus")["encoder_heads"].max()
    names = dict(zip(with_ends("difference"), with_ends("delta"), strict=True)) | {
        "encoder_heads": "heads"
    }
    gates = models[models["kind"] == "pruned"].rename(columns=names)
    decided = is_decided(gates).astype(float)
    gates = gates.assign(method="gates", total=gates["corpus"].map(whole), decided=decided).rename(
        columns={"corpus": "task"}
    )
    keys, values = ["task", "method", "lam", "target_heads", "total"], ["bleu", "delta", "decided"]
    # Importance removes the same numbers of heads from every seed; with gates, seeds of a target
    # may keep different ones.
    measured = [(steps, values, [*keys, "heads"]), (gates, [*values, "heads"], keys)]
    points = [
        sweep.over_seeds(*each, sort=False, p_values="delta") for each in measured if len(each[0])
    ]
    points = stack(
        [each.assign(share=each["heads"] / each["total"]) for each in points], PRUNING_COLUMNS
    )
    return points.assign(metric=score_name(models))


def pruning_draw(points: pd.DataFrame) -> Figure:
    """Figure: the score of each task against the share of BERT's heads that is left, by the methods
    of both papers.

    Left, heads removed in order of importance without training (Michel et al. 2019, figure 3);
    right, heads removed by gates during fine-tuning (Voita et al. 2019). Above, scores; below,
    small differences from the whole model, with their 95% bootstrap intervals over sentences, or
    the range over seeds. A filled marker differs from the whole model at p < 0.05; a grey square
    has undecided gates. The dotted line is the share of heads without which the paper's BERT loses
    nothing.
    """
    metric, tasks = points["metric"].iloc[0], style.by(points, "task")
    drawn, grid, _ = style.panels(4, across=2, height=2.0, more_height=0.4, sharey="row")
    for row, y in zip(grid, ("bleu", "delta"), strict=True):
        for axes, (method, title) in zip(row, METHODS.items(), strict=True):
            for number, rows in enumerate(tasks.values()):
                same = rows[rows["method"] == method]
                if len(same):
                    sweep.line(axes, same, x="share", y=y, look=style.series(number))
            style.share_axis(axes, "all", title=title if y == "bleu" else "")
        row[0].axvline(1 - paper.PRUNING_SHARES["BERT"], zorder=0, **style.PAPER_LINE)
    grid[0, 0].set_ylabel(metric)
    grid[1, 0].set(ylabel=f"change in {metric}", ylim=(-SMALL, 1.3 * max(1, points["delta"].max())))
    for axes in grid[1]:
        axes.axhline(0, **style.REFERENCE)
    handles = [
        style.key(style.series(number), task + sweep.seeds_note(rows))
        for number, (task, rows) in enumerate(tasks.items())
    ]
    text = f"Michel et al. 2019: no loss up to {paper.PRUNING_SHARES['BERT']:.0%} removed"
    handles += [
        Line2D([], [], label="whole model", **style.REFERENCE),
        Line2D([], [], label=text, **style.PAPER_LINE),
        *sweep.filled_key(points, "whole model"),
        *sweep.undecided_key(points),
    ]
    style.legend(drawn, handles, ncols=2)
    return drawn


def speed_numbers(tables: Tables, speed: dict[str, Path]) -> pd.DataFrame:
    """The rows of `speed.parquet` of each task, with the gain that the paper reports for the pruned
    model."""
    rows = joined(speed, MEASURED)
    return rows.assign(reported=rows["sentences"].map(paper.BERT_SPEED).where(rows["gain"].notna()))


def speed_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table of the speed of BERT with and without half of its heads, by sentences per batch
    (Michel et al. 2019, table 4).
    """
    lines = []
    for (task, sentences), same in rows.groupby(["task", "sentences"], sort=False):
        whole, part = same[same["gain"].isna()].iloc[0], same[same["gain"].notna()].iloc[0]
        line = {"task": task, "sentences per batch": str(sentences)}
        line |= {
            f"all {heads_text(whole['heads'])}": _range(whole),
            heads_text(part["heads"]): _range(part),
        }
        line["gain"] = (
            f"{_percent(part['gain'])} [{_percent(part['gain_low'])}, "
            f"{_percent(part['gain_high'])}]"
        )
        line["paper"] = "" if pd.isna(part["reported"]) else _percent(part["reported"])
        lines.append(line)
    return pd.DataFrame(lines)


def _range(row: pd.Series) -> str:
    return f"{row['speed']:,.0f} [{row['speed_low']:,.0f}, {row['speed_high']:,.0f}]"


def _percent(value: float) -> str:
    return style.minus(f"{value:+.1%}")


def speed_caption(rows: pd.DataFrame) -> str:
    return f"{SPEED_CAPTION} ({', '.join(rows['device'].unique())})."
