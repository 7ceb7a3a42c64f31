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

# Joiners matter for spelling in Persian and in Indian scripts, and signs that enclose a number or word (Unicode's
# Prepended_Concatenation_Mark: Arabic, Syriac and Kaithi) are visible; other format characters (soft hyphen, zero-width space,
# byte-order mark, directional marks) are not.
SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
JOINERS = "\u200c\u200d"
KEPT_FORMAT_CHARACTERS = f"{JOINERS}{SIGNS}"
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


def normalise(text: str) -> tuple[str, set[str]]:
    """The normalised text, and which of `STEPS` changed it."""
    changed = set()
    for name, step in STEPS.items():
        before, text = text, step(text)
        if text != before:
            changed.add(name)
    # Invisible characters may have separated spaces; joiners that join nothing are no text.
    return single_spaces(text) if text.strip(f" {JOINERS}") else "", changed
