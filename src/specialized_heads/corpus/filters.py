"""The filters of the clean stage: whether to drop each pair of a block, judged on its own.

Held-out sets that the source assigns are benchmarks: from `dev` and `test` only pairs without text are dropped. Of `analysis`
only the source side is used, so only filters of one side apply to it, and its target may be empty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.config.sections import Filters
from specialized_heads.corpus.characters import Block, letters_of, look_up
from specialized_heads.corpus.near_duplicates import fingerprints, sentence_keys
from specialized_heads.languages import without_region

# The languages (ISO 639-1) that are commonly written in a script (its name in the Unicode property Script).
LANGUAGES = {
    "Arabic": "ar fa ku pa ps sd ug ur",
    "Armenian": "hy",
    "Bengali": "as bn",
    "Bopomofo": "zh",
    "Cyrillic": "az ba be bg ce cv kk ky mk mn ru sr tg tk tt uk uz",
    "Devanagari": "hi mr ne sa",
    "Ethiopic": "am ti",
    "Georgian": "ka",
    "Greek": "el",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "Han": "ja ko zh",
    "Hangul": "ko",
    "Hebrew": "he yi",
    "Hiragana": "ja",
    "Kannada": "kn",
    "Katakana": "ja",
    "Khmer": "km",
    "Lao": "lo",
    "Latin": "af az br bs ca cs cy da de en eo es et eu fi fo fr fy ga gd gl ha hr hu id ig is it kk ku lb lt lv mg mi ms mt nb "
    "nl nn no oc pl pt rm ro rw sk sl so sq sr st sv sw tk tl tn tr uz vi wo xh yo zu",
    "Malayalam": "ml",
    "Myanmar": "my",
    "Oriya": "or",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thai": "th",
}


def scripts_of(language: str) -> tuple[str, ...]:
    """The scripts of a language code, ignoring its region or script ("pt_BR", "zh-Hant"); () for an unknown language."""
    code = without_region(language)
    return tuple(script for script, languages in LANGUAGES.items() if code in languages.split())


@dataclass(frozen=True)
class Side:
    """One side of a block, measured, with one entry per text.

    `keys`: the sentence keys; `key_prints`: their fingerprints. `script_share`: share of the letters in a script of the
    language; NaN without letters, or where it is not needed.
    """

    characters: np.ndarray
    words: np.ndarray
    keys: pa.StringArray
    key_prints: np.ndarray
    script_share: np.ndarray


def measure(texts: pa.StringArray, *, language: str, filters: Filters) -> Side:
    """Measure one side of a block of normalised texts."""
    block = Block.of(texts)
    scripts = scripts_of(language) if filters.script > 0 else ()
    share = script_share(block, scripts) if scripts else np.full(len(texts), np.nan)
    keys = sentence_keys(block)
    return Side(block.characters, block.words, keys, fingerprints(keys), share)


def script_share(block: Block, scripts: tuple[str, ...]) -> np.ndarray:
    """Share of the letters of each text in one of the scripts, float64 of shape (len(texts),); NaN without letters.

    Letters that scripts share are not counted.
    """
    of_scripts, of_any = (block.count(look_up(table, block.codes)) for table in (letters_of(scripts), letters_of()))
    with np.errstate(invalid="ignore"):
        return of_scripts / of_any


# Which pairs each filter drops, in order; the names are those of the counts.
FILTERS: dict[str, Callable[[Side, Side, Filters], np.ndarray]] = {
    "empty": lambda source, target, _: np.minimum(source.characters, target.characters) == 0,
    "too_short": lambda source, target, limits: np.minimum(source.words, target.words) < limits.min_words,
    "too_long": lambda source, target, limits: np.maximum(source.words, target.words) > limits.max_words,
    "too_many_characters": lambda source, target, limits: (
        np.maximum(source.characters, target.characters) > limits.max_characters
    ),
    "uneven": lambda source, target, limits: (
        np.maximum(source.characters, target.characters)
        > limits.max_ratio * np.minimum(source.characters, target.characters)
    ),
    "copy": lambda source, target, limits: (source.key_prints == target.key_prints) & (not limits.copies),
    "wrong_script": lambda source, target, limits: (
        (source.script_share < limits.script) | (target.script_share < limits.script)
    ),
}
# Filters that apply to the source alone.
ONE_SIDE = ("empty", "too_short", "too_long", "too_many_characters", "wrong_script")


def reasons(source: Side, target: Side, *, sets: pa.StringArray, filters: Filters) -> np.ndarray:
    """The first filter that drops each pair of a block.

    Args:
        sets: the held-out set that the source assigns to each pair, "" for none.

    Returns:
        its position in `FILTERS`, from 1; 0: the pair is kept. int8 of shape (pairs,).
    """
    dealt, analysis = (pc.equal(sets, name).to_numpy(zero_copy_only=False) for name in ("", "analysis"))
    found = np.zeros(len(sets), np.int8)
    for number, (name, drops) in enumerate(FILTERS.items(), start=1):
        dropped = drops(source, target, filters) & (~analysis if name == "empty" else dealt)
        if name in ONE_SIDE:
            dropped |= drops(source, source, filters) & analysis
        found[(found == 0) & dropped] = number
    return found
