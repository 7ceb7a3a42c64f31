"""Files of sentence pairs."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from specialized_heads.corpus.pairs import COLUMNS
from specialized_heads.tables import read_columns, write_table


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs in the order of their file; the three lists have the same length."""

    source: list[str]
    target: list[str]
    document: list[str]

    def __len__(self) -> int:
        return len(self.source)


def write_pairs(path: Path, pairs: Pairs) -> None:
    columns = {name: pa.array(getattr(pairs, name), pa.string()) for name in COLUMNS}
    write_table(path, pa.table(columns))


def read_pairs(path: Path) -> Pairs:
    return Pairs(*read_columns(path, *COLUMNS))
