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


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_parses(tmp_path / "parses.parquet", PARSES)
    assert read_parses(tmp_path / "parses.parquet") == {1: PARSES[1], 3: PARSES[3]}


def test_columns_and_numbers_are_those_of_the_contract(tmp_path: Path) -> None:
    write_parses(tmp_path / "parses.parquet", PARSES)
    table = pq.read_table(tmp_path / "parses.parquet")
    assert table.column_names == ["sentence", "word", "form", "start", "end", "head", "relation", "upos"]
    assert table.column("sentence").to_pylist() == [1, 1, 3, 3]
    assert table.column("word").to_pylist() == [1, 2, 1, 2]


def test_equal_parses_give_equal_bytes(tmp_path: Path) -> None:
    write_parses(tmp_path / "a.parquet", PARSES)
    write_parses(tmp_path / "b.parquet", [list(words) for words in PARSES])
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
