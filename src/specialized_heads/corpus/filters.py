"""The filters of the clean stage, which decide for each pair of a block, on its own, whether to drop it.

Held-out sets that the source assigns are benchmarks: from `dev` and `test` only pairs without text are dropped. Of `analysis`
only the source side is used, so it is judged as if it were both sides, and its target may be empty.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.experiment.sections import Filters
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


# The names of the counts, in order.
FILTERS = ("empty", "too_long", "too_many_characters", "uneven", "copy", "wrong_script")
MAX_CHARACTERS = 1000  # of a text


def measure(texts: pa.StringArray) -> pd.DataFrame:
    """The `characters` and `words` of each text, if single spaces separate its words."""
    characters = pc.utf8_length(texts).to_numpy()
    words = pc.count_substring(texts, " ").to_numpy() + (characters > 0)
    return pd.DataFrame({"characters": characters, "words": words})


def script_share(texts: pa.StringArray, *, language: str) -> np.ndarray:
    """Share of the letters of each text in a script of the language, float64; NaN without letters or known scripts.

    Letters that scripts share are not counted.
    """
    if not (scripts := scripts_of(language)):
        return np.full(len(texts), np.nan)
    letters = pc.replace_substring_regex(texts, r"(?:[^\p{L}]|[\p{Common}\p{Inherited}])+", "")
    others = pc.replace_substring_regex(letters, "[" + "".join(rf"\p{{{script}}}" for script in scripts) + "]+", "")
    total, other = (pc.utf8_length(text).to_numpy() for text in (letters, others))
    with np.errstate(invalid="ignore"):
        return (total - other) / total


def reasons(
    source: pa.StringArray,
    target: pa.StringArray,
    *,
    copies: np.ndarray,
    sets: np.ndarray,
    languages: tuple[str, str],
    filters: Filters,
) -> np.ndarray:
    """The first filter that drops each pair of a block of normalised text.

    Its position in `FILTERS`, from 1; 0: the pair is kept. `copies`: whether the two sides have equal keys; `sets`: the held-out
    set that the source assigns, "" for none.
    """
    sides = [measure(source), measure(target)]
    if filters.script > 0:
        for side, texts, language in zip(sides, (source, target), languages, strict=True):
            side["script_share"] = script_share(texts, language=language)
    sides[1] = sides[1].where(sets != "analysis", sides[0])
    least, most = np.fmin(*sides), np.fmax(*sides)
    drops = {
        "empty": least["characters"] == 0,
        "too_long": most["words"] > filters.max_words,
        "too_many_characters": most["characters"] > MAX_CHARACTERS,
        "uneven": most["characters"] > filters.max_ratio * least["characters"],
        "copy": copies & (sets == ""),
        "wrong_script": least.get("script_share", 1) < filters.script,
    }
    applies = ~np.isin(sets, ["dev", "test"])
    conditions = [drops[name] & (applies | (name == "empty")) for name in FILTERS]
    return np.select(conditions, range(1, len(FILTERS) + 1), 0).astype(np.int8)
