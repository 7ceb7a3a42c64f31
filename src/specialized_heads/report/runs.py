"""What the figures of ablation read: one table per model, with the corpus, the seed and the moment of training it is of."""

from pathlib import Path

import pandas as pd

from specialized_heads.report.inputs import read_table
from specialized_heads.stage import Section, UserError

ABLATION_COLUMNS = ("what", "type", "layer", "head", "bleu", "bleu_full", "delta", "p_value", "sentences")
SYSTEMATIC_COLUMNS = (
    "pruned", "removed", "heads", "share", "bleu", "bleu_full", "delta", "p_value", "sentences",
)  # fmt: skip
SIGNIFICANT = 0.01  # Michel et al. mark differences at this level of the paired bootstrap
TOO_FEW = "no heads to ablate in these models"


class Run(Section):
    corpus: str  # its title
    seed: int
    moment: int | None  # updates of training; None: the finished model


class Runs(Section):
    """Settings: what the files are of, in their order."""

    runs: list[Run]


def read_runs(paths: list[Path], runs: list[Run], *, columns: tuple[str, ...]) -> pd.DataFrame:
    """All rows of the tables, each with `corpus`, `seed` and `moment` (missing for the finished model).

    Raises:
        UserError: runs do not fit the files, two are the same, or a file is missing or lacks a column.
    """
    if len(paths) != len(runs):
        raise UserError(f"settings: runs: {len(runs)} runs for {len(paths)} files; give one per file")
    if len(set(runs)) != len(runs):
        raise UserError("settings: runs: two corpora have the same title; figures could not tell them apart")
    frames = []
    for path, run in zip(paths, runs, strict=True):
        frames.append(read_table(path, columns).assign(**run.model_dump()))
    filled = [frame for frame in frames if len(frame)]
    found = (
        pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=["corpus", "seed", "moment", *columns])
    )
    return found.assign(moment=found["moment"].astype("Int64"))
