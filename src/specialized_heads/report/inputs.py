"""What the figures read: the per-head, per-relation and per-model tables, each with the title of its corpus.

The order of paths and titles is the order in which corpora are shown.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from specialized_heads import tables
from specialized_heads.stage import Section, UserError

HEAD_COLUMNS = ("type", "layer", "head", "relevance", "confidence", "functions", "relations")
RELATION_COLUMNS = (
    "relation", "direction", "arcs", "baseline_offset", "baseline_accuracy", "offsets", "counts",
)  # fmt: skip
SCORE_COLUMNS = (
    "kind", "scope", "lam", "asked", "seed", "bleu", "bleu_low", "bleu_high", "p_value", "difference", "bleu_tokenised",
    "sentences", "encoder_heads", "decoder_heads", "cross_heads", "encoder_total", "decoder_total", "cross_total",
)  # fmt: skip


class Titles(Section):
    """Settings of most figures and tables: how each file's corpus is called, in the order of the files."""

    titles: list[str]


def by_title(paths: list[Path], titles: list[str]) -> dict[str, Path]:
    """The files by title of their corpus.

    Raises:
        UserError: paths and titles differ in number, or a title occurs twice.
    """
    if len(paths) != len(titles):
        raise UserError(f"settings: titles: {len(titles)} titles for {len(paths)} files; give one per file")
    if len(set(titles)) != len(titles):
        raise UserError("settings: titles: two corpora have the same title; figures could not tell them apart")
    return dict(zip(titles, paths, strict=True))


def read_all(paths: list[Path], titles: list[str], *, columns: Iterable[str]) -> dict[str, pd.DataFrame]:
    """Read one parquet table per corpus.

    Args:
        paths: the files.
        titles: the title of each one's corpus, all different.
        columns: what each file must hold.

    Raises:
        UserError: titles do not fit the files, or a file is missing or lacks a column.
    """
    return {title: read_table(path, columns) for title, path in by_title(paths, titles).items()}


def encoder_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The encoder rows of a per-head table, with `functions` as text: names joined by "; ", or "other"."""
    rows = heads[heads["type"] == "encoder"].copy()
    rows["functions"] = ["; ".join(functions) if len(functions) else "other" for functions in rows["functions"]]
    return rows


def read_log(path: Path) -> pd.DataFrame:
    """The log of a training, one row per record; a `UserError` where it is missing or damaged."""
    try:
        return pd.read_json(path, lines=True)
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{path}: cannot read it ({error}); delete it and run again") from None


def read_table(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """Read one parquet table that must hold these columns; a `UserError` where it is missing or lacks one."""
    frame = tables.read_table(path).to_pandas()
    missing = [column for column in columns if column not in frame]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing")
    return frame
