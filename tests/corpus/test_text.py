"""Text: what normalisation changes and counts, which sentences count as the same one, and
preprocessing and the way back."""

import sys
import unicodedata

import pytest
from sacremoses import MosesTokenizer

from specialized_heads.corpus.normalise import (
    KEPT_FORMAT_CHARACTERS,
    fingerprint,
    normalise,
    sentence_bag,
    sentence_key,
)
from specialized_heads.corpus.preprocess import apply, undo


def normal(text: str) -> str:
    return normalise(text)[0]


def test_what_is_changed_and_what_is_not() -> None:
    assert normal("  cafe\u0301\u00a0:\n\u202fun\u00adique\x00 ") == "café : unique"
    for seen in ("می\u200cخواهم", "ق\u06dd١", "\u0600١", "\U000110bd"):
        assert normal(seen) == seen
    assert normal("Sentence\x1fseparated\x85\u2028 \ufeff") == "Sentence separated…"
    # Letters that an invisible character kept apart are composed, and so are Hangul letters.
    assert normal("e\u200b\u0301 \u1112\u1161\u11ab") == "é 한"
    assert [
        normal(unseen) for unseen in ("\u200b", "\u00a0\ufeff\u00ad", "\u200d \u200c", "\u2028")
    ] == [""] * 4


@pytest.mark.parametrize(
    ("text", "expected", "steps"),
    [
        ("fine, “as it is”.", "fine, “as it is”.", set()),
        ("R&amp;D &quot;now&quot; &#x2019;", 'R&D "now" ’', {"entities"}),
        ("&amp;quot;twice&amp;amp;quot;", '"twice"', {"entities"}),
        ("AT&T &copy=1 &nosuch; a & b; &;", "AT&T &copy=1 &nosuch; a & b; &;", set()),
        (" a\u00a0b", "a b", {"white_space"}),
        ("a\u00adb", "ab", {"soft_hyphens", "invisible"}),
        ("e\u0301", "é", {"composition"}),
        (
            "&#xAD;e\u0301  ",
            "é",
            {"entities", "white_space", "soft_hyphens", "invisible", "composition"},
        ),
    ],
)
def test_every_step_counts_the_texts_that_it_changes(text, expected, steps) -> None:
    assert normalise(text) == (expected, steps)


def test_no_character_is_left_that_must_go() -> None:
    text = normal("a".join(map(chr, range(sys.maxunicode + 1))))
    assert unicodedata.is_normalized("NFC", text)
    assert not any(letter.isspace() for letter in text.replace(" ", ""))
    hidden = {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf")}
    assert hidden == set(KEPT_FORMAT_CHARACTERS)
    assert normal(text) == text


# Which sentences count as the same one.


def keys(*texts: str) -> list[str]:
    return [sentence_key(text) for text in texts]


def test_keys_ignore_case_digits_punctuation_and_space() -> None:
    assert keys("Don't go!", " DON’T  go 42") == ["don t go", "don t go"]
    assert keys("Straße", "STRASSE") == ["strasse", "strasse"]
    assert keys("Ёлка, 3 шт.") == ["ёлка шт"]
    assert keys("ΟΔΟΣ", "οδος") == ["οδοσ", "οδοσ"]
    expected = ["iyi geceler", "iyi geceler", "kiz", "kiz"]
    assert keys("İyi geceler.", "iyi geceler", "KIZ", "kız") == expected
    assert keys("I go") != keys("I do go")
    assert keys("a_b", "x² Ⅷ", "e\u200dx", "a\ufe0f") == ["a b", "x² ⅷ", "e x", "a"]


def test_vowels_that_are_marks_tell_words_apart() -> None:
    assert keys("वह लड़का है", "वह लड़की है") == ["वह लड़का है", "वह लड़की है"]
    assert keys("போ") != keys("பை")
    assert keys("ลูกชี้") != keys("ลูกชู้")


def test_sentences_without_letters_stay_apart() -> None:
    assert keys("1 + 1", "2 + 2", "", "¡ ½ ?") == ["1 + 1", "2 + 2", "", "½"]


def test_bags_ignore_word_order_and_nothing_more() -> None:
    assert sentence_bag("tom saw mary") == sentence_bag("mary saw tom")
    assert len({*map(sentence_bag, ["tom saw mary", "tom saw saw mary", "tomsaw mary", ""])}) == 4


def test_names_of_documents_hash_the_same_in_every_release() -> None:
    # The choice of held-out documents, and so the embedded parses, rest on this number.
    assert fingerprint("specialized heads\nThe cat") == 7364301889939041645


# Preprocessing: what Moses and lower case make of hard text, in each language.

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
    "See fig. 3. Or No. 5, U.S. Style. no. yes. А. Б. Иванов и др. писали. "
    "你好. 好。 1. 2. É. é. end. x.",
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
        assert (
            processed
            == MosesTokenizer(language)
            .tokenize(text, escape=False, return_str=True)
            .lower()
            .strip()
        )


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


@pytest.mark.parametrize(
    "text",
    ["ANH ĐÃ… CHẾT", "“TÔI ĐÃ” nói", "«ANH ĐÃ»", "các chữ Ă, Â… và Ê", "(Â’)", "AMANHÃ¹", "IRMÃ…"],
)
def test_letters_that_look_like_bytes_stay(text: str) -> None:
    assert normal(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("donÂ’t, itÂ’s Â“goodÂ”", "don’t, it’s “good”"),
        ("costs Â€50", "costs €50"),
        ("wordÂ–word", "word–word"),
    ],
)
def test_windows_punctuation_that_was_encoded_twice_is_restored(text: str, expected: str) -> None:
    assert normal(text) == expected


def test_letters_that_look_like_bytes_stay_before_what_is_invisible() -> None:
    assert normal("NÓ ĐÃ\u00a0ĐI, Î, Â\u00a0etc.") == "NÓ ĐÃ ĐI, Î, Â etc."
    assert normal("MAÇÃ\u00adZINHA") == "MAÇÃZINHA"


@pytest.mark.parametrize(
    "text",
    ["Österreich", "l’été", "Il va à Paris", "Mío", "país", "20°C", "«Bonjour»", "ÉTAT", "Müller"],
)
def test_utf_8_that_was_read_as_windows_1252_is_restored(text: str) -> None:
    assert normal(text.encode().decode("cp1252")) == text
