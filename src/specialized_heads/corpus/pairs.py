"""Parallel text on disk: a parquet file with the string columns `source`, `target` and `document`, one row per pair.

A document is never divided between training and held-out sets. If the source has no documents, the column is empty, and the
clean stage derives them from the sentences. Before the split there is a fourth column, `set`: the held-out set (`dev`, `test`
or `analysis`) that the source assigns a pair to, empty for all other pairs.

A corpus of millions is never held as Python strings: stages pass it in blocks (Arrow record batches).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specialized_heads.languages import without_region
from specialized_heads.stage import UserError, atomic
from specialized_heads.tables import unreadable

SIDES = ("source", "target")
COLUMNS = (*SIDES, "document")
SCHEMA = pa.schema([(name, pa.string()) for name in (*COLUMNS, "set")])
HELD_OUT = ("analysis", "test", "dev")  # in the order of dealing
BLOCK = 65_536  # pairs per row group of a file
READ = 8_192  # pairs per block that is read: its data should fit into the caches of a processor
Blocks = Iterator[pa.RecordBatch]  # pairs in the columns of `SCHEMA`, in order


def check_languages(path: Path, known: tuple[str, str], wanted: tuple[str, str]) -> None:
    """Raise `UserError` if the languages of a text differ from those of the configuration; regions are ignored."""
    if known != (languages := tuple(map(without_region, wanted))):
        turned = "; for the other way, use its text as a source of kind local" if languages == known[::-1] else ""
        raise UserError(
            f"{path}: this text is {known[0]}-{known[1]}, and source_language and target_language of the corpus are "
            f"{wanted[0]} and {wanted[1]}; set them to {known[0]} and {known[1]}{turned}"
        )


def blocks(rows: Iterable[tuple[str, str, str]], *, set_: str = "") -> Blocks:
    """Blocks of pairs of one set, from rows of source, target and document."""
    rows = iter(rows)
    while some := list(islice(rows, BLOCK)):
        columns = [pa.array(column, pa.string()) for column in zip(*some, strict=True)]
        yield pa.record_batch([*columns, pa.repeat(set_, len(some))], schema=SCHEMA)


def write_blocks(path: Path, blocks: Iterable[pa.RecordBatch], *, schema: pa.Schema = SCHEMA) -> int:
    """Write blocks of any size as zstd parquet, atomically; returns the number of pairs."""
    total = 0
    # With checksums, damage is detected when a page is read.
    options = {"compression": "zstd", "write_page_checksum": True}
    with atomic(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in blocks:
            waiting.append(batch)
            total += batch.num_rows
            if sum(block.num_rows for block in waiting) >= BLOCK:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    return total


def read_blocks(path: Path, *, columns: Sequence[str] = tuple(SCHEMA.names)) -> Blocks:
    """The blocks of a file, in order, as strings; missing values, and a missing column `set`, are empty."""

    def text(batch: pa.RecordBatch, name: str) -> pa.StringArray:
        empty = name not in batch.schema.names
        return pa.repeat("", batch.num_rows) if empty else pc.fill_null(batch[name].cast(pa.string()), "")

    try:
        # Pre-buffering would read the whole file at the start.
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            if missing := set(columns) - {"set", *there}:
                raise UserError(f"{path}: column {min(missing)} is missing")
            for batch in file.iter_batches(READ, columns=there):
                yield pa.record_batch([text(batch, name) for name in columns], names=list(columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, what="sentence pairs") from None


def beside(path: Path, rows: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
    """The blocks of a file, each with its part of `rows`, a table or an array with a row per pair."""
    start = 0
    for block in read_blocks(path):
        yield block, rows[start : start + block.num_rows]
        start += block.num_rows


def select(path: Path, rows: np.ndarray, *, columns: Sequence[str] = tuple(SCHEMA.names)) -> Blocks:
    """The blocks of a file, reduced to some of its rows, which are in ascending order."""
    start = 0
    for block in read_blocks(path, columns=columns):
        here = rows[slice(*np.searchsorted(rows, [start, start + block.num_rows]))]
        if len(here):
            yield block.take(pa.array(here - start))
        start += block.num_rows
