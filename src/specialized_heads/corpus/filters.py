"""The filters of the clean stage, which decide for each pair of a block, on its own, whether to drop it.

Held-out sets that the source assigns are benchmarks: from `dev` and `test` only pairs without text are dropped. Of `analysis`
only the source side is used, so it is judged as if it were both sides, and its target may be empty.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.experiment.sections import Filters

MAX_CHARACTERS = 1000  # of a text
# The names of the counts, in order, and what to do if a filter drops many pairs.
FILTERS = {
    "empty": "check `source`: one side has no text",
    "too_long": "raise filters.max_words, or divide the text into sentences",
    "too_many_characters": f"divide the text into sentences of at most {MAX_CHARACTERS} characters",
    "uneven": "if they are translations, raise filters.max_ratio",
    "copy": "check `source`: both sides are equal",
}
# A character of Chinese, Japanese or Korean says as much as about this many letters: at 2.5, the default ratio drops 0.1% of the
# English-Chinese pairs of LibreOffice's help, 1.7% of the Japanese and 1.2% of the Korean ones; at 1, 46%, 14% and 11%.
DENSE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"
DENSITY = 2.5


def measure(texts: pa.StringArray) -> pd.DataFrame:
    """The `characters` and `words` of each text, if single spaces separate its words.

    `length`: the characters, those of Chinese, Japanese and Korean as `DENSITY`.
    """
    characters = pc.utf8_length(texts).to_numpy()
    words = pc.count_substring(texts, " ").to_numpy() + (characters > 0)
    length = characters + (DENSITY - 1) * pc.count_substring_regex(texts, DENSE).to_numpy()
    return pd.DataFrame({"characters": characters, "words": words, "length": length})


def reasons(
    source: pa.StringArray, target: pa.StringArray, *, copies: np.ndarray, sets: pd.Series, filters: Filters
) -> np.ndarray:
    """The first filter that drops each pair of a block of normalised text.

    Its position in `FILTERS`, from 1; 0: the pair is kept. `copies`: whether the two sides have equal keys; `sets`: the held-out
    set that the source assigns, "" for none.
    """
    sides = [measure(source), measure(target)]
    sides[1] = sides[1].where(sets != "analysis", sides[0])
    least, most = np.fmin(*sides), np.fmax(*sides)
    drops = {
        "empty": least["characters"] == 0,
        "too_long": most["words"] > filters.max_words,
        "too_many_characters": most["characters"] > MAX_CHARACTERS,
        "uneven": most["length"] > filters.max_ratio * least["length"],
        "copy": copies & (sets == ""),
    }
    applies = ~np.isin(sets, ["dev", "test"])
    conditions = [drops[name] & (applies | (name == "empty")) for name in FILTERS]
    return np.select(conditions, range(1, len(FILTERS) + 1), 0).astype(np.int8)
