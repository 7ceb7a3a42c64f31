"""When two sentences count as the same one: the definition that grouping, splitting and overlap removal share.

The *key* of a sentence is its case-folded letters: every run of letters is a word, words are joined by one space, and
digits, punctuation and white space are dropped ("Don't go!" and "don’t go" have the key "don t go"). A sentence without
letters is its own key. Sentences with equal keys are duplicates.

The *bag* of a sentence is its key with the words in alphabetical order. Sentences with equal bags but different keys are
near-duplicates: the same words in another order. Nothing weaker (one word changed, added or left out) counts.
"""

import re
from hashlib import blake2b

import numpy as np

LETTERS = re.compile(r"[^\W\d_]+")


def sentence_key(text: str) -> str:
    """The case-folded letters of a sentence, or the sentence itself where it has none."""
    return " ".join(LETTERS.findall(text.casefold())) or text


def fingerprint(text: str) -> int:
    """64 bits that stand for a text, the same on every machine and in every run."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def fingerprints(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The fingerprints of keys and of bags.

    Returns:
        two uint64 arrays of shape (len(texts),): of the keys, and of the bags.
    """
    keys = np.empty(len(texts), np.uint64)
    bags = np.empty(len(texts), np.uint64)
    for index, text in enumerate(texts):
        key = sentence_key(text)
        keys[index] = fingerprint(key)
        bags[index] = fingerprint(" ".join(sorted(key.split(" "))))
    return keys, bags
