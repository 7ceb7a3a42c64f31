"""The normal form of a text, in which it is kept, and the key of a sentence, by which it is
compared with others.

HTML entities become their characters (also if encoded twice, `&amp;quot;`; the two of a surrogate
pair are one). Control characters U+0080 to U+009F become what Windows-1252 has there (U+0085 is an
ellipsis), and UTF-8 that was read as Windows-1252 (`â€™`) becomes what it was. Every run of white
space (no-break spaces included) becomes one space, control and format characters are removed, and
the rest becomes Unicode NFC. There is no lower-casing, tokenisation or replacement of quotes, since
BLEU is computed on this text. A second run changes only what was encoded more often or broken up by
an invisible character.

The *key* of a sentence consists of its case-folded letters, their combining marks (the vowels of
many scripts), and numbers such as Ⅷ, ½ and ²: each run of them is a word, words are joined by one
space, and decimal digits, punctuation and white space are dropped ("Don't go!" and "don’t go" have
the key "don t go"). Dotted and dotless i of Turkish are one letter, since I folds to i in any
language. A sentence without letters is its own key. Sentences with equal keys are duplicates.

The *bag* of a sentence is the multiset of the words of its key. Sentences with equal bags but
different keys are near-duplicates: the same words in another order. Nothing weaker (one word
changed, added or removed) counts.
"""

import html
import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from hashlib import blake2b
from html.entities import html5

# Joiners matter for spelling in Persian, Mongolian and Indian scripts, and signs that enclose a
# number or word (Unicode's Prepended_Concatenation_Mark: Arabic, Syriac and Kaithi) are visible;
# other format characters (soft hyphen, zero-width space, byte-order mark, directional marks) are
# not.
SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
JOINERS = "\u180e\u200c\u200d"
KEPT_FORMAT_CHARACTERS = f"{JOINERS}{SIGNS}"
# A black flag with the invisible letters of a region, which make it the flag of England, Scotland
# or Wales.
FLAG = "\U0001f3f4[\U000e0030-\U000e007a]+\U000e007f"
# What is lost cannot be repaired: the character that decoders put in the place of others.
LOST = "\ufffd"
# HTML takes numbers 128 to 159 for bytes of Windows-1252; the five that it lacks stay as they are.
WINDOWS = {number: html.unescape(f"&#{number};") for number in range(0x80, 0xA0)}
# The bytes 80 to BF, with which UTF-8 continues a character, as Windows-1252 reads them.
BYTES = {character: number for number, character in WINDOWS.items()} | {
    chr(n): n for n in range(0xA0, 0x100)
}
CONTINUED = re.escape("".join(c for c, number in BYTES.items() if number < 0xC0))
QUOTES = "‚„…‹‘’“”•–—›"  # also dashes, ellipsis and bullet
# Punctuation, €, ™, byte-order mark and U+FFFD, emoji; Latin letters and signs. But Â and Ã may be
# letters themselves: of a word in capitals (`IRMÃ…`, `ĐÃ…`), in quotes, or alone (`Â…`), with no
# letter beside it. Even after a capital, signs that never follow a letter in a word can only be
# bytes, and so can a soft hyphen or a superscript before a small letter (`MÃ¹`, but `Mùa`).
MOJIBAKE = re.compile(
    f"â€[{CONTINUED}]|â‚¬|â„¢|ï»¿|ï¿½|ðŸ[{CONTINUED}]{{2}}"
    "|(?<![A-ZÀ-ÞĀ-ɏḀ-ỿ\"'“‘„«])"
    f"(?:(?<=\\w)[ÂÃ][{QUOTES}]|[ÂÃ][{QUOTES}](?=\\w)|(?<=\\S)Â\u00a0"
    f"|(?!Â\u00a0)[ÂÃ](?![{QUOTES}])[{CONTINUED}])"
    "|Ã(?:[€ƒ†‡ˆ‰ŠŒŽœžŸ\u0081\u008d\u008f\u0090¡-©¬®-±´-¸¼-¿]|[ª\u00ad²³¹º](?=[a-zß-ÿ]))"
)
# HTML allows entities without a semicolon, but these may be names or parts of an address ("R&D",
# "?a=1&copy=2").
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
SURROGATE = re.compile("[\ud800-\udfff]")
ENCODED_TIMES = 3
# What is dropped, by name.
INVISIBLE = ("soft_hyphens", "byte_order_marks", "control_characters", "format_characters")


