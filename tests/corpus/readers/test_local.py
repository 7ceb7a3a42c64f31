"""Text of the user's own, and archives of OPUS: what is read from each format, and what a mistake
in it looks like."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from packing import zipped
from pydantic import ValidationError

from specialized_heads.corpus.pairs import SCHEMA
from specialized_heads.corpus.readers import local, opus
from specialized_heads.experiment.sources import Local, Opus
from specialized_heads.stage import UserError

TSV = "\ufeffA cat.\tКот.\tbook\tmore\r\n\nA dog.\tПёс.\tletters\t\n"
ROWS = [("A cat.", "Кот.", "book", ""), ("A dog.", "Пёс.", "letters", "")]


def counted(**source: Any) -> tuple[list[tuple[str, ...]], Counter[str]]:
    """The rows of a source (source, target, document, set), and the counts of what is dropped."""
    given = {key: str(value) if isinstance(value, Path) else value for key, value in source.items()}
    chosen = Local.model_validate({"kind": "local"} | given)
    files, counts = [Path(path) for path in chosen.files("")], Counter[str]()
    blocks = list(local.read_local(chosen, files, languages=("en", "ru"), counts=counts))
    assert all(batch.schema == SCHEMA for batch in blocks)
    return [tuple(row.values()) for batch in blocks for row in batch.to_pylist()], counts


def read(**source: Any) -> list[tuple[str, ...]]:
    return counted(**source)[0]


def test_tab_separated_pairs(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv.gz"
    path.write_bytes(gzip.compress(TSV.encode()))
    assert counted(path=path, group_by="document") == (ROWS, {"blank_line": 1})
    assert [row[2] for row in read(path=path)] == ["", ""]


def test_columns_are_chosen_and_a_tab_inside_a_text_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    good = "1\tA cat.\t7\tКот.\tbook\n3\tA dog.\t9\tПёс.\tletters\n" * 5
    odd = "2\tA\tdog.\t8\tПёс.\tbook\n"
    path.write_text(good + odd)
    rows, counts = counted(path=path, columns=[2, 4, 5], group_by="document")
    expected = ([row[:3] for row in ROWS] * 5, {"other_columns": 1})
    assert ([row[:3] for row in rows], counts) == expected
    assert [row[:3] for row in read(path=path, columns=[4, 2])] == [
        (b, a, "") for a, b, *_ in ROWS
    ] * 5
    path.write_text(good + odd * 2)
    said = r"own\.tsv: line 11: not 5 columns, .* so are 2 of 12 lines.*remove a header"
    with pytest.raises(UserError, match=said):
        read(path=path, columns=[2, 4, 5])


def test_a_line_with_a_tab_missing_is_counted_and_not_taken_for_a_pair(tmp_path: Path) -> None:
    path, analysis = tmp_path / "own.tsv", tmp_path / "analysis.txt"
    path.write_text("A cat.\tКот.\tbook\n" * 10 + "A dog. Пёс.\tletters\n")
    rows, counts = counted(path=path)
    assert ([row[:2] for row in rows], counts) == ([("A cat.", "Кот.")] * 10, {"other_columns": 1})
    path.write_text("A cat.\tКот.\tbook\n" * 10 + "A dog.\n")
    assert counted(path=path)[1] == {"other_columns": 1}
    analysis.write_text("A cat.\n" * 10 + "A dog\tand more.\n")
    rows, counts = counted(path=path, analysis=analysis)
    assert (len(rows), counts) == (20, {"other_columns": 2})


def test_held_out_sets_lose_no_line_and_names_of_columns_are_no_pair(tmp_path: Path) -> None:
    path, test = tmp_path / "own.tsv", tmp_path / "test.tsv"
    path.write_text("A cat.\tКот.\n" * 10)
    test.write_text("A cat.\tКот.\n" * 20 + "A\tdog.\tПёс.\n")
    with pytest.raises(UserError, match=r"test\.tsv: line 21: not 2 columns.*correct the line"):
        read(path=path, test=test)
    for names in ("source\ttarget", "SRC\tTGT", "ru\ten"):
        path.write_text(f"{names}\nA cat.\tКот.\n")
        with pytest.raises(UserError, match=r"own\.tsv: line 1: names of columns; remove"):
            read(path=path)


def test_few_texts_with_the_quotes_of_a_csv_writer_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "own.tsv"
    path.write_text("A cat.\tx\n" * 1000 + '"A ""dog""."\tx\n' * 9)
    assert len(read(path=path)) == 1009
    assert "perhaps quotes of a CSV writer in 9 of 1009 texts, such as" in caplog.text
    path.write_text("A cat.\tx\n" * 1000 + '"A ""dog""."\tx\n' * 10)
    with pytest.raises(UserError, match="quotes of a CSV writer in 10 of 1010 texts"):
        read(path=path)


def test_quotes_brackets_and_tags_of_a_text_itself_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    texts = [
        '"Yes."',
        '"Yes," he said, "and no."',
        "<laughs>",
        "[Music]",
        "{a}",
        '5"',
        "A cat.",
        "A dog.",
    ]
    path.write_text("".join(f"{text}\tx{text}\n" for text in texts))
    assert [row[:2] for row in read(path=path)] == [(text, f"x{text}") for text in texts]
    # Single cells of another file, quoted as a CSV writer does, in a text that has quotes of its
    # own.
    path.write_text("".join(f"{text}\tx\n" for text in [*texts, '"He said ""hi""."']))
    assert len(read(path=path)) == 9
    # One quotation after another, in a text without other quotes.
    path.write_text("A cat.\tx\n" * 200 + '"Yes.""No."\tx\n')
    assert len(read(path=path)) == 201


def test_two_texts(tmp_path: Path) -> None:
    source, target = tmp_path / "x.en", tmp_path / "x.ru"
    source.write_text("A cat.\n\nA dog.\n\n")
    target.write_text("Кот.\n\nПёс.\nИ всё.")
    rows = [("A cat.", "Кот.", "", ""), ("A dog.", "Пёс.", "", ""), ("", "И всё.", "", "")]
    assert counted(source_path=source, target_path=target) == (rows, {"blank_line": 1})
    source.write_text("a\n" * 3)
    with pytest.raises(UserError, match=r"x\.en and .*x\.ru differ in length: .* after line 3;"):
        read(source_path=source, target_path=target)


def test_held_out_sets_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("a\tb\tbook\n")
    (tmp_path / "dev.tsv").write_text("c\td\tletters\n")
    (tmp_path / "test.tsv").write_text("e\tf\n")
    (tmp_path / "analysis.txt").write_text("g\nh\n")
    paths = {"dev": "dev.tsv", "test": "test.tsv", "analysis": "analysis.txt", "path": "own.tsv"}
    paths = {key: tmp_path / name for key, name in paths.items()}
    sentences = [("a", "b", "", ""), ("c", "d", "", "dev"), ("e", "f", "", "test")]
    sentences += [("g", "", "", "analysis"), ("h", "", "", "analysis")]
    assert read(**paths) == sentences
    # an analysis set of sentences alone has one column
    (tmp_path / "own.tsv").write_text("1\ta\t2\tb\n")
    own = {"path": tmp_path / "own.tsv", "analysis": tmp_path / "analysis.txt", "columns": [2, 4]}
    assert read(**own) == [sentences[0], *sentences[3:]]
    (tmp_path / "own.tsv").write_text("a\tb\tbook\n")
    # A held-out set without documents is one.
    # no column holds a line feed
    documents = ["book", "letters", "test\n", "analysis\n", "analysis\n"]
    assert [row[2] for row in read(**paths, group_by="document")] == documents


def test_a_text_too_long_for_attention_is_refused_where_no_filter_drops_it(tmp_path: Path) -> None:
    paths = {key: tmp_path / f"{key}.tsv" for key in ("path", "test")}
    for path in paths.values():
        path.write_text("a\tb\n" + "a" * 10_001 + "\tb\n")
    assert len(read(path=paths["path"])) == 2
    said = r"test\.tsv: line 2: 10,001 characters; held-out sets are not filtered"
    with pytest.raises(UserError, match=said):
        read(**paths)


@pytest.mark.parametrize(
    ("content", "group_by", "message"),
    [
        (b"\nA dog. Un chien.\n", "sentence", r"own\.tsv: line 2: no tab; .*`columns`"),
        (b"A cat.\tUn chat.\tbook\nA dog.\tUn\n", "document", r"line 2: no document .* group_by"),
        (b"A cat.\tUn chat.\nA dog.\tUn chi\xe9n.\n", "sentence", "line 2: not UTF-8"),
        (b"A cat.\tUn chat.\r\nA dog.\tUn\rchien.\r\n", "sentence", "line 2: a carriage return"),
        ("A cat.\tUn chat.\n".encode("utf-16-be"), "sentence", "line 1: a NUL or escape character"),
        (b"1.\t2.\n", "sentence", "column 1 has no letter in any line; sentences need letters"),
        (b"1\tA cat.\t7\tUn chat.\n2\tA dog.\t8\tUn\n", "sentence", "column 1 has no letter"),
        (b"\n  \n", "sentence", r"own\.tsv: no line has text"),
    ],
)
def test_mistakes_in_lines_name_file_line_and_remedy(tmp_path, content, group_by, message) -> None:
    (tmp_path / "own.tsv").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read(path=tmp_path / "own.tsv", group_by=group_by)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"path": "a", "source_path": "b", "target_path": "c"},
        {"source_path": "b"},
        {"path": "a", "target_path": "c"},
        {"source_path": "b", "target_path": "c", "group_by": "document"},
        {"source_path": "b", "target_path": "c", "columns": [2, 1]},
        {"path": "a", "columns": [2, 2]},
        {"path": "a", "dev": "b", "test": "b"},
        {"path": "a", "columns": [2, 4], "group_by": "document"},
    ],
)
def test_a_configuration_that_names_no_one_way_to_read(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Local.model_validate({"kind": "local"} | keys)


# Archives in the layout of OPUS's Moses releases.

# Line ends inside of a sentence that are no line feeds must not count as such.
ENGLISH = "A cat.\nA dog.\u2028And a bird.\nA house.\n"
RUSSIAN = "Кот.\nПёс.\x85 И птица.\nДом.\n"


def rows(
    path: Path, files: dict[str, str], *, languages: tuple[str, str] = ("en", "ru")
) -> list[tuple[str, ...]]:
    """The rows of an archive with these files."""
    zipped(path, {"README": "About.", "LICENSE": "Free."} | files)
    source, counts = Opus(kind="opus", corpus="Books", version="v1"), Counter[str]()
    batches = opus.read_moses(source, [path], languages=languages, counts=counts)
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert not counts
    return found


def test_both_orders_of_files_and_both_directions(tmp_path: Path) -> None:
    texts = {"Books.en-ru.en": ENGLISH, "Books.en-ru.ru": RUSSIAN}
    expected = list(zip(ENGLISH.split("\n"), RUSSIAN.split("\n"), strict=True))[:3]
    for order in (texts, dict(reversed(texts.items()))):
        assert rows(tmp_path / "x.zip", order) == [(*pair, "", "") for pair in expected]
        backward = rows(tmp_path / "x.zip", order, languages=("ru", "en"))
        assert backward == [(*pair[::-1], "", "") for pair in expected]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"B.en-ru.en": ENGLISH, "B.en-ru.ru": "Кот.\n"}, "length: the second ends after line 1"),
        ({"B.en-ru.en": ENGLISH}, r"no files end in \.en-ru\.ru"),
        ({"B.en-ru.en": "1", "B.en-ru.ru": "1", "C.en-ru.ru": "1"}, r"2 files end in \.en-ru\.ru"),
    ],
)
def test_archives_that_are_no_parallel_text(tmp_path, files, message) -> None:
    with pytest.raises(UserError, match=message):
        rows(tmp_path / "x.zip", files)
