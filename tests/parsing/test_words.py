"""The parse table keeps every field of every word, and tells parsed sentences from unparsed ones."""

from pathlib import Path

import pyarrow.parquet as pq

from specialized_heads.parsing.words import Word, read_parses, write_parses

PARSES = [
    [],
    [Word("Я", 0, 1, 2, "nsubj", "PRON"), Word("иду", 2, 5, 0, "root", "VERB")],
    [],
    [Word("de", 0, 2, 0, "root", "ADP"), Word("le", 0, 2, 1, "det", "DET")],
    [],
]


def test_what_is_written_is_read_and_has_the_columns_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "parses.parquet"
    write_parses(path, PARSES)
    assert read_parses(path) == {1: PARSES[1], 3: PARSES[3]}
    content, table = path.read_bytes(), pq.read_table(path)
    write_parses(path, [list(words) for words in PARSES])
    assert path.read_bytes() == content
    assert table.column_names == ["sentence", "word", "form", "start", "end", "head", "relation", "upos"]
    assert table.column("sentence").to_pylist() == [1, 1, 3, 3]
    assert table.column("word").to_pylist() == [1, 2, 1, 2]
