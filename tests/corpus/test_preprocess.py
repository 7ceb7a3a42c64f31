"""Preprocessing: what Moses and lower case make of hard text, in each language, and the way back."""

import pytest
from sacremoses import MosesTokenizer

from specialized_heads.corpus.preprocess import apply, undo

TEXTS = [
    "Mr. Smith's dog doesn't bite, does it?",
    "It costs 1,000.50 dollars (or less)...",
    'He said: "Go on!" -- and went.',
    "A well-known e-mail: a&b <c> [d] | e.",
    "  Two  spaces,\u00a0and\u2009thin ones ",
    "ΟΔΥΣΣΕΥΣ, İzmir, STRAẞE, ﬁne ½",
    "http://www.example.com/a-b_c?d=1,2",
    "L'homme n'est pas là.",
    "Я не знаю, что-то «странное»…",
    "",
    "See fig. 3. Or No. 5, U.S. Style. no. yes. А. Б. Иванов и др. писали. 你好. 好。 1. 2. É. é. end. x.",
]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        # An abbreviation is known by its capital; its full stop stays.
        ("en", "Mr. Smith's dog doesn't bite.", "mr. smith 's dog doesn 't bite ."),
        ("fr", "«Qu'est-ce que c'est?»", "« qu' est-ce que c' est ? »"),
        ("fr_ca", "L'Inde et M. Roy.", "l' inde et m. roy ."),
        ("xx", "Some tongue, unknown.", "some tongue , unknown ."),
    ],
)
def test_paper(language: str, text: str, expected: str) -> None:
    assert apply([text], language=language, mode="paper") == [expected]


@pytest.mark.parametrize("language", ["en", "fr", "ru", "zh"])
def test_full_stops_are_cut_off_as_moses_does(language: str) -> None:
    for text, processed in zip(TEXTS, apply(TEXTS, language=language, mode="paper"), strict=True):
        assert processed == MosesTokenizer(language).tokenize(text, escape=False, return_str=True).lower().strip()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Mr. Smith's dog doesn't bite, does it?"),
        ("fr", "L'homme n'est pas là, monsieur."),
        ("ru", "Я не знаю, что-то странное."),
        ("ar", "نعم، سأذهب إلى السوق؛ هل تريد شيئا؟"),
        ("fa", "کتاب\u200cهای زیادی را خوانده\u200cام، می\u200cخوانی؟"),
        ("ur", "یہ ایک کتاب ہے۔ اور وہ؟"),
        ("hi", "यह एक परीक्षण है। क्\u200dष॥"),
    ],
)
def test_undone_text_is_the_text_in_lower_case(language: str, text: str) -> None:
    processed = apply([text], language=language, mode="paper")
    assert processed != [text.lower()]
    assert undo(processed, language=language, mode="paper") == [text.lower()]


def test_undoing_spaces_undoes_nothing_else() -> None:
    texts = ["", "  ", "▁ a  b", "write &amp; there"]
    assert undo(texts, language="en", mode="paper") == ["", "", "▁ a b", "write &amp; there"]
