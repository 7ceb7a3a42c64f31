"""Preprocessing of text before BPE, undone after translating: `vocabulary.preprocess`.

`none` leaves the text unchanged. `paper` is what the code released with the paper expects: Moses
tokenisation, then lower case (in this order, since Moses recognises abbreviations such as "Mr." by
their capitals). XML characters are not escaped and hyphens not split, so only case and white space
change. The alignment of words with subwords (`heads/syntactic.py`) relies on that and checks it.

Unlike Moses, it does not split characters: accents and vowel signs, joiners, and emoji of several
code points stay whole. Moses' detokeniser joins ASCII quotes and apostrophes only; this one joins
curly ones, too. Tokens do not tell `5 €` from `5€` or `a – b` from `a–b`; `evaluation.py`
measures what that costs.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from specialized_heads.experiment.sections import Mode
from specialized_heads.languages import without_region

# What Moses separates, as whole characters (`\X`: with accents, joiners and modifiers); %s stands
# for letters and digits. The signs of Armenian questions and exclamations are written within a
# word, too.
SEPARATED = r"((?!\p{M}|\p{Emoji_Modifier}|[\u200c\u200d\u055b-\u055e%s\s\.'\`\,\-])\X)"
# No space before: punctuation of Arabic, Indic, Armenian, Ethiopic, Tibetan, Burmese and Khmer;
# what follows a word or number.
BEFORE = re.compile(r" (?=[،؛؟۔।॥։።-፨།။၊។៕])|(?<=\w) (?=[…²³¹®™])|(?<=\d) (?=°(?! [cf]\b))")
# No spaces at either side: punctuation of Chinese and Japanese, the dot between Tibetan syllables,
# hyphens, Catalan l·l.
BETWEEN = re.compile(
    r" ?([\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40]"
    r"|[\uff5b-\uff65]"
    r"|[\u0f0b\u0f0c\u05be\u2010\u2011]|(?<=l )·(?= l)|(?<=\d )–(?= \d)) ?"
)
# No space after: a currency before a number, the sign of degrees; an emoji before another one.
AFTER = re.compile(
    r"(?<!\d )(?<=[€£¥₽₴₹]) (?=\d)|(?<=°) (?=[cf]\b)|(?<=[\U0001f1e6-\U0001faff]) "
    r"(?=[\U0001f1e6-\U0001faff])"
)
# Apostrophes within words: in English before an ending and after O and D; in languages whose
# spelling has it between any letters; elsewhere where a letter is alone beside it. (For ’ see
# `_joined`.)
ENGLISH = re.compile(r"(?<=\w) ’ (?=(?:s|t|d|m|re|ve|ll)\b)|(?<=\b[od]) ’ (?=\w)")
SPELLING = dict.fromkeys(("be", "tr", "uk"), re.compile(r"(?<=[^\W\d_]) ['’] (?=[^\W\d_])"))
STRAIGHT = re.compile(r"(?<=[^\W\d_]) ' (?=[^\W\d_]\b)|(?<=\b[^\W\d_]) ' (?=[^\W\d_])")
# Which quotes each one can close; ” and ’ close anything, but for languages in which they also
# open.
CLOSES = {"“": "„", "‘": "‚", "«": "»", "»": "«", "”": "“„”", "’": "‘‚’", "„": "", "‚": ""}
SAME_AT_BOTH_ENDS = ("sv", "fi")
NO_SPACES = ("zh", "ja")
NO_SPACE_AFTER = (*NO_SPACES, "ko")  # a particle follows
QUOTE = re.compile(r"( ?)((?<!\w)[“”„‘’‚«»]|[“”„‘’‚«»](?!\w))( ?)")


def apply(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Preprocess sentences for BPE: for `paper`, lower-case tokens separated by single spaces."""
    if mode == "none":
        return list(texts)
    tokenize = _moses(language)[0].tokenize
    return [" ".join(tokenize(text, escape=False)).lower() for text in texts]


def undo(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Undo `apply`; for `paper`, spaces are restored as far as tokens tell them, and the text stays
    in lower case."""
    if mode == "none":
        return list(texts)
    return [_joined(text, without_region(language)) for text in texts]


def _joined(text: str, language: str) -> str:
    """The text of tokens with the spaces of its language."""
    if language not in ("en", "fr", "it"):  # whose ' Moses restores
        text = SPELLING.get(language, STRAIGHT).sub(lambda found: found[0].strip(), text)
    text = _moses(language)[1].detokenize(text.split(), unescape=False)
    text = BETWEEN.sub(r"\1", AFTER.sub("", BEFORE.sub("", text)))
    if language == "en":
        text = ENGLISH.sub("’", text)
    opened: dict[str, str] = {}

    def place(quote: re.Match[str]) -> str:
        left, mark, right = quote.groups()
        if language == "fr" and mark in "«»":  # between spaces
            return quote[0]
        kind = next(marks for marks in ("“”„", "‘’‚", "«»") if mark in marks)
        both = language in SAME_AT_BOTH_ENDS
        sides = text[quote.start() - 1 : quote.start()] + text[quote.end() : quote.end() + 1]
        inside = len(sides) == 2 and sides.isalpha()
        if mark == "’" and inside and not (both or language == "en" or kind in opened):
            return mark
        if opened.get(kind, "-") in CLOSES[mark] or (mark in "”’" and not both):
            opened.pop(kind, None)
            return mark if language in NO_SPACE_AFTER else mark + right
        opened[kind] = mark
        return mark if language in NO_SPACES else left + mark

    return QUOTE.sub(place, text)


@cache
def _moses(language: str) -> tuple[Any, Any]:
    """Moses' tokeniser and detokeniser of a language, ignoring its region; an unknown language has
    general rules."""
    # Imported here, so that stages without tokenised text do not pay for it.
    import regex
    from sacremoses import MosesDetokenizer, MosesTokenizer

    language = without_region(language)
    tokenizer, detokenizer = MosesTokenizer(language), MosesDetokenizer(language)
    tokenizer.PAD_NOT_ISALNUM = regex.compile(SEPARATED % tokenizer.IsAlnum), r" \1 "
    detokenizer.IS_OPEN_QUOTE = re.compile("^['\"`]+$")
    detokenizer.IS_CURRENCY_SYMBOL = re.compile(r"^[\(\[\{¿¡$]+$")
    # Moses' own methods build sets of all letters at each full stop, which takes half of the time.
    letters = frozenset(tokenizer.IsAlpha)
    tokenizer.islower = frozenset(tokenizer.IsLower).issuperset
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    return tokenizer, detokenizer
