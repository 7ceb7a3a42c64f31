"""English sentences of embedded corpora, and the set that each belongs to.

A sentence's letters alone decide its set, so no task is tested on a sentence that the model was pre-trained on.
"""

from collections.abc import Iterable
from pathlib import Path

from specialized_heads.corpus.near_duplicates import fingerprint, sentence_key
from specialized_heads.corpus.normalise import single_spaces
from specialized_heads.tables import read_columns

TEST, DEV = 0.08, 0.1  # test below the first, dev from there to the second, train above
SETS = ("train", "dev", "test")


def read_sentences(paths: Iterable[Path]) -> dict[str, list[str]]:
    """The sources of these `corpus.parquet`, by set; each once (by its letters), in the order of a hash."""
    known: dict[str, str] = {}
    for path in paths:
        [texts] = read_columns(path, "source")
        for text in texts:
            if text := single_spaces(text):
                known.setdefault(sentence_key(text), text)
    sets: dict[str, list[str]] = {name: [] for name in SETS}
    for place, text in sorted((fingerprint(f"classification\n{key}") / 2**64, text) for key, text in known.items()):
        sets["test" if place < TEST else "dev" if place < DEV else "train"].append(text)
    return sets
