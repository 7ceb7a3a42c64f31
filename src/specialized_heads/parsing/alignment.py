"""Alignment of words with subwords by character offsets in the raw sentence, never by matching
strings.

SentencePiece gives the bytes of the raw text that each piece covers; the parser gives the
characters of each word. A piece belongs to every word that it overlaps, even by one letter: "don't"
in one piece belongs to both "do" and "n't". If the text was preprocessed before BPE, its characters
are mapped to those of the raw sentence one by one, ignoring white space.

A span is (id, start, end): a piece, and characters [start, end) of a sentence.
"""

from collections.abc import Sequence

from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_pb2 import SentencePieceText


def piece_spans(processor: SentencePieceProcessor, text: str) -> list[tuple[int, int, int]]:
    """The spans of the T pieces of a sentence, in order.

    White space at the ends of a piece is not part of its span: "▁The" spans three letters, a piece
    of white space alone has an empty span. The models of `corpus/bpe.py` neither normalise text nor
    cut bytes; where an imported one does, pieces of a character each span all of it.
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
