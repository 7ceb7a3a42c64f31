"""The parse table: one row per word of a dependency tree.

Words are syntactic words of Universal Dependencies; the words of a multi-word token divide its
characters among them if they spell it ("don't" = "do" + "n't"), else each has all of them ("du" =
"de" + "le"). Offsets count characters of the sentence in `analysis.parquet`, never of a tokenised
text, so that trees can be aligned with any segmentation. A sentence without a parse has no rows.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from specialized_heads.corpus.normalise import (
    compose,
    drop_invisible,
    repair_mojibake,
    windows_punctuation,
)
from specialized_heads.tables import read_table, write_table


class Word(NamedTuple):
    """One word of a tree: characters [start, end), number of its head (from 1; 0 for the root), UD
    relation and tag."""

    form: str
    start: int
    end: int
    head: int
    relation: str
    upos: str


COLUMNS = ("sentence", "word", *Word._fields)
TEXTS = ("form", "relation", "upos")
SCHEMA = pa.schema([(name, pa.string() if name in TEXTS else pa.int32()) for name in COLUMNS])


def letters(text: str) -> str:
    """The characters of a text for comparison: repaired and composed as in the clean stage, without
    white space and invisible characters."""
    repaired = repair_mojibake(windows_punctuation(text))
    return "".join(compose(drop_invisible(repaired)).split())


def word_spans(forms: Sequence[str], *, text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The characters [start, end) of each word of a token, given those of the token and the forms
    of its words.

    A word has its part of the token if the forms, joined, spell it; else the whole token.
    """
    spelled = [letters(form) for form in forms]
    places = [place for place in range(start, end) if not text[place].isspace()]
    if not all(spelled) or "".join(spelled) != "".join(text[place] for place in places):
        return [(start, end)] * len(forms)
    ends = list(accumulate(map(len, spelled), initial=0))
    return [(places[start], places[end - 1] + 1) for start, end in pairwise(ends)]


def write_parses(path: Path, parses: Sequence[Sequence[Word]]) -> None:
    """Write the trees of all sentences, in order; an empty tree leaves no row."""
    rows = [
        {"sentence": sentence, "word": number, **word._asdict()}
        for sentence, words in enumerate(parses)
        for number, word in enumerate(words, start=1)
    ]
    write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA), compression="zstd")


def read_parses(path: Path) -> dict[int, list[Word]]:
    """Read `parses/analysis.parquet`: the words of each parsed sentence, by its row number in
    `analysis.parquet`."""
    table = read_table(path, schema=SCHEMA)
    parses: dict[int, list[Word]] = {}
    for sentence, _, *word in zip(*(table.column(name).to_pylist() for name in COLUMNS)):
        parses.setdefault(sentence, []).append(Word(*word))
    return parses
