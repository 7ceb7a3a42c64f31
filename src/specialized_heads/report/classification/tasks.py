"""Table: what BERT has learned of each task, beside the most frequent label and a bag of words."""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack, with_ends
from specialized_heads.report.voita import sweep

SETS = {"": "matched", "second_": "mismatched"}  # start of the columns of a test set
KNOWN = [*with_ends("bag_of_words"), "majority"]
SCORES = [*with_ends("bleu"), *KNOWN, "sentences"]
COLUMNS = ["task", "set", "metric", "sentences", "seeds", "majority", *with_ends("bag_of_words", "score"), "margin"]
CAPTION = (
    "Scores in percent of the fine-tuned BERT (95% bootstrap interval over sentences, or over several seeds, n, mean and range), "
    "of a logistic regression over the counts of subwords in each segment, and of the most frequent label; margin: BERT minus "
    "the better of these two. Matched: the domain of the training set; mismatched: another one."
)


def numbers(tables: Tables) -> pd.DataFrame:
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
    return stack(frames, COLUMNS).astype({"sentences": int})


def shown(rows: pd.DataFrame) -> pd.DataFrame:
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
