"""Message catalogues: which messages become pairs, and what is left of them as text."""

import struct
from collections import Counter
from pathlib import Path

import pytest

from specialized_heads.corpus.debian.catalogues import pairs, rows
from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import UserError

RUSSIAN = (
    "Content-Type: text/plain; charset={charset}\n"
    "Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\n"
)


def catalogue(messages: dict[str, str], *, charset: str = "UTF-8", order: str = "<") -> bytes:
    """A .mo file: header, tables of lengths and offsets, strings that end in NUL."""
    messages = {"": RUSSIAN.format(charset=charset)} | messages
    texts = sorted((key.encode(charset), value.encode(charset)) for key, value in messages.items())
    tables, strings, start = [], b"", 28 + 16 * len(texts)
    for column in (0, 1):
        for text in (pair[column] for pair in texts):
            tables += [len(text), start + len(strings)]
            strings += text + b"\0"
    header = [0x950412DE, 0, len(texts), 28, 28 + 8 * len(texts), 0, 0]
    return struct.pack(f"{order}{7 + len(tables)}I", *header, *tables) + strings


def found(source: str, target: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    counts = Counter[str]()
    some = pairs(source, target, counts=counts)
    return some, {reason: number for reason, number in counts.items() if number}


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        ("female^Mage", "Волшебница", ("Mage", "Волшебница")),
        ("?unit:Workers", "Рабочие", ("Workers", "Рабочие")),
        ("race+plural^Undead", "race+plural^Нежить", ("Undead", "Нежить")),
        ("<i>― The <b>Scroll</b></i>", "<i>― Свиток</i>", ("― The Scroll", "― Свиток")),
        ("[b]ERROR:[/b] no power", "[b]ОШИБКА:[/b] нет энергии", ("ERROR: no power", "ОШИБКА: нет энергии")),
        (
            "See <ref>dst='a' text='the king\\'s inn'</ref><img>src=b.png</img>.",
            "См. <ref>dst='a' text='трактир'</ref><img>src=b.png</img>.",
            ("See the king's inn.", "См. трактир."),
        ),
        ("Save _As", "Сохранить _как", ("Save As", "Сохранить как")),
        ("E&xit", "В&ыход", ("Exit", "Выход")),
        ("Set file_name", "Задайте file_name", ("Set file_name", "Задайте file_name")),
        ("_OK", "_OK", ("OK", "OK")),
        ("R&D of S&T &amp; more", "НИОКР &amp; др.", ("R&D of S&T &amp; more", "НИОКР &amp; др.")),
        ("Wrapped\nline", "Строка\nпереносится", ("Wrapped line", "Строка переносится")),
        ("About 5 % of x < y", "Около 5 % из x < y", ("About 5 % of x < y", "Около 5 % из x < y")),
    ],
)
def test_text_of_a_message(source: str, target: str, pair: tuple[str, str]) -> None:
    assert found(source, target) == ([pair], {})


@pytest.mark.parametrize(
    "gap", ["%s", "%1$s", "%d%%", "%(name)s", "%1", "$unit.name|", "${home}", "{0}", "{name}", "%lu", "%player%"]
)
def test_messages_with_gaps_are_dropped_and_counted(gap: str) -> None:
    assert found(f"Hello, {gap}!", f"Привет, {gap}!") == ([], {"placeholder": 1})


def test_shortcut_on_one_side_is_dropped_and_counted() -> None:
    assert found("_File", "Файл") == ([], {"shortcut": 1})


def test_paragraphs_and_sentences_are_paired_where_both_sides_agree() -> None:
    some, _ = found("One. Two.\n\nThree.", "Раз. Два.\n\nТри.")
    assert some == [("One.", "Раз."), ("Two.", "Два."), ("Three.", "Три.")]
    some, _ = found("One. Two.\n\nThree.", "Раз и два. Три.")
    assert some == [("One. Two. Three.", "Раз и два. Три.")]


def test_parts_without_words_are_counted() -> None:
    assert found("...\n\nYes.", "...\n\nДа.") == ([("Yes.", "Да.")], {"no_text": 1})
    assert found("<img>src=a.png</img>", "<img>src=b.png</img>") == ([], {"no_text": 1})


@pytest.mark.parametrize(("charset", "order"), [("UTF-8", "<"), ("KOI8-R", ">")])
def test_a_package_gives_its_catalogues_as_documents(tmp_path: Path, charset: str, order: str) -> None:
    data = catalogue(
        {
            "Attack!": "В атаку!",
            "button\4Close": "Закрыть",
            "near\4Close": "Рядом",
            "one day\0many days": "день\0дня\0дней",
            "Copied": "Copied",
            "translator-credits": "Иван",
        },
        charset=charset,
        order=order,
    )
    path = tmp_path / "game.tar.gz"
    places = ["share/locale/ru", "share/locale/fr", "lib/game/ru"]
    pack(path, [(f"usr/{place}/LC_MESSAGES/campaign.mo", data) for place in places])
    counts = Counter[str]()
    assert list(rows([path], language="ru", counts=counts)) == [
        ("Attack!", "В атаку!", "campaign"),
        ("Close", "Закрыть", "campaign"),
        ("Close", "Рядом", "campaign"),
        ("one day", "день", "campaign"),
        ("many days", "дней", "campaign"),
    ]
    assert counts["untranslated"] == 2


def test_a_language_that_is_missing_is_an_error_that_says_which_are_there(tmp_path: Path) -> None:
    path = tmp_path / "game.tar.gz"
    pack(path, [("usr/share/locale/fr/LC_MESSAGES/game.mo", catalogue({}))])
    with pytest.raises(UserError, match=r"no message catalogue in ru; it holds fr; remove the package from gettext"):
        list(rows([path], language="ru", counts=Counter()))


def changed(place: int, number: int) -> bytes:
    """A catalogue with another number at a byte."""
    data = bytearray(catalogue({"day\0days": "день\0дня"}))
    struct.pack_into("<I", data, place, number)
    return bytes(data)


def overlapping() -> bytes:
    """Five thousand messages of 50 000 letters each, in 60 000: half a gigabyte as text."""
    number = 5000
    table = b"".join(struct.pack("<2I", 50_000, 28 + 8 * number + n) for n in range(number))
    return struct.pack("<7I", 0x950412DE, 0, number, 28, 28, 0, 0) + table + b"a" * 60_000


BROKEN = {
    "nothing": b"no catalogue",
    "cut": catalogue({"Yes": "Да"})[:60],
    "four_thousand_million_messages": changed(8, 2**32 - 1),
    "offsets_beyond_the_end": changed(12, 2**31),
    "strings_that_overlap": overlapping(),
    "letters_of_no_encoding": catalogue({"day\0days": "день\0дня"}).replace(b"UTF-8", b"UTF-0"),
    "plural_that_divides_by_zero": catalogue({"day\0days": "день\0дня"}).replace(b"n%10==1", b"(n%0==1"),
    "plural_that_runs_python": catalogue({"day\0days": "день\0дня"}).replace(b"(n%10==1", b"open('p')"),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_catalogue_is_an_error_that_names_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "game.tar.gz"
    pack(path, [("ru/LC_MESSAGES/game.mo", data)])
    with pytest.raises(UserError, match=r"game\.tar\.gz: ru/LC_MESSAGES/game\.mo: not a complete message catalogue"):
        list(rows([path], language="ru", counts=Counter()))
