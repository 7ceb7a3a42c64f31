"""When two sentences count as equal: the definition that grouping, splitting and overlap removal share.

The *key* of a sentence consists of its case-folded letters and their combining marks (the vowels of many scripts): each run of
them is a word, words are joined by one space, and digits, punctuation and white space are dropped ("Don't go!" and "don’t go"
have the key "don t go"). Dotted and dotless i of Turkish are one letter, since I folds to i in any language. A sentence without
letters is its own key. Sentences with equal keys are duplicates.

The *bag* of a sentence is the multiset of the words of its key. Sentences with equal bags but different keys are near-duplicates:
the same words in another order. Nothing weaker (one word changed, added or removed) counts.

Keys, bags and texts are compared by 64-bit fingerprints: among ten million, the chance that two different ones collide is below
one in three hundred thousand. They only decide what is equal. The order of documents, and so which sentences are held out,
follows from `fingerprint` (BLAKE2b), which must never change: the embedded parses depend on it.
"""

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import pandas as pd


class _Letters(dict[int, str]):
    """For `str.translate`: letters and their marks stay, any other character becomes a space."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        is_mark = unicodedata.category(letter).startswith("M")
        if is_mark:
            stays = not unicodedata.name(letter).startswith("VARIATION SELECTOR")
        else:
            stays = letter.isalnum() and not letter.isdecimal()
        self[code] = letter if stays else " "
        return self[code]


_letters = _Letters()


def sentence_key(text: str) -> str:
    """The key of a sentence."""
    folded = text.replace("İ", "i").replace("ı", "i").casefold()
    return " ".join(folded.translate(_letters).split()) or text


def sentence_bag(key: str) -> str:
    """The words of a key in alphabetical order."""
    return " ".join(sorted(key.split(" ")))


def fingerprint(text: str) -> int:
    """64-bit hash of a text, the same on every machine and in every release of this project."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def fingerprints(texts: Iterable[str]) -> np.ndarray:
    """64-bit hash of each text, uint64; faster than `fingerprint`, with other values."""
    return pd.util.hash_array(np.array([*texts], object), categorize=False)
