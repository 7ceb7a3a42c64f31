"""How text is normalised, before anything is said about a pair.

HTML entities become their characters (`&amp;quot;`, encoded twice, too), every run of white space (no-break spaces
included) becomes one space, control and format characters go, and what remains becomes Unicode NFC. Nothing else is
changed: no lower-casing, no tokenisation, no replacement of quotes, since BLEU is computed on this text. All that a second
run can find is an entity that was encoded more often, or that an invisible character had kept apart.
"""

import html
import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from html.entities import html5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.corpus.characters import BREAK, PLANES, SPACE, Block, look_up, table_of

# Joiners carry spelling in Persian and in the scripts of India, and the signs that enclose or stand below a number or word
# (Unicode's Prepended_Concatenation_Mark: Arabic, Syriac and Kaithi) are seen; other format characters (soft hyphen, zero-width
# space, byte-order mark, directional marks) are invisible.
SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
KEPT_FORMAT_CHARACTERS = f"\u200c\u200d{SIGNS}"
# Entities without a semicolon, which HTML forgives, are as likely to be a name or part of an address ("R&D", "?a=1&copy=2").
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
ENCODED_TIMES = 3


def decode_entities(text: str) -> str:
    """Characters in place of their HTML entities, also where these were encoded again, up to `ENCODED_TIMES` times."""
    for _ in range(ENCODED_TIMES):
        before, text = text, ENTITY.sub(_character, text)
        if text == before:
            break
    return text


def _character(entity: re.Match[str]) -> str:
    known = entity[0][1] == "#" or entity[0][1:] in html5
    return html.unescape(entity[0]) if known else entity[0]


def single_spaces(text: str) -> str:
    """One space in place of every run of white space, none at the ends."""
    return " ".join(text.split())


def drop_invisible(text: str) -> str:
    """The text without control and format characters."""
    return text if text.isprintable() else _invisible().sub("", text)


@cache
def _invisible() -> re.Pattern[str]:
    every = map(chr, range(sys.maxunicode + 1))
    found = [c for c in every if unicodedata.category(c) in ("Cc", "Cf") and c not in KEPT_FORMAT_CHARACTERS]
    return re.compile(f"[{re.escape(''.join(found))}]+")


def compose(text: str) -> str:
    """The text in Unicode normalisation form C."""
    return unicodedata.normalize("NFC", text)


# In this order; the names are those of the counts.
STEPS: dict[str, Callable[[str], str]] = {
    "entities": decode_entities,
    "white_space": single_spaces,
    "invisible": drop_invisible,
    "composition": compose,
}


def normalise(texts: pa.StringArray, *, entities: bool) -> tuple[pa.StringArray, dict[str, np.ndarray]]:
    """Normalise a block of texts.

    Args:
        texts: any text.
        entities: whether HTML entities are decoded.

    Returns:
        the normalised texts, and for each of `STEPS` which texts it changed, bool of shape (len(texts),).
    """
    changed = {name: np.zeros(len(texts), bool) for name in STEPS}
    rows = rows_to_normalise(texts, entities=entities)
    if not len(rows):
        return texts, changed
    current = texts.take(pa.array(rows)).to_pylist()
    for name, step in STEPS.items():
        if name != "entities" or entities:
            before, current = current, [step(text) for text in current]
            changed[name][rows] = [new != old for new, old in zip(current, before, strict=True)]
    # An invisible character can have kept spaces apart.
    current = [single_spaces(text) for text in current]
    mask = np.zeros(len(texts), bool)
    mask[rows] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(current, pa.string())), changed


def rows_to_normalise(texts: pa.StringArray, *, entities: bool) -> np.ndarray:
    """The rows whose normal form may differ from the text: all that differ, and few that do not.

    Returns:
        row numbers in order, int64. Only these need work character by character.
    """
    block = Block.of(texts)
    suspect = look_up(_may_change(), block.codes)
    # The break after a text is not part of it; a space before it, before another one or at the start is one too many.
    suspect[block.ends] = False
    space = block.codes == SPACE
    suspect[:-1] |= space[:-1] & (space[1:] | (block.codes[1:] == BREAK))
    suspect[block.starts] |= space[block.starts]
    if entities:
        suspect |= block.codes == ord("&")
    return np.unique(np.searchsorted(block.ends, np.flatnonzero(suspect)))


@cache
def _may_change() -> np.ndarray:
    """A table of the characters whose presence can make a text differ from its normal form, bool of shape (PLANES,)."""
    seconds = {0x1161 + vowel for vowel in range(21)} | {0x11A8 + final for final in range(27)}  # of Hangul syllables
    for code in range(PLANES):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(int(parts[1], 16))

    def may_change(character: str) -> bool:
        return (
            (character.isspace() and character != " ")
            or _invisible().match(character) is not None
            or unicodedata.combining(character) != 0
            or ord(character) in seconds
            or unicodedata.normalize("NFC", character) != character
        )

    table = table_of(may_change)
    table[PLANES - 1] = True
    return table
