"""Parallel text on disk: a parquet file with the string columns `source`, `target` and `document`, one row per pair.

The document is the unit that is never divided between training and held-out sets. An empty document means that the source
does not say; the clean stage then derives it from the sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specialized_heads.stage import UserError, atomic

COLUMNS = ("source", "target", "document")


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs in the order of their file; the three lists have one length."""

    source: list[str]
    target: list[str]
    document: list[str]

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Sequence[int]) -> "Pairs":
        """The pairs of the given rows, in the order of `rows`."""
        return Pairs(*([column[row] for row in rows] for column in (self.source, self.target, self.document)))


def write_pairs(path: Path, pairs: Pairs, *, compression_level: int = 3) -> None:
    """Write pairs as zstd parquet, atomically; equal pairs give equal bytes."""
    table = pa.table([pa.array(getattr(pairs, name), pa.string()) for name in COLUMNS], names=COLUMNS)
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=compression_level)


def read_pairs(path: Path) -> Pairs:
    """Read pairs.

    Raises:
        UserError: the file is missing, is not parquet, or lacks a column.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        table = pq.read_table(path, columns=list(COLUMNS))
    except pa.ArrowException as error:
        raise UserError(f"{path}: not a parquet file of sentence pairs ({error})") from None
    if missing := set(COLUMNS) - set(table.column_names):
        raise UserError(f"{path}: column {min(missing)} is missing; needed are {', '.join(COLUMNS)}")
    return Pairs(*(table[name].to_pylist() for name in COLUMNS))
