"""The input files of figures and tables: the files of each command-line option, and the corpus or model of each file."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from specialized_heads import tables
from specialized_heads.report.experiment import Model, Run, describe
from specialized_heads.stage import UserError

HEAD_COLUMNS = ("type", "layer", "head", "relevance", "confidence", "functions", "relations")
RELATION_COLUMNS = (
    "relation", "direction", "arcs", "baseline_offset", "baseline_accuracy", "offsets", "counts",
)  # fmt: skip
SCORE_COLUMNS = (
    "kind", "scope", "lam", "asked", "seed", "bleu", "bleu_low", "bleu_high", "p_value", "difference", "bleu_tokenised",
    "sentences", "encoder_heads", "decoder_heads", "cross_heads", "encoder_total", "decoder_total", "cross_total",
)  # fmt: skip
ABLATION_COLUMNS = ("what", "type", "layer", "head", "bleu", "bleu_full", "delta", "p_value", "sentences")
SYSTEMATIC_COLUMNS = (
    "pruned", "removed", "heads", "share", "bleu", "bleu_full", "delta", "p_value", "sentences",
)  # fmt: skip
SCORES = {f"score{end}": f"bleu{end}" for end in ("", "_low", "_high", "_full")}  # of classification: called as BLEU is


class Files(NamedTuple):
    """The files of an option: how one is read, and the setting that says what each belongs to, in their order.

    `read` is a function, or the columns that a parquet table must have. The setting holds titles if it is `titles`
    (of corpora) or `tasks`, and runs otherwise. An option without a setting takes a single file.
    """

    read: Callable[[Path], Any] | Sequence[str]
    by: str = "titles"

    @property
    def owners(self) -> type:
        """The type of the setting."""
        return list[str] if self.by in ("titles", "tasks") else list[Run]

    def one(self, path: Path) -> Any:
        """The contents of a file."""
        return self.read(path) if callable(self.read) else read_table(path, self.read)

    def several(self, paths: Sequence[Path], owners: Sequence[str | Run]) -> dict[str | Model, Any]:
        """The contents of each file, by the title or the model that it belongs to.

        Raises:
            UserError: files and owners differ in number, two owners are the same, or a file cannot be read.
        """
        one_per_file(self.by, owners, paths)
        if len(set(owners)) != len(owners):
            raise UserError(
                f"settings: {self.by}: two are the same, so figures could not tell them apart; make them different"
            )
        keys = [
            owner if isinstance(owner, str) else describe(owner.model, corpus=owner.corpus, seed=owner.seed)
            for owner in owners
        ]
        return dict(zip(keys, map(self.one, paths), strict=True))


def one_per_file(setting: str, values: Sequence[object], files: Collection[object]) -> None:
    """Check that a setting has one value per file; otherwise raise a `UserError`."""
    if len(values) != len(files):
        raise UserError(f"settings: {setting}: {len(values)} {setting} for {len(files)} files; give one per file")


def read_table(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """A parquet table with at least these columns; a `UserError` where it is missing, damaged or lacks one.

    What the tables of classification call a score has the names of BLEU.
    """
    frame = tables.read_table(path).to_pandas().rename(columns=SCORES)
    if missing := [column for column in columns if column not in frame]:
        raise UserError(f"{path}: column {missing[0]} is missing")
    return frame


def read_log(path: Path, *, column: str = "loss") -> pd.DataFrame:
    """The log of a training run, one row per record; a `UserError` unless it has `update` and this column."""
    try:
        records = pd.read_json(path, lines=True)
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}); delete it and run again") from None
    if not {"update", column} <= set(records):
        raise UserError(f"{path}: has no column {column}; it is the log of something else; delete it and run again")
    return records


def stack(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """These columns of the frames that have rows, one below the other; an empty table with them where none has."""
    filled = [frame.reindex(columns=columns) for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def stack_models(tables: dict[Model, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """These columns of the tables of several models, with the corpus, seed and moment of each."""
    frames = [table.assign(corpus=of.corpus, seed=of.seed, moment=of.moment) for of, table in tables.items()]
    return stack(frames, [*columns, "corpus", "seed", "moment"]).astype({"moment": "Int64"})


def encoder_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The encoder rows of a per-head table, with `functions` as text: names joined by "; ", or "other"."""
    rows = heads[heads["type"] == "encoder"].copy()
    rows["functions"] = ["; ".join(functions) if len(functions) else "other" for functions in rows["functions"]]
    return rows
