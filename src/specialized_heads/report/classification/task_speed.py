"""Table of the speed of BERT with and without half of its heads, by sentences per batch (Michel et al. 2019, table 4)."""

from pathlib import Path

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.data import Tables, joined, with_ends
from specialized_heads.report.voita import paper
from specialized_heads.stage import heads_text

MEASURED = ["sentences", "heads", "total", *with_ends("speed", "gain"), "parameters", "device"]
FILES = ("speed",)
CAPTION = (
    "Sentences per second with all heads and without the least important half, which is removed from the weights, and the gain: "
    "medians over rounds, in brackets the smallest and largest (on a CPU by the time that the thread computes); paper: "
    "the gain of bert-base on MNLI on a GPU (Michel et al. 2019, table 4)"
)


def numbers(tables: Tables, speed: dict[str, Path]) -> pd.DataFrame:
    """The rows of `speed.parquet` of each task, with the gain that the paper reports for the pruned model."""
    rows = joined(speed, MEASURED)
    return rows.assign(reported=rows["sentences"].map(paper.BERT_SPEED).where(rows["gain"].notna()))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (task, sentences), same in rows.groupby(["task", "sentences"], sort=False):
        whole, part = same[same["gain"].isna()].iloc[0], same[same["gain"].notna()].iloc[0]
        line = {"task": task, "sentences per batch": str(sentences)}
        line |= {f"all {heads_text(whole['heads'])}": _range(whole), heads_text(part["heads"]): _range(part)}
        line["gain"] = f"{_percent(part['gain'])} [{_percent(part['gain_low'])}, {_percent(part['gain_high'])}]"
        line["paper"] = "" if pd.isna(part["reported"]) else _percent(part["reported"])
        lines.append(line)
    return pd.DataFrame(lines)


def _range(row: pd.Series) -> str:
    return f"{row['speed']:,.0f} [{row['speed_low']:,.0f}, {row['speed_high']:,.0f}]"


def _percent(value: float) -> str:
    return style.minus(f"{value:+.1%}")


def caption(rows: pd.DataFrame) -> str:
    return f"{CAPTION} ({', '.join(rows['device'].unique())})."
