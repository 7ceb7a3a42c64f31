"""Package descriptions: the parts of a description, and which of them are paired."""

from collections import Counter
from pathlib import Path

import pytest

from specialized_heads.corpus.debian.descriptions import align, blocks, rows
from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import UserError


def test_parts_of_a_description() -> None:
    lines = [
        " A game for",
        " two. It is fun:",
        "  * fast,",
        "    and loud;",
        "  - slow.",
        " .",
        " It has:",
        "    a drawing",
        "   of itself",
        " and more.",
    ]
    assert blocks(lines) == [
        ("paragraph", "A game for two. It is fun:"),
        ("item", "fast, and loud;"),
        ("item", "slow."),
        ("paragraph", "It has:"),
        ("verbatim", "a drawing"),
        ("verbatim", "of itself"),
        ("paragraph", "and more."),
    ]


def test_parts_are_paired_and_divided_into_sentences() -> None:
    counts = Counter[str]()
    source = "board game\n One. Two.\n  * fast\n .\n   drawing"
    target = "настольная игра\n Раз. Два.\n  * быстро\n .\n   рисунок"
    assert list(align(source, target, counts=counts)) == [
        ("board game", "настольная игра"),
        ("One.", "Раз."),
        ("Two.", "Два."),
        ("fast", "быстро"),
    ]
    assert counts == {"verbatim": 1}


def test_another_structure_leaves_the_synopsis_only() -> None:
    counts = Counter[str]()
    assert list(align("board game\n One.\n .\n Two.", "игра\n Раз и два.", counts=counts)) == [("board game", "игра")]
    assert counts == {"structure_differs": 1}


def record(package: str, md5: str, language: str, text: str) -> str:
    return f"Package: {package}\nDescription-md5: {md5}\nDescription-{language}: {text}\n\n"


def test_translations_are_joined_with_the_text_that_they_are_of(tmp_path: Path) -> None:
    path = tmp_path / "descriptions.tar.gz"
    english = record("chess", "1", "en", "board game\n Fun.") + record("gawk", "2", "en", "a language")
    russian = record("gawk", "9", "ru", "устаревший перевод") + record("chess", "1", "ru", "настольная игра\n Весело.")
    pack(path, [("Translation-en/a", english.encode()), ("Translation-ru/a", russian.encode())])
    counts = Counter[str]()
    found = list(rows([path], language="ru", counts=counts))
    assert found == [("board game", "настольная игра", "descriptions/chess"), ("Fun.", "Весело.", "descriptions/chess")]
    assert counts["description_without_original"] == 1
    with pytest.raises(UserError, match="no package descriptions in de; there are en, ru"):
        list(rows([path], language="de", counts=counts))
