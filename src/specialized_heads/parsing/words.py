"""The parse table, one row per word of a dependency tree; and the subwords of each word.

Words are syntactic words of Universal Dependencies; the words of a multi-word token divide its
characters among them if they spell it ("don't" = "do" + "n't"), else each has all of them ("du" =
"de" + "le"). Offsets count characters of the sentence in `analysis.parquet`, never of a tokenised
text, so that trees can be aligned with any segmentation. A sentence without a parse has no rows.

Words are aligned with subwords by these offsets, never by matching strings. SentencePiece gives the
bytes of the raw text that each piece covers; the parser gives the characters of each word. A piece
belongs to every word that it overlaps, even by one letter: "don't" in one piece belongs to both
"do" and "n't". If the text was preprocessed before BPE, its characters are mapped to those of the
raw sentence one by one, ignoring white space.

A span is (id, start, end): a piece, and characters [start, end) of a sentence.
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_pb2 import SentencePieceText

from specialized_heads.corpus.normalise import compose, drop_invisible, windows_punctuation
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
SCHEMA = pa.schema(
    [
        (name, pa.string() if name in ("form", "relation", "upos") else pa.int32())
        for name in COLUMNS
    ]
)


def letters(text: str) -> str:
    """The characters of a text for comparison: composed as in the clean stage, without white space
    and invisible characters."""
    return "".join(compose(drop_invisible(windows_punctuation(text))).split())


def word_spans(forms: Sequence[str], *, text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The characters [start, end) of each word of a token, given those of the token and the forms
    of its words.

    A word has its part of the token if the forms, joined, spell it; else the whole token.
    """
    spelled = [letters(form) for form in forms]
    places = [place for place in range(start, end) if not text[place].isspace()]
    if not all(spelled) or "".join(spelled) != "".join(text[place] for place in places):
        return [(start, end)] * len(forms)
    lengths = [len(form) for form in spelled]
    return [
        (places[last - length], places[last - 1] + 1)
        for length, last in zip(lengths, accumulate(lengths))
    ]


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


def piece_spans(processor: SentencePieceProcessor, text: str) -> list[tuple[int, int, int]]:
    """The spans of the T pieces of a sentence, in order.

    White space at the ends of a piece is not part of its span: "▁The" spans three letters, a piece
    of white space alone has an empty span. Our own models neither normalise text nor cut bytes;
    where an imported one does, pieces of a character each span all of it.
    """
    # The serialised form has byte offsets in all SentencePiece versions since 0.2.0.
    encoded = SentencePieceText.FromString(processor.encode(text, out_type="serialized_proto"))
    # of each byte
    character = [*(index for index, letter in enumerate(text) for _ in letter.encode()), len(text)]
    spans = []
    for piece in encoded.pieces:
        end = character[piece.end - 1] + 1 if piece.end > piece.begin else character[piece.end]
        raw = text[character[piece.begin] : end]
        start = end - len(raw.lstrip())
        spans.append((piece.id, start, start + len(raw.strip())))
    return spans


def raw_characters(processed: str, raw: str) -> list[int] | None:
    """For each character of a preprocessed sentence its position in the raw one, -1 for white
    space.

    None if more than case and white space differ. A character can have two in lower case ("İ").
    """
    letters = [
        (low, position)
        for position, letter in enumerate(raw)
        if not letter.isspace()
        for low in letter.lower()
    ]
    # Only the lower case of sigma depends on its neighbours, which tokenisation changes: ς at the
    # end of a word.
    expected, actual = (
        "".join(text).replace("ς", "σ") for text in ([low for low, _ in letters], processed.split())
    )
    if expected != actual:
        return None
    positions = iter(position for _, position in letters)
    return [-1 if letter.isspace() else next(positions) for letter in processed]


def raw_piece_spans(
    processor: SentencePieceProcessor, processed: str, raw: str
) -> list[tuple[int, int, int]] | None:
    """`piece_spans` of a preprocessed sentence, in characters of the raw one; None if the two are
    different sentences."""
    spans = piece_spans(processor, processed)
    if processed == raw:
        return spans
    origin = raw_characters(processed, raw)
    if origin is None:
        return None
    raw_spans, after = [], 0
    for identity, start, end in spans:
        first = after  # for a piece of white space alone
        if start < end:
            first, after = origin[start], origin[end - 1] + 1
        raw_spans.append((identity, first, after))
    return raw_spans


def words_to_pieces(
    word_spans: Sequence[tuple[int, int]], piece_spans: Sequence[tuple[int, int, int]]
) -> list[list[int]]:
    """The positions (0 to T - 1) of the pieces that overlap each of the W words, whose characters
    are [start, end).

    A word without pieces has an empty list: its sentence cannot be aligned.
    """
    return [
        [
            position
            for position, (_, start, end) in enumerate(piece_spans)
            if start < word_end and end > word_start
        ]
        for word_start, word_end in word_spans
    ]
