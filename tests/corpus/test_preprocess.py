"""Preprocessing: what Moses and lower case make of hard text, in each language, and the way back."""

import subprocess
import sys
import unicodedata

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
]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        # An abbreviation is known by its capital; its full stop stays.
        ("en", "Mr. Smith's dog doesn't bite.", "mr. smith 's dog doesn 't bite ."),
        ("en", "It costs 1,000.50 (or less)...", "it costs 1,000.50 ( or less ) ..."),
        ("fr", "L'homme n'est pas là!", "l' homme n' est pas là !"),
        ("fr", "«Qu'est-ce que c'est?»", "« qu' est-ce que c' est ? »"),
        ("ru", "Что-нибудь д'Артаньян?", "что-нибудь д ' артаньян ?"),
        ("de", "Das kostet ca. 5 Euro.", "das kostet ca. 5 euro ."),
        ("fr_ca", "L'Inde et M. Roy.", "l' inde et m. roy ."),
        ("xx", "Some tongue, unknown.", "some tongue , unknown ."),
    ],
)
def test_paper(language: str, text: str, expected: str) -> None:
    assert apply([text], language=language, mode="paper") == [expected]


@pytest.mark.parametrize("language", ["en", "fr", "ru", "zh"])
def test_full_stops_are_cut_off_as_moses_does(language: str) -> None:
    texts = [
        *TEXTS,
        "See fig. 3. Or No. 5, U.S. Style. no. yes. А. Б. Иванов и др. писали. 你好. 好。 1. 2. É. é. end. x.",
    ]
    for text, processed in zip(texts, apply(texts, language=language, mode="paper"), strict=True):
        assert processed == MosesTokenizer(language).tokenize(text, escape=False, return_str=True).lower().strip()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Mr. Smith's dog doesn't bite, does it?"),
        ("en", 'He said: "go on!" (and went).'),
        ("fr", "L'homme n'est pas là, monsieur."),
        ("ru", "Я не знаю, что-то странное."),
        ("de", "Das kostet ca. 5 Euro (oder mehr)."),
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


def test_undoing_takes_nothing_for_an_escape() -> None:
    assert undo(["write &amp; there"], language="en", mode="paper") == ["write &amp; there"]


def test_none_changes_nothing() -> None:
    texts = [*TEXTS, unicodedata.normalize("NFD", "là")]
    for function in (apply, undo):
        assert function(iter(texts), language="en", mode="none") == texts


def test_a_translation_may_be_empty_or_odd() -> None:
    assert undo(["", "  ", "▁ a  b"], language="en", mode="paper") == ["", "", "▁ a b"]


def test_moses_is_loaded_where_it_is_needed_only() -> None:
    code = (
        "import sys; from specialized_heads.corpus.preprocess import apply\n"
        "apply(['A'], language='en', mode='none'); assert 'sacremoses' not in sys.modules\n"
        "apply(['A'], language='en', mode='paper'); assert 'sacremoses' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
