"""Classification tasks made from plain sentences, by published recipes; half of the examples have each label.

shift: two neighbouring words are swapped, or not (bigram shift of Conneau et al. 2018).
halves: two segments are the halves of one sentence, or of two with as many words (next-sentence prediction of Devlin et al.
    2019, with halves for sentences).

Sentences are in lower case, since capitals would give their order away.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
WORDS = (5, 25)  # length of the sentences that are used


class Example(NamedTuple):
    """One or two segments of text, and the id of the label."""

    first: str
    second: str | None
    label: int


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
    made = 0
    for words in sentences:
        half = len(words) // 2
        first, second = " ".join(words[:half]), " ".join(words[half:])
        same = by_length[len(words)]
        if made % 2 == 0:
            yield Example(first, second, 1)
        elif same and (other := same.pop(random.integers(len(same))))[half:] != words[half:]:
            yield Example(first, " ".join(other[half:]), 0)
        else:
            same.append(words)
            continue
        made += 1
