"""Normalisation: each step does what it says and counts what it changes."""

import sys
import unicodedata

import pytest

from specialized_heads.corpus.normalise import KEPT_FORMAT_CHARACTERS, normalise


def normal(text: str) -> str:
    return normalise(text)[0]


def test_what_is_changed_and_what_is_not() -> None:
    assert normal("  cafe\u0301\u00a0:\n\u202fun\u00adique\x00 ") == "café : unique"
    for seen in ("می\u200cخواهم", "ق\u06dd١", "\u0600١", "\U000110bd"):
        assert normal(seen) == seen
    assert normal("Sentence\x1fseparated\x85\u2028 \ufeff") == "Sentence separated"
    # Letters that an invisible character kept apart are composed, and so are Hangul letters.
    assert normal("e\u200b\u0301 \u1112\u1161\u11ab") == "é 한"
    assert [normal(unseen) for unseen in ("\u200b", "\u00a0\ufeff\u00ad", "\u200d \u200c", "\u2028")] == [""] * 4


@pytest.mark.parametrize(
    ("text", "expected", "steps"),
    [
        ("fine, “as it is”.", "fine, “as it is”.", set()),
        ("R&amp;D &quot;now&quot; &#x2019;", 'R&D "now" ’', {"entities"}),
        ("&amp;quot;twice&amp;amp;quot;", '"twice"', {"entities"}),
        ("AT&T &copy=1 &nosuch; a & b; &;", "AT&T &copy=1 &nosuch; a & b; &;", set()),
        (" a\u00a0b", "a b", {"white_space"}),
        ("a\u00adb", "ab", {"invisible"}),
        ("e\u0301", "é", {"composition"}),
        ("&#xAD;e\u0301  ", "é", {"entities", "white_space", "invisible", "composition"}),
    ],
)
def test_every_step_counts_the_texts_that_it_changes(text: str, expected: str, steps: set[str]) -> None:
    assert normalise(text) == (expected, steps)


def test_no_character_is_left_that_must_go() -> None:
    text = normal("a".join(map(chr, range(sys.maxunicode + 1))))
    assert unicodedata.is_normalized("NFC", text)
    assert not any(letter.isspace() for letter in text.replace(" ", ""))
    hidden = {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf")}
    assert hidden == set(KEPT_FORMAT_CHARACTERS)
    assert normal(text) == text
