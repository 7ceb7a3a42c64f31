"""Files of pairs: what is written is read again, blocks of any size make one file, and a wrong file is named."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specialized_heads.corpus.pairs import BLOCK, READ, SCHEMA, block, read_blocks, read_pairs, write_blocks
from specialized_heads.stage import UserError


def test_blocks_of_any_size_make_a_file_of_few_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "blocks.parquet"
    texts = [str(number) for number in range(2 * BLOCK + 5)]
    sizes = [1, 0, BLOCK - 2, 3, 700, len(texts)]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    blocks = [block(texts[start : start + size], texts[start : start + size]) for start, size in zip(starts, sizes)]
    assert write_blocks(path, blocks) == len(texts)
    assert pq.ParquetFile(path).num_row_groups == 2
    read = list(read_blocks(path))
    assert max(batch.num_rows for batch in read) <= READ
    assert [text for batch in read for text in batch["source"].to_pylist()] == texts
    assert all(batch.schema == SCHEMA for batch in read)


def test_other_types_and_missing_values_and_sets_are_made_up_for(tmp_path: Path) -> None:
    columns = {"target": pa.array(["b", None], pa.large_string()), "source": ["a", "c"], "document": [None, "d"]}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    (made,) = read_blocks(tmp_path / "pairs.parquet")
    assert made.schema == SCHEMA
    assert made.to_pylist() == [
        {"source": "a", "target": "b", "document": "", "set": ""},
        {"source": "c", "target": "", "document": "d", "set": ""},
    ]


@pytest.mark.parametrize("read", [read_pairs, lambda path: list(read_blocks(path))])
def test_a_file_that_is_no_file_of_pairs_is_named(tmp_path: Path, read) -> None:
    with pytest.raises(UserError, match="none.parquet: no such file"):
        read(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("a\tb\n")
    with pytest.raises(UserError, match="text.parquet: not a parquet file"):
        read(tmp_path / "text.parquet")
    pq.write_table(pa.table({"source": ["a"], "document": ["d"]}), tmp_path / "part.parquet")
    with pytest.raises(UserError, match=r"part\.parquet.*target"):
        read(tmp_path / "part.parquet")
