"""Table: what BERT has learned of each task, beside the most frequent label and a bag of words."""

from typing import Any

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import Files, stack
from specialized_heads.report.voita import sweep
from specialized_heads.stage import read_json

READS = {"baselines": Files(read_json), "scores": Files(read_json, by="runs")}
SETS = {"test": "matched", "second": "mismatched"}
COLUMNS = [
    "task", "set", "metric", "sentences", "seeds", "majority", "bag_of_words", "bag_of_words_low", "bag_of_words_high",
    "score", "score_low", "score_high", "margin",
]  # fmt: skip
CAPTION = (
    "Scores in percent of the fine-tuned BERT (95% bootstrap interval over sentences, or over several seeds, n, mean and range), "
    "of a logistic regression over the counts of subwords in each segment, and of the most frequent label; margin: BERT minus "
    "the better of these two. Matched: the domain of the training set; mismatched: another one."
)


def numbers(baselines: dict[str, Any], scores: dict[Model, Any]) -> pd.DataFrame:
    """One row per task and test set."""
    frames = []
    for task, others in baselines.items():
        for name in [name for name in SETS if name in others]:
            found = [score[name] | {"metric": score["metric"]} for of, score in scores.items() if of.corpus == task]
            rows = sweep.over_seeds(pd.DataFrame(found), ["score"], ["metric", "sentences"])
            bag = others[name]["bag_of_words"]
            known = {"bag_of_words": bag["score"], "majority": others[name]["majority"]}
            margin = rows["score"] - max(known.values())
            known |= {f"bag_of_words_{end}": bag[f"score_{end}"] for end in ("low", "high")}
            frames.append(rows.assign(task=task, set=SETS[name], margin=margin, **known))
    return stack(frames, COLUMNS)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text."""
    lines = [
        {
            "task": row["task"],
            "test set": row["set"],
            "sentences": f"{row['sentences']:,}",
            "n": str(row["seeds"]),
            "metric": row["metric"],
            "majority": f"{row['majority']:.1f}",
            "bag of words": _interval(row, "bag_of_words"),
            "BERT": _interval(row, "score"),
            "margin": style.minus(f"{row['margin']:+.1f}"),
        }
        for row in rows.to_dict("records")
    ]
    return sweep.without_constant(pd.DataFrame(lines))


def _interval(row: dict[str, Any], name: str) -> str:
    return sweep.value_text(row[name], low=row[f"{name}_low"], high=row[f"{name}_high"])
