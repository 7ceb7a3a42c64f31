"""Source opus: archives in the layout of OPUS's Moses releases."""

from collections import Counter
from pathlib import Path

import pytest
from packing import zipped

from specialized_heads.corpus.readers.opus import read
from specialized_heads.experiment.sources import Opus
from specialized_heads.stage import UserError

# Line ends inside of a sentence that are no line feeds must not count as such.
ENGLISH = "A cat.\nA dog.\u2028And a bird.\nA house.\n"
RUSSIAN = "Кот.\nПёс.\x85 И птица.\nДом.\n"


def release(path: Path, files: dict[str, str]) -> Path:
    return zipped(path, {"README": "About.", "LICENSE": "Free."} | files)


def rows(path: Path, *, languages: tuple[str, str] = ("en", "ru")) -> list[tuple[str, ...]]:
    source = Opus(kind="opus", corpus="Books", version="v1")
    counts: Counter[str] = Counter()
    batches = read(source, [path], source_language=languages[0], target_language=languages[1], counts=counts)
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert not counts
    return found


def test_both_orders_of_files_and_both_directions(tmp_path: Path) -> None:
    texts = {"Books.en-ru.en": ENGLISH, "Books.en-ru.ru": RUSSIAN}
    expected = list(zip(ENGLISH.split("\n"), RUSSIAN.split("\n"), strict=True))[:3]
    for number, order in enumerate((texts, dict(reversed(texts.items())))):
        path = release(tmp_path / f"{number}.zip", order)
        assert rows(path) == [(*pair, "", "") for pair in expected]
        assert rows(path, languages=("ru", "en")) == [(*pair[::-1], "", "") for pair in expected]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"B.en-ru.en": ENGLISH, "B.en-ru.ru": "Кот.\n"}, "differ in length: the second ends after line 1"),
        ({"B.en-ru.en": ENGLISH}, r"no files end in \.en-ru\.ru"),
        ({"B.en-ru.en": "1", "B.en-ru.ru": "1", "C.en-ru.ru": "1"}, r"2 files end in \.en-ru\.ru"),
    ],
)
def test_archives_that_are_no_parallel_text(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        rows(release(tmp_path / "x.zip", files))
