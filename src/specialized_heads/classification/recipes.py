"""Classification tasks made from plain sentences, by published recipes; half of the examples have each label.

shift: two neighbouring words are swapped, or not (bigram shift of Conneau et al. 2018).
odd: a noun or verb is replaced by one of the same frequency, or not (semantic odd man out of Conneau et al. 2018, who match the
    frequencies of bigrams instead). What is a noun or a verb is learned from trees; the ending stands in for the tense or number.
halves: two segments are the halves of one sentence, or of two with as many words (next-sentence prediction of Devlin et al.
    2019, with halves for sentences).

Sentences are in lower case, since capitals would give their order away.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from specialized_heads.parsing.words import Word

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
WORDS = (5, 25)  # length of the sentences that are used
SIMILAR = 10  # a replacement is at most so many places away in the order of frequency
CLASSES = ("NOUN", "VERB")
ENDINGS = ("s", "ed", "ing")


class Example(NamedTuple):
    """One or two segments of text, and the id of the label."""

    first: str
    second: str | None
    label: int


Lexicon = dict[str, tuple[str, str]]  # by word: its class and ending


def sentences_of(texts: Iterable[str]) -> Iterator[list[str]]:
    """The words and punctuation marks of sentences of usable length, in lower case."""
    for text in texts:
        words = WORD.findall(text.lower())
        if WORDS[0] <= len(words) <= WORDS[1]:
            yield words


def shift(sentences: Iterable[list[str]], random: np.random.Generator) -> Iterator[Example]:
    """Swap two different neighbouring words in every second sentence."""
    label = 0
    for words in sentences:
        places = [i for i, (a, b) in enumerate(zip(words, words[1:])) if a.isalpha() and b.isalpha() and a != b]
        if not places:
            continue
        place = places[random.integers(len(places))]
        if label:
            words = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
        yield Example(" ".join(words), None, label)
        label = 1 - label


def halves(sentences: Iterable[list[str]], random: np.random.Generator) -> Iterator[Example]:
    """Cut sentences in the middle, and exchange the second halves of every second one with another of its length."""
    by_length: dict[int, list[list[str]]] = defaultdict(list)
    examples: list[tuple[int, Example]] = []
    for number, words in enumerate(sentences):
        half = len(words) // 2
        first, second = " ".join(words[:half]), " ".join(words[half:])
        same = by_length[len(words)]
        if len(examples) % 2 == 0:
            examples.append((number, Example(first, second, 1)))
        elif same and (other := same.pop(random.integers(len(same))))[half:] != words[half:]:
            examples.append((number, Example(first, " ".join(other[half:]), 0)))
        else:
            same.append(words)
    yield from (example for _, example in examples)


def odd(
    sentences: Iterable[list[str]], random: np.random.Generator, *, lexicon: Lexicon, frequencies: Counter[str]
) -> Iterator[Example]:
    """Replace one noun or verb in every second sentence."""
    ranked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for word, _ in sorted(frequencies.items(), key=lambda item: (-item[1], item[0])):
        if word in lexicon:
            ranked[lexicon[word]].append(word)
    ranks = {word: rank for words in ranked.values() for rank, word in enumerate(words)}
    label = 0
    for words in sentences:
        places = [place for place, word in enumerate(words) if word in ranks and len(ranked[lexicon[word]]) > 1]
        if not places:
            continue
        place = places[random.integers(len(places))]
        word = words[place]
        near = ranked[lexicon[word]][max(0, ranks[word] - SIMILAR) : ranks[word] + SIMILAR + 1]
        other = [each for each in near if each != word][random.integers(len(near) - 1)]
        if label:
            words = [*words[:place], other, *words[place + 1 :]]
        yield Example(" ".join(words), None, label)
        label = 1 - label


def lexicon_of(trees: Iterable[list[Word]]) -> Lexicon:
    """The nouns and verbs of trees: the class of a word is the one that it has most often."""
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    for word in (word for tree in trees for word in tree if word.form.isalpha()):
        classes[word.form.lower()][word.upos] += 1
    lexicon = {}
    for word, counts in classes.items():
        kind = min(counts, key=lambda each: (-counts[each], each))
        if kind in CLASSES:
            lexicon[word] = kind, next((ending for ending in ENDINGS if word.endswith(ending)), "")
    return lexicon
