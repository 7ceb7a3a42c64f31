"""Text normalisation: HTML entities, white space, invisible characters, Unicode NFC.

HTML entities become their characters (also if encoded twice, `&amp;quot;`), every run of white space (no-break spaces
included) becomes one space, control and format characters are removed, and the rest becomes Unicode NFC. There is no
lower-casing, tokenisation or replacement of quotes, since BLEU is computed on this text. A second run changes only entities that
were encoded more often or broken up by an invisible character.
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

from specialized_heads.corpus.characters import BREAK, PLANES, SPACE, Block, look_up

# Joiners matter for spelling in Persian and in Indian scripts, and signs that enclose a number or word (Unicode's
# Prepended_Concatenation_Mark: Arabic, Syriac and Kaithi) are visible; other format characters (soft hyphen, zero-width space,
# byte-order mark, directional marks) are not.
SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
KEPT_FORMAT_CHARACTERS = f"\u200c\u200d{SIGNS}"
# HTML allows entities without a semicolon, but these may be names or parts of an address ("R&D", "?a=1&copy=2").
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
ENCODED_TIMES = 3


def decode_entities(text: str) -> str:
    """Replace HTML entities by their characters, also entities encoded up to `ENCODED_TIMES` times."""
    for _ in range(ENCODED_TIMES):
        text = ENTITY.sub(_character, text)
    return text


def _character(entity: re.Match[str]) -> str:
    known = entity[0][1] == "#" or entity[0][1:] in html5
    return html.unescape(entity[0]) if known else entity[0]


def single_spaces(text: str) -> str:
    """Replace every run of white space by one space, with none at the ends."""
    return " ".join(text.split())


def drop_invisible(text: str) -> str:
    """The text without control and format characters."""
    return text if text.isprintable() else _invisible().sub("", text)


@cache
def _invisible() -> re.Pattern[str]:
    characters = map(chr, range(sys.maxunicode + 1))
    invisible = [c for c in characters if unicodedata.category(c) in ("Cc", "Cf") and c not in KEPT_FORMAT_CHARACTERS]
    return re.compile(f"[{re.escape(''.join(invisible))}]+")


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
    """Normalise a block of texts; `entities`: whether to decode HTML entities.

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
    # Invisible characters may have separated spaces.
    current = [single_spaces(text) for text in current]
    mask = np.isin(np.arange(len(texts)), rows)
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(current, pa.string())), changed


def rows_to_normalise(texts: pa.StringArray, *, entities: bool) -> np.ndarray:
    """The rows that need work character by character, int64, in order: all that normalisation changes, and few others."""
    block = Block.of(texts)
    suspect = look_up(_may_change(), block.codes)
    # Ignore the break after a text; a space before it, before another space or at the start is superfluous.
    suspect[block.ends] = False
    space = block.codes == SPACE
    suspect[:-1] |= space[:-1] & (space[1:] | (block.codes[1:] == BREAK))
    suspect[block.starts] |= space[block.starts]
    if entities:
        suspect |= block.codes == ord("&")
    return np.unique(np.searchsorted(block.ends, np.flatnonzero(suspect)))


@cache
def _may_change() -> np.ndarray:
    """A table of the characters that normalisation may change or compose, bool of shape (PLANES,)."""

    def may_change(character: str) -> bool:
        return (
            (character.isspace() and character != " ")
            or _invisible().match(character) is not None
            # Marks may be composed with the letter before, and so may vowels and finals of Hangul.
            or unicodedata.category(character).startswith("M")
            or "\u1161" <= character <= "\u11ff"
            or not unicodedata.is_normalized("NFC", character)
        )

    table = np.fromiter((may_change(chr(code)) for code in range(PLANES)), bool, PLANES)
    table[PLANES - 1] = True
    return table
