"""The tables of ablation and of pruning by importance: one per model, with its corpus, seed and training step."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from specialized_heads.report.inputs import one_per_file, read_table, stack
from specialized_heads.stage import Section, UserError

ABLATION_COLUMNS = ("what", "type", "layer", "head", "bleu", "bleu_full", "delta", "p_value", "sentences")
SYSTEMATIC_COLUMNS = (
    "pruned", "removed", "heads", "share", "bleu", "bleu_full", "delta", "p_value", "sentences",
)  # fmt: skip
SIGNIFICANT = 0.01  # the level at which Michel et al. mark differences (paired bootstrap)
TOO_FEW = "no heads to ablate in these models"


class Run(Section):
    corpus: str  # its title
    seed: int
    moment: int | None  # training updates; None: the finished model


class Runs(Section):
    """Settings: the model of each file."""

    runs: list[Run]

    def read(self, paths: list[Path], reader: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
        """The rows of all tables, each with `corpus`, `seed` and `moment` (missing for the finished model).

        Raises:
            UserError: runs and files differ in number, or a run is given twice.
        """
        one_per_file("runs", self.runs, paths)
        if len(set(self.runs)) != len(self.runs):
            raise UserError(
                "settings: runs: two are the same, so figures could not tell them apart; make them different"
            )
        frames = [reader(path).assign(**run.model_dump()) for path, run in zip(paths, self.runs, strict=True)]
        columns = list(dict.fromkeys(column for frame in frames for column in frame))
        rows = stack(frames, columns or ["corpus", "seed", "moment"])
        return rows.assign(moment=rows["moment"].astype("Int64"))


def read_runs(paths: list[Path], runs: list[Run], *, columns: tuple[str, ...]) -> pd.DataFrame:
    """`Runs.read` of tables that must have these columns, which the result has even without a table."""
    rows = Runs(runs=runs).read(paths, lambda path: read_table(path, columns))
    return rows.reindex(columns=list(dict.fromkeys([*rows.columns, *columns])))
