"""The made-up tasks: what is changed and what is not, labels in balance, nothing in common between the sets."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from specialized_heads.classification import recipes
from specialized_heads.classification.sentences import SETS, read_sentences
from specialized_heads.parsing.words import Word

TEXTS = [
    f"The {a} {b} saw {c} {d} dogs."
    for a in ("old", "big")
    for b in "xyzw"
    for c in ("two", "my")
    for d in ("red", "wet")
]


@pytest.fixture
def sentences() -> list[list[str]]:
    return list(recipes.sentences_of([*TEXTS, "Too short.", "word " * 40]))


def test_words_are_in_lower_case_and_of_usable_length(sentences) -> None:
    assert len(sentences) == len(TEXTS)
    assert sentences[0] == ["the", "old", "x", "saw", "two", "red", "dogs", "."]
    assert list(recipes.sentences_of(["I don't like type-declarations!"]))[0] == [
        *("i", "don't", "like", "type", "-", "declarations", "!")
    ]


def test_shift_swaps_two_neighbours(sentences) -> None:
    examples = list(recipes.shift(sentences, np.random.default_rng(1)))
    assert Counter(example.label for example in examples) == {0: 16, 1: 16}
    for words, example in zip(sentences, examples, strict=True):
        found = example.first.split()
        different = [place for place, (a, b) in enumerate(zip(words, found, strict=True)) if a != b]
        assert sorted(words) == sorted(found) and example.second is None
        assert len(different) == 2 * example.label
        assert different == [] or (different[1] == different[0] + 1 and 7 not in different)


def test_halves_are_of_one_sentence_or_of_two_with_as_many_words(sentences) -> None:
    examples = list(recipes.halves([*sentences, ["a", "b", "c", "d", "e"]], np.random.default_rng(1)))
    whole = {" ".join(words) for words in sentences}
    labels = Counter(example.label for example in examples)
    assert abs(labels[0] - labels[1]) <= 1
    for example in examples[:-1]:
        assert (f"{example.first} {example.second}" in whole) >= example.label
        assert (len(example.first.split()), len(example.second.split())) == (4, 4)
    seconds = [example.second for example in examples if not example.label]
    assert len(seconds) > 5


def test_odd_replaces_a_noun_or_verb_by_one_like_it(sentences) -> None:
    lexicon = {"x": ("NOUN", ""), "y": ("NOUN", ""), "z": ("NOUN", ""), "w": ("VERB", ""), "dogs": ("NOUN", "s")}
    frequencies = Counter(word for words in sentences for word in words)
    examples = list(recipes.odd(sentences, np.random.default_rng(1), lexicon=lexicon, frequencies=frequencies))
    assert Counter(example.label for example in examples) == {0: 12, 1: 12}  # alone in its class, w has no replacement
    usable = [words for words in sentences if words[2] != "w"]
    for words, example in zip(usable, examples, strict=True):
        changed = [(a, b) for a, b in zip(words, example.first.split(), strict=True) if a != b]
        assert len(changed) == example.label
        assert all({a, b} <= {"x", "y", "z"} for a, b in changed)


def test_the_lexicon_takes_the_most_frequent_class() -> None:
    def tree(*words: tuple[str, str]) -> list[Word]:
        return [Word(form, 0, 1, 0, "dep", upos) for form, upos in words]

    trees = [
        tree(("Runs", "NOUN"), ("runs", "VERB")),
        tree(("runs", "VERB"), ("the", "DET"), ("3", "NOUN"), ("man", "NOUN")),
    ]
    assert recipes.lexicon_of(trees) == {"runs": ("VERB", "s"), "man": ("NOUN", "")}


def test_a_sentence_belongs_to_one_set_whatever_its_punctuation(tmp_path) -> None:
    texts = [f"number {a} {b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    for name, ending in (("one", "."), ("two", "!")):
        pd.DataFrame({"source": [f"{text}{ending}" for text in texts]}).to_parquet(tmp_path / f"{name}.parquet")
    both = read_sentences([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    second = read_sentences([tmp_path / "two.parquet"])
    assert sum(map(len, both.values())) == len(texts)
    for name in SETS:
        assert both[name] and {text[:-1] for text in both[name]} == {text[:-1] for text in second[name]}
    assert 0.03 < len(both["test"]) / len(texts) < 0.14
