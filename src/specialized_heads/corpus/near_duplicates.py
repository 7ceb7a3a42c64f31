"""When two sentences count as the same one: the definition that grouping, splitting and overlap removal share.

The *key* of a sentence is its case-folded letters, with their combining marks, which are the vowels of many scripts: every run of
them is a word, words are joined by one space, and digits, punctuation and white space are dropped ("Don't go!" and "don’t go"
have the key "don t go"). Dotted and dotless i of Turkish are one letter ("İyi" and "iyi", "KIZ" and "kız"), since I folds to i in
any language. A sentence without letters is its own key. Sentences with equal keys are duplicates.

The *bag* of a sentence is the words of its key without their order. Sentences with equal bags but different keys are
near-duplicates: the same words in another order. Nothing weaker (one word changed, added or left out) counts.

Keys, bags and texts are compared by fingerprints of 64 bits: among ten million of them, the chance that any two different
ones agree is below one in three hundred thousand.
"""

import unicodedata
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.corpus.characters import BREAK, PLANES, SPACE, Block, code_points, look_up, text_of

# Multiplier and shift of MurmurHash64A.
MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
SHIFT = np.uint64(47)
MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)  # the first bytes of a word of 8


def sentence_keys(block: Block) -> pa.StringArray:
    """The key of each sentence: its case-folded letters, or the sentence itself where it has none.

    Args:
        block: sentences without line breaks.
    """
    key = _folded(block.codes)
    if not key.all():
        key = _folded(code_points(_casefold(text_of(block.codes))))
    # Of what separates two words one space stays: the one that a letter precedes and a letter follows.
    kept = key != SPACE
    kept[1:] |= key[:-1] > SPACE
    key = key[kept]
    inner = key != SPACE
    inner[:-1] |= key[1:] != BREAK
    data = np.frombuffer(text_of(key[inner]).encode(), np.uint8)
    ends = np.flatnonzero(data == BREAK)
    if len(ends) != len(block.texts):
        raise ValueError("a sentence has a line break in it")
    ends -= np.arange(len(ends))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[data != BREAK])]
    keys = pa.Array.from_buffers(pa.string(), len(block.texts), buffers)
    return pc.if_else(pa.array(np.diff(offsets) == 0), block.texts, keys)


def _folded(codes: np.ndarray) -> np.ndarray:
    """The case-folded letter for each code point, a space for what is no letter, and 0 for a letter that folds to several."""
    return look_up(_folding_table(codes.dtype.str), codes)


@cache
def _folding_table(dtype: str) -> np.ndarray:
    """`_folded` of every code point, in the type of the code points."""

    def folded(character: str) -> int:
        letters = _casefold(character)
        if len(letters) > 1:
            return 0
        # What the regular expression [^\W\d_] matches, and marks but for those that choose a glyph.
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
    """64 bits that stand for a text, the same on every machine and in every run, and in every release of this project."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def fingerprints(texts: pa.StringArray) -> np.ndarray:
    """64 bits that stand for each text, uint64 of shape (len(texts),); faster than `fingerprint`, and not the same bits."""
    data, offsets = _bytes(texts)
    return _hash(data, offsets[:-1], np.diff(offsets))


def bag_fingerprints(keys: pa.StringArray) -> np.ndarray:
    """64 bits that stand for the words of each key whatever their order, uint64 of shape (len(keys),)."""
    if not len(keys):
        return np.zeros(0, np.uint64)
    data, offsets = _bytes(keys)
    # A word ends at a space, or at the end of its key.
    first, last = offsets[0], offsets[-1]
    spaces = np.flatnonzero(data[first:last] == SPACE) + first
    starts = np.sort(np.concatenate([offsets[:-1], spaces + 1]), kind="stable")
    ends = np.sort(np.concatenate([offsets[1:], spaces]), kind="stable")
    first_words = np.arange(len(keys)) + np.searchsorted(spaces, offsets[:-1])
    return np.add.reduceat(_hash(data, starts, ends - starts), first_words)


def combined(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """64 bits that stand for pairs of fingerprints, in their order, uint64 of the same shape."""
    return _mixed(first * MULTIPLIER + second)


def _bytes(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of the array, at least 8 more than it needs, and where texts start and end in them, int64 (len + 1,)."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    used = np.frombuffer(data, np.uint8)[: bounds[-1]] if data is not None else np.zeros(0, np.uint8)
    return np.concatenate([used, np.zeros(8, np.uint8)]), bounds


def _hash(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """MurmurHash64A of parts of `data`, for all parts at once, 8 bytes of each per step.

    Args:
        data: bytes, uint8, with 8 to spare at the end.
        starts: where each part starts, int64 (parts,).
        lengths: the bytes of each part, int64 (parts,).
    """
    # Entry i is the 8 bytes from byte i on.
    windows = np.ndarray((len(data) - 7,), "<u8", buffer=data, strides=(1,))
    # Parts in the order of their lengths, longest first: those that have a step to go are always the first ones.
    steps = (lengths + 7) // 8
    order = np.argsort(-steps, kind="stable")
    position, tails = starts[order], MASKS[(lengths[order] - 1) % 8 + 1]
    going = len(steps) - np.searchsorted(steps[order[::-1]], np.arange(steps.max(initial=0) + 2), "left")
    hashes = lengths[order].astype(np.uint64) * MULTIPLIER
    for step in range(steps.max(initial=0)):
        now, later = going[step + 1], going[step + 2]
        words = windows[position[:now] + 8 * step].astype(np.uint64, copy=False)
        words[later:] &= tails[later:now]
        words *= MULTIPLIER
        words ^= words >> SHIFT
        words *= MULTIPLIER
        hashes[:now] ^= words
        hashes[:now] *= MULTIPLIER
    result = np.empty_like(hashes)
    result[order] = hashes
    return _mixed(result)


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """The last step of the hash, after which every bit depends on every other."""
    hashes = (hashes ^ (hashes >> SHIFT)) * MULTIPLIER
    return hashes ^ (hashes >> SHIFT)
