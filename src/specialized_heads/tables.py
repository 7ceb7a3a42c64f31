"""Parquet tables, written atomically, with a checksum in every page that is verified on reading.

A page damaged by a disk or a copy is thus an error instead of wrong numbers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specialized_heads.stage import UserError, atomic

# The columns that name a head; layers and heads from 1.
HEAD = {"type": pa.string(), "layer": pa.int32(), "head": pa.int32()}


def write_table(path: Path, table: pa.Table, **options: Any) -> None:
    """Write a table atomically; options as for `pyarrow.parquet.write_table`."""
    with atomic(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True, **options)


def read_table(
    path: Path, *, columns: Iterable[str] | None = None, schema: pa.Schema | None = None
) -> pa.Table:
    """Read a table, or some of its columns; a `UserError` if something is missing or damaged."""
    wanted = list(columns or (schema.names if schema else ()))
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if missing := [name for name in wanted if name not in file.schema_arrow.names]:
                raise UserError(f"{path}: column {missing[0]} is missing")
            table = file.read(wanted or None)
        # Otherwise invalid UTF-8, or fewer rows than the file declares, would show only where they
        # are used.
        table.validate(full=True)
        return table.cast(schema) if schema else table
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_columns(path: Path, *names: str) -> list[list[Any]]:
    table = read_table(path, columns=names)
    return [table.column(name).to_pylist() for name in names]


def unreadable(path: Path, error: Exception, *, what: str = "a table") -> UserError:
    """The error for a parquet file that is missing, unreadable or damaged."""
    if isinstance(error, FileNotFoundError):
        return UserError(f"{path}: no such file")
    if isinstance(error, PermissionError):
        return UserError(f"{path}: permission denied; change its permissions and run again")
    reason = str(error).split("\n")[0].strip()
    said = f"not a parquet file of {what}, or a damaged one ({reason}); delete it and run again"
    return UserError(f"{path}: {said}")
