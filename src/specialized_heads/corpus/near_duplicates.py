"""When two sentences count as equal: the definition that grouping, splitting and overlap removal share.

The *key* of a sentence is its case-folded letters and their combining marks (the vowels of many scripts): each run of them is a
word, words are joined by one space, and digits, punctuation and white space are dropped ("Don't go!" and "don’t go" have the key
"don t go"). Dotted and dotless i of Turkish are one letter, since I folds to i in any language. A sentence without letters is its
own key. Sentences with equal keys are duplicates.

The *bag* of a sentence is the multiset of the words of its key. Sentences with equal bags but different keys are near-duplicates:
the same words in another order. Nothing weaker (one word changed, added or removed) counts.

Keys, bags and texts are compared by 64-bit fingerprints (xxHash): among ten million, the chance that two different ones collide
is below one in three hundred thousand. They only decide what is equal. The order of documents, and so which sentences are held
out, follows from `fingerprint` (BLAKE2b), which must never change: the embedded parses depend on it.
"""

import unicodedata
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from specialized_heads.corpus.characters import BREAK, PLANES, SPACE, Block, code_points, look_up, text_of

# Odd, so that multiplying by it loses nothing; it makes the order of two fingerprints matter.
MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)


def sentence_keys(block: Block) -> pa.StringArray:
    """The key of each sentence; sentences have no line breaks."""
    key = _folded(block.codes)
    if not key.all():
        key = _folded(code_points(_casefold(text_of(block.codes))))
    # Of each run of separators, keep one space, and only between two letters.
    kept = key != SPACE
    kept[1:] |= key[:-1] > SPACE
    key = key[kept]
    inner = key != SPACE
    inner[:-1] |= key[1:] != BREAK
    keys = pa.array(text_of(key[inner]).split("\n")[:-1], pa.string())
    if len(keys) != len(block.texts):
        raise ValueError("a sentence has a line break in it")
    return pc.if_else(pc.equal(keys, ""), block.texts, keys)


def _folded(codes: np.ndarray) -> np.ndarray:
    """The case-folded letter for each code point, a space for other characters, 0 for letters that fold to several."""
    return look_up(_folding_table(codes.dtype.str), codes)


@cache
def _folding_table(dtype: str) -> np.ndarray:
    """`_folded` of every code point, in the type of the code points."""

    def folded(character: str) -> int:
        letters = _casefold(character)
        if len(letters) > 1:
            return 0
        # What the regular expression [^\W\d_] matches, and marks other than variation selectors.
        in_word = letters.isalnum() and not letters.isdecimal()
        if unicodedata.category(letters).startswith("M"):
            in_word = not unicodedata.name(letters).startswith("VARIATION SELECTOR")
        return ord(letters) if in_word or letters == "\n" else SPACE

    codes = {1: 0x80, 2: 0x10000, 4: PLANES}[np.dtype(dtype).itemsize]
    return np.fromiter((folded(chr(code)) for code in range(codes)), dtype, codes)


def _casefold(text: str) -> str:
    """The text in folded case, with one letter i."""
    return text.replace("İ", "i").replace("ı", "i").casefold()


def fingerprint(text: str) -> int:
    """64-bit hash of a text, the same on every machine and in every release of this project."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def fingerprints(texts: pa.StringArray) -> np.ndarray:
    """64-bit hash of each text, uint64 of shape (len(texts),); faster than `fingerprint`, with other values."""
    return np.fromiter(map(xxhash.xxh3_64_intdigest, texts.cast(pa.binary()).to_pylist()), np.uint64, len(texts))


def bag_fingerprints(keys: pa.StringArray) -> np.ndarray:
    """64-bit hash of the words of each key, independent of their order, uint64 of shape (len(keys),)."""
    if not len(keys):
        return np.zeros(0, np.uint64)
    bags = pc.split_pattern(keys, " ")
    words = bags.flatten().dictionary_encode()
    return np.add.reduceat(fingerprints(words.dictionary)[words.indices.to_numpy()], bags.offsets.to_numpy()[:-1])


def combined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """64-bit hash of pairs of fingerprints, in their order, uint64 of the same shape."""
    return first * MULTIPLIER + second
