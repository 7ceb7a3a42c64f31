"""Parquet tables: what was written comes back, damage does not pass for other numbers, and what is missing is named."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specialized_heads.stage import UserError
from specialized_heads.tables import read_table, write_table

ROWS = [{"head": n, "share": n / 7, "said": [f"a{n}"]} for n in range(200)]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_table(tmp_path / "heads.parquet", TABLE)
    return tmp_path / "heads.parquet"


def test_what_is_written_is_read(path: Path) -> None:
    assert read_table(path) == TABLE
    assert read_table(path, columns=["said", "head"]) == TABLE.select(["said", "head"])
    assert read_table(path, schema=TABLE.schema) == TABLE
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_damaged_page_is_an_error_and_never_another_number(path: Path) -> None:
    whole = path.read_bytes()
    pages, noticed = len(whole) - pq.read_metadata(path).serialized_size - 8, 0
    for place in range(4, pages, 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_table(path) == TABLE  # some bits in the header of a page say nothing
        except UserError as error:
            assert str(error).startswith(f"{path}: not a parquet file of a table, or a damaged one")
            assert "\n" not in str(error)
            noticed += 1
    assert noticed > 0.8 * pages / 5


@pytest.mark.parametrize("size", [0, 3, 100, -1])
def test_a_cut_file(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"heads\.parquet: .*damaged.*; delete it and run again"):
        read_table(path)


def test_what_is_missing_is_named(path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.parquet: no such file"):
        read_table(path.with_name("none.parquet"))
    with pytest.raises(UserError, match=r"heads\.parquet: column layer is missing"):
        read_table(path, columns=["head", "layer"])