def decode_entities(text: str) -> str:
    """Replace HTML entities by their characters, even if encoded `ENCODED_TIMES` times."""
    for _ in range(ENCODED_TIMES):
        text = ENTITY.sub(_character, text)
    if SURROGATE.search(text):  # two are one character; one alone is none
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _character(entity: re.Match[str]) -> str:
    if entity[0][1] != "#":
        return html.unescape(entity[0]) if entity[0][1:] in html5 else entity[0]
    number = int(entity[0][3:-1], 16) if entity[0][2] in "xX" else int(entity[0][2:-1])
    surrogate = 0xD800 <= number <= 0xDFFF
    return chr(number) if surrogate else html.unescape(entity[0])


def windows_punctuation(text: str) -> str:
    """Replace U+0080 to U+009F by the characters that Windows-1252 has at these numbers."""
    return text if text.isprintable() else text.translate(WINDOWS)


def repair_mojibake(text: str) -> str:
    """Restore characters whose UTF-8 was read as Windows-1252, where nothing else can be meant.

    Their own numbers may be of Windows-1252: "Â’" is U+0092, an apostrophe.
    """

    def restored(found: re.Match[str]) -> str:
        return windows_punctuation(bytes(map(BYTES.__getitem__, found[0])).decode("utf-8"))

    return MOJIBAKE.sub(restored, text)


def single_spaces(text: str) -> str:
    """Replace every run of white space by one space, with none at the ends; U+0085 is Windows'
    ellipsis and stays."""
    if "\x85" in text:
        return re.sub(r"[^\S\x85]+", " ", text).strip(" ")
    return " ".join(text.split())


def drop_invisible(text: str) -> str:
    for name in INVISIBLE:
        text = _drop(text, name=name)
    return text


def _drop(text: str, *, name: str) -> str:
    return text if text.isprintable() else _dropped()[name].sub(r"\g<flag>", text)


@cache
def _dropped() -> dict[str, re.Pattern[str]]:
    """A pattern per name of `INVISIBLE`; what it finds outside its group `flag` is dropped."""
    found: dict[str, list[str]] = {name: [] for name in INVISIBLE}
    own = {"\u00ad": "soft_hyphens", "\ufeff": "byte_order_marks"}
    kinds = {"Cc": "control_characters", "Cf": "format_characters"}
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = kinds.get(unicodedata.category(character))
        if kind and character not in KEPT_FORMAT_CHARACTERS:
            found[own.get(character, kind)].append(character)
    return {
        name: re.compile(f"(?P<flag>{FLAG})|[{re.escape(''.join(characters))}]+")
        for name, characters in found.items()
    }


def compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# In this order; the names are those of the counts.
STEPS: dict[str, Callable[[str], str]] = {
    "entities": decode_entities,
    "windows_1252": windows_punctuation,
    "mojibake": repair_mojibake,
    "white_space": single_spaces,
    **{name: partial(_drop, name=name) for name in INVISIBLE},
    "composition": compose,
}
CHANGES = (*STEPS, "invisible")  # what is counted; invisible: any of `INVISIBLE`


def normalise(text: str) -> tuple[str, set[str]]:
    """The normalised text, and which of `CHANGES` were made."""
    changed = set()
    for name, step in STEPS.items():
        before, text = text, step(text)
        if text != before:
            changed.add(name)
    if not changed.isdisjoint(INVISIBLE):
        changed.add("invisible")
    # Invisible characters may have separated spaces; joiners that join nothing are no text.
    return single_spaces(text) if text.strip(f" {JOINERS}") else "", changed


class _Letters(dict[int, str]):
    """For `str.translate`: what a key consists of stays, any other character becomes a space."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if unicodedata.category(letter).startswith("M"):
            stays = not unicodedata.name(letter).startswith("VARIATION SELECTOR")
        else:
            stays = letter.isalnum() and not letter.isdecimal()
        self[code] = letter if stays else " "
        return self[code]


_letters = _Letters()


def sentence_key(text: str) -> str:
    folded = text.replace("İ", "i").replace("ı", "i").casefold()
    return " ".join(folded.translate(_letters).split()) or text


def sentence_bag(key: str) -> str:
    """The words of a key in alphabetical order."""
    return " ".join(sorted(key.split(" ")))


def fingerprint(text: str) -> int:
    """64-bit hash of a text. It must never change: documents are held out by it, and the embedded
    parses depend on that."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
