"""Stage raw: what is read from a file of the user's own, and what a mistake in it looks like."""

import gzip
import json
from pathlib import Path

import pytest

from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs
from specialized_heads.corpus.raw import draw, read_tsv
from specialized_heads.stage import UserError

RESOURCES = Path(__file__).parents[2] / "resources"


def test_reads_plain_and_gzip_alike(tmp_path: Path) -> None:
    text = "\ufeffA cat.\tКот.\tbook\r\n\nA dog.\tПёс.\tletters\n"
    (tmp_path / "own.tsv").write_bytes(text.encode())
    (tmp_path / "own.tsv.gz").write_bytes(gzip.compress(text.encode()))
    expected = Pairs(["A cat.", "A dog."], ["Кот.", "Пёс."], ["book", "letters"])
    assert read_tsv(tmp_path / "own.tsv", group_by="document") == expected
    assert read_tsv(tmp_path / "own.tsv.gz", group_by="document") == expected
    assert read_tsv(tmp_path / "own.tsv", group_by="sentence").document == ["", ""]


@pytest.mark.parametrize(
    ("content", "group_by", "message"),
    [
        (b"A cat.\tUn chat.\n\nA dog. Un chien.\n", "sentence", r"own\.tsv: line 3: no tab"),
        (b"A cat.\tUn chat.\tbook\nA dog.\tUn chien.\n", "document", r"line 2: no document .* group_by"),
        (b"A cat.\tUn chat.\nA dog.\tUn chi\xe9n.\n", "sentence", r"line 2: not UTF-8"),
        (b"", "sentence", r"own\.tsv: the file is empty"),
        (b"\n  \n", "sentence", r"own\.tsv: the file is empty"),
    ],
)
def test_mistakes_name_file_line_and_remedy(tmp_path: Path, content: bytes, group_by: str, message: str) -> None:
    (tmp_path / "own.tsv").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_tsv(tmp_path / "own.tsv", group_by=group_by)


def test_missing_and_truncated_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.tsv: no such file"):
        read_tsv(tmp_path / "none.tsv", group_by="sentence")
    (tmp_path / "own.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 1000)[:-10])
    with pytest.raises(UserError, match="not a complete gzip file"):
        read_tsv(tmp_path / "own.tsv.gz", group_by="sentence")


def test_limit_keeps_order_and_repeats(everyday: Pairs) -> None:
    drawn = draw(everyday, limit=50)
    rows = [everyday.source.index(text) for text in drawn.source]
    assert len(drawn) == 50
    assert rows == sorted(rows)
    assert rows != list(range(50))
    assert drawn == draw(everyday, limit=50)
    assert draw(everyday, limit=10_000) == everyday


def test_parquet_keeps_text_and_bytes(tmp_path: Path, everyday: Pairs) -> None:
    write_pairs(tmp_path / "1.parquet", everyday)
    write_pairs(tmp_path / "2.parquet", everyday)
    assert read_pairs(tmp_path / "1.parquet") == everyday
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_broken_parquet_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(UserError, match=r"x\.parquet: not a parquet file"):
        read_pairs(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["tatoeba_en_fr", "libreoffice_en_ru"])
def test_embedded_corpora_are_what_their_provenance_says(name: str) -> None:
    pairs = read_pairs(RESOURCES / name / "corpus.parquet")
    provenance = json.loads((RESOURCES / name / "provenance.json").read_text())
    assert len(pairs) == provenance["pairs"]
    assert f"{len(pairs)} pairs" in (RESOURCES / name / "README.md").read_text()
    assert all(pairs.source)
    assert all(pairs.target)
    assert not any("&amp;" in text or "&lt;" in text for text in pairs.source[:20_000])


def test_stage_reports_a_mistake_in_one_line(tmp_path: Path, stage) -> None:
    (tmp_path / "own.tsv").write_text("no tab here\n")
    done = stage(
        "raw",
        settings={"source": {"kind": "local", "path": "own.tsv"}},
        resource=tmp_path / "own.tsv",
        output=tmp_path / "raw.parquet",
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "raw.parquet").exists()
