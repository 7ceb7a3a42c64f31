"""Which subwords make up which word: decided by character offsets in the raw sentence, never by matching strings.

SentencePiece says for each piece which bytes of the raw text it came from; the parser says the same for each word in
characters. A piece belongs to every word whose characters it overlaps: "don't" in one piece belongs to both "do" and
"n't", and a piece that holds one letter of a word is a piece of that word.
"""

from collections.abc import Sequence
from itertools import accumulate

from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_pb2 import SentencePieceText

SPACE = "▁"  # SentencePiece's mark for a space


def piece_spans(processor: SentencePieceProcessor, text: str) -> list[tuple[int, int, int]]:
    """Segment a sentence and find the characters of each piece.

    White space at the ends of a piece is not part of its span: "▁The" spans the three letters. A piece of white space
    alone has an empty span. Pieces that split a single character (bytes of a rare character, parts of "½" after
    normalisation) all span that character.

    Args:
        processor: the BPE model.
        text: the raw sentence, as the parser saw it.

    Returns:
        (id, start, end) for each of the T pieces, in order; characters [start, end) of `text`.
    """
    # The serialised form is the one that all SentencePiece versions since 0.2.0 return, with offsets always in bytes.
    encoded = SentencePieceText.FromString(processor.encode(text, out_type="serialized_proto"))
    lengths = (len(letter.encode()) for letter in text)
    character = {byte: index for index, byte in enumerate(accumulate(lengths, initial=0))}
    spans: list[tuple[int, int, int]] = []
    for piece in reversed(encoded.pieces):
        start, end = character[piece.begin], character[piece.end]
        raw = text[start:end]
        start = end - len(raw.lstrip())
        end = start + len(raw.strip())
        # Of the pieces that split a character, SentencePiece gives the character to the last one.
        if start == end and piece.piece.strip(SPACE) and spans and spans[-1][1] == start:
            end = spans[-1][2]
        spans.append((piece.id, start, end))
    return spans[::-1]


def words_to_pieces(
    word_spans: Sequence[tuple[int, int]], piece_spans: Sequence[tuple[int, int, int]]
) -> list[list[int]]:
    """Find the pieces of each word.

    Args:
        word_spans: characters [start, end) of each of the W words.
        piece_spans: (id, start, end) of each of the T pieces, from `piece_spans` on the same text.

    Returns:
        for each word, the positions (0 to T - 1) of the pieces that overlap it. A word without pieces has an empty
        list: its sentence cannot be aligned.
    """
    return [
        [position for position, (_, start, end) in enumerate(piece_spans) if start < word_end and end > word_start]
        for word_start, word_end in word_spans
    ]
