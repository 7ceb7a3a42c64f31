"""Normalisation: each step does what it says, counts what it changes, and needs to look at few rows."""

import html
import random
import re
import unicodedata

import pyarrow as pa
import pytest

from specialized_heads.corpus.normalise import normalise, rows_to_normalise


def normal(text: str, *, entities: bool = True) -> str:
    found, _ = normalise(pa.array([text], pa.string()), entities=entities)
    return found[0].as_py()


def defined(text: str, *, entities: bool) -> str:
    """The definition, for one text."""
    if entities:
        for _ in range(3):
            text = re.sub(
                r"&(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});",
                lambda found: (
                    html.unescape(found[0]) if found[1][0] == "#" or f"{found[1]};" in html.entities.html5 else found[0]
                ),
                text,
                flags=re.ASCII,
            )
    text = "".join(" " if character.isspace() else character for character in text)
    signs = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd", "\u200c", "\u200d"}
    kept = [c for c in text if c in signs or unicodedata.category(c) not in ("Cc", "Cf")]
    return re.sub(" +", " ", unicodedata.normalize("NFC", "".join(kept))).strip(" ")


def test_what_is_changed_and_what_is_not() -> None:
    assert normal("  cafe\u0301\u00a0:\n\u202fun\u00adique\x00 ") == "café : unique"
    for seen in ("می\u200cخواهم", "ق\u06dd١", "\u0600١", "\U000110bd"):
        assert normal(seen) == seen
    assert normal("Don’t “quote” it…") == "Don’t “quote” it…"
    assert normal("Sentence\x1fseparated\x85\u2028 \ufeff") == "Sentence separated"
    # Letters that an invisible character kept apart are composed, and so are Hangul letters.
    assert normal("e\u200b\u0301 \u1112\u1161\u11ab") == "é 한"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R&amp;D &quot;now&quot;", 'R&D "now"'),
        ("it&#39;s &#x2019;", "it's ’"),
        ("&amp;quot;twice&amp;amp;quot;", '"twice"'),
        ("a&nbsp;&nbsp;b&#173;c", "a bc"),
        ("&eacute;&#0;", "é\ufffd"),
        ("AT&T &copy=1 &nosuch; a & b; &;", "AT&T &copy=1 &nosuch; a & b; &;"),
    ],
)
def test_entities(text: str, expected: str) -> None:
    assert normal(text) == expected
    plain = " ".join(text.split())
    assert normal(text, entities=False) == plain


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("fine, “as it is”.", set()),
        ("&lt;", {"entities"}),
        ("&nosuch;", set()),
        (" a", {"white_space"}),
        ("a\u00a0b", {"white_space"}),
        ("a\u00adb", {"invisible"}),
        ("e\u0301", {"composition"}),
        ("&#xAD;e\u0301  ", {"entities", "white_space", "invisible", "composition"}),
    ],
)
def test_every_step_counts_the_texts_that_it_changes(text: str, steps: set[str]) -> None:
    _, changed = normalise(pa.array(["a", text]), entities=True)
    assert {name for name, texts in changed.items() if texts.tolist() == [False, True]} == steps
    assert not any(texts.tolist()[0] for texts in changed.values())


def test_every_character_is_normalised_as_defined() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200), 0x10FFFD]
    texts = [f"a{chr(code)}e" for code in codes] + [f"{chr(code)}\u0301" for code in range(0x20, 0x3000)]
    found, _ = normalise(pa.array(texts), entities=True)
    assert found.to_pylist() == [defined(text, entities=True) for text in texts]


@pytest.mark.parametrize("entities", [True, False])
def test_random_text_is_normalised_as_defined_and_stays_so(entities: bool) -> None:
    choice = random.Random(1)
    parts = [*"aée\u0301\u0323\u200b\u200c\u00ad\u00a0  \t\n\r\x00\u1100\u1161\u11a8&😀\U000e0001Ж"]
    parts += ["&amp;", "amp;", "lt;", "#39;", "&quot;", "&#x200B;"]
    texts = ["".join(choice.choices(parts, k=choice.randint(0, 9))) for _ in range(5000)]
    found, changed = normalise(pa.array(texts), entities=entities)
    assert found.to_pylist() == [defined(text, entities=entities) for text in texts]
    assert changed["entities"].any() == entities
    if not entities:  # &amp;amp;amp;amp;lt; is decoded three times per run
        again, _ = normalise(found, entities=False)
        assert again.equals(found)


def test_ordinary_text_is_not_looked_at_character_by_character() -> None:
    texts = ["Plain text.", "«Обычный» текст — да…", "漢字とかな", "한국어", "naïve façade", "Q&A", "😀 ok", ""]
    assert rows_to_normalise(pa.array(texts), entities=True).tolist() == [5]
    assert rows_to_normalise(pa.array(texts), entities=False).tolist() == []
    assert rows_to_normalise(pa.array([], pa.string()), entities=True).tolist() == []
