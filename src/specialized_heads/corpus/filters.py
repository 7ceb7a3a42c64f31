"""The filters of the clean stage, which decide for each pair of a block, on its own, whether to drop it.

Held-out sets that the source assigns are benchmarks: from `dev` and `test` only pairs without text are dropped. Of `analysis`
only the source side is used, so it is judged as if it were both sides, and its target may be empty.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from specialized_heads.experiment.sections import Filters

# The names of the counts, in order.
FILTERS = ("empty", "too_long", "too_many_characters", "uneven", "copy")
MAX_CHARACTERS = 1000  # of a text


def measure(texts: pa.StringArray) -> pd.DataFrame:
    """The `characters` and `words` of each text, if single spaces separate its words."""
    characters = pc.utf8_length(texts).to_numpy()
    words = pc.count_substring(texts, " ").to_numpy() + (characters > 0)
    return pd.DataFrame({"characters": characters, "words": words})


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
        "uneven": most["characters"] > filters.max_ratio * least["characters"],
        "copy": copies & (sets == ""),
    }
    applies = ~np.isin(sets, ["dev", "test"])
    conditions = [drops[name] & (applies | (name == "empty")) for name in FILTERS]
    return np.select(conditions, range(1, len(FILTERS) + 1), 0).astype(np.int8)
