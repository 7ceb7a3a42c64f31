"""Which sentences count as the same one, and that the fast implementation says what the definition says."""

import random

import pyarrow as pa
import pytest
from cleaning import plain_key

from specialized_heads.corpus.characters import PLANES, Block
from specialized_heads.corpus.near_duplicates import (
    bag_fingerprints,
    combined,
    fingerprint,
    fingerprints,
    sentence_keys,
)


def keys(*texts: str) -> list[str]:
    return sentence_keys(Block.of(pa.array(texts, pa.string()))).to_pylist()


def test_keys_ignore_case_digits_punctuation_and_space() -> None:
    assert keys("Don't go!", " DON’T  go 42") == ["don t go", "don t go"]
    assert keys("Straße", "STRASSE") == ["strasse", "strasse"]
    assert keys("Ёлка, 3 шт.") == ["ёлка шт"]
    assert keys("ΟΔΟΣ", "οδος") == ["οδοσ", "οδοσ"]
    assert keys("İyi geceler.", "iyi geceler", "KIZ", "kız") == ["iyi geceler", "iyi geceler", "kiz", "kiz"]
    assert keys("I go") != keys("I do go")
    assert keys() == []


def test_vowels_that_are_marks_tell_words_apart() -> None:
    assert keys("वह लड़का है", "वह लड़की है") == ["वह लड़का है", "वह लड़की है"]
    assert keys("போ") != keys("பை")
    assert keys("ลูกชี้") != keys("ลูกชู้")


def test_sentences_without_letters_stay_apart() -> None:
    assert keys("1 + 1", "2 + 2", "", "¡ ½ ?") == ["1 + 1", "2 + 2", "", "½"]


@pytest.mark.parametrize("codes", [range(0x80), range(0x10000), [*range(PLANES), *range(0xE0000, 0xE0200), 0x10FFFF]])
def test_the_key_of_every_character_is_as_defined(codes) -> None:
    """In ASCII alone, with two bytes and with four bytes per character."""
    texts = [f"A{chr(code)}b" for code in codes if not 0xD800 <= code < 0xE000 and code != ord("\n")]
    assert keys(*texts) == [plain_key(text) for text in texts]


def test_keys_of_random_text_are_as_defined() -> None:
    choice = random.Random(3)
    letters = [*"aBéßİıςЖ漢7²_'  -\u200cﬁ", "e\u0301"]
    for more in ([], ["😀", "𝐀", "𐐀"]):
        texts = ["".join(choice.choices(letters + more, k=choice.randint(0, 12))) for _ in range(3000)]
        assert keys(*texts) == [plain_key(text) for text in texts]


def test_a_sentence_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        keys("a\nb", "c")


def test_bags_ignore_word_order_and_nothing_more() -> None:
    saw, was_seen, saw_saw, other, nothing, none = bag_fingerprints(
        pa.array(["tom saw mary", "mary saw tom", "tom saw saw mary", "tomsaw mary", "", ""])
    ).tolist()
    assert saw == was_seen
    assert len({saw, saw_saw, other, nothing}) == 4
    assert nothing == none


def test_bags_of_random_keys_agree_where_their_sorted_words_do() -> None:
    choice = random.Random(6)
    texts = [" ".join(choice.choices(["a", "b", "ab", "ba", "abcdefghi"], k=choice.randint(0, 4))) for _ in range(3000)]
    bags = bag_fingerprints(pa.array(["x", *texts], pa.string()).slice(1)).tolist()
    sorted_words = [tuple(sorted(text.split(" "))) for text in texts]
    assert len(set(bags)) == len(set(sorted_words)) == len(set(zip(bags, sorted_words)))
    assert bag_fingerprints(pa.array([], pa.string())).tolist() == []


def test_fingerprints_of_pairs_keep_the_sides_apart() -> None:
    one, other = fingerprints(pa.array(["a", "b"])), fingerprints(pa.array(["b", "a"]))
    assert len({*combined(one, other).tolist()}) == 2
    assert combined(one, other)[0] == combined(one[:1], other[:1])[0]


def test_names_of_documents_hash_the_same_in_every_release() -> None:
    # The choice of held-out documents, and so the embedded parses, rest on this number.
    assert fingerprint("specialized heads\nThe cat") == 7364301889939041645
