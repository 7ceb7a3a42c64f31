"""Dependency trees on the subwords of a model: the pieces of each word, and the arcs between words.

Words can share pieces: in the pieces "didn", "'" and "t" of "didn't", the words are "did" and "n't". A shared piece is divided
among its words in proportion to their characters in it. Words with the same pieces (both words of "don't" in one piece, the words
of a multi-word token) are indistinguishable to attention: each gets the attention that they have together, and arcs between them
are left out, because a head that finds one also finds the other.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sentencepiece import SentencePieceProcessor

from specialized_heads.parsing.alignment import raw_piece_spans, words_to_pieces
from specialized_heads.parsing.relations import Arc, arcs
from specialized_heads.parsing.words import Word


@dataclass(frozen=True)
class Sentence:
    """A parsed sentence.

    words: the pieces of each word.
    shares: the word's share in each of these pieces, above 0 and at most 1.
    arcs: of the configured relations, between words with different pieces.
    """

    words: list[list[int]]
    shares: list[list[float]]
    arcs: list[Arc]


def align(
    parses: dict[int, list[Word]],
    texts: list[str],
    bpe: SentencePieceProcessor,
    relations: list[str],
    *,
    processed: list[str] | None = None,
    tags: int = 0,
) -> tuple[dict[int, Sentence], Counter[str]]:
    """Align parses of `texts` with subwords.

    Args:
        processed: the sentences as BPE sees them; None: `texts`.
        tags: tokens before the pieces of every sentence.

    Returns:
        the aligned sentences, and the number of arcs of each relation left out of them. A sentence is not aligned if its two
        texts disagree or one of its words has no piece.
    """
    sentences, left_out = {}, Counter[str]()
    for number, words in parses.items():
        spans = raw_piece_spans(bpe, (processed or texts)[number], texts[number])
        if spans is None:
            continue
        pieces = words_to_pieces([(word.start, word.end) for word in words], spans)
        if all(pieces):
            shares = piece_shares([(word.start, word.end) for word in words], spans, pieces)
            all_arcs = arcs(words, relations)
            kept = [arc for arc in all_arcs if pieces[arc.head] != pieces[arc.dependent]]
            left_out.update(Counter(arc.relation for arc in all_arcs) - Counter(arc.relation for arc in kept))
            pieces = [[tags + piece for piece in word] for word in pieces]
            sentences[number] = Sentence(pieces, shares, kept)
    return sentences, left_out


def piece_shares(
    word_spans: Sequence[tuple[int, int]], piece_spans: Sequence[tuple[int, int, int]], words: Sequence[list[int]]
) -> list[list[float]]:
    """Divide pieces among `words`, whose pieces are those of `words_to_pieces`.

    For each word and each of its pieces: the fraction of the piece's characters that belong to the word or to a word with the
    same pieces; 1 for a piece of one word.
    """
    # A piece can be white space inside a word, without a character of the word.
    overlaps = [
        [max(1, min(end, piece_spans[p][2]) - max(start, piece_spans[p][1])) for p in pieces]
        for (start, end), pieces in zip(word_spans, words, strict=True)
    ]
    whole: Counter[int] = Counter()
    alike: Counter[tuple[tuple[int, ...], int]] = Counter()
    for pieces, characters in zip(words, overlaps, strict=True):
        for piece, number in zip(pieces, characters, strict=True):
            whole[piece] += number
            alike[tuple(pieces), piece] += number
    return [[alike[tuple(pieces), piece] / whole[piece] for piece in pieces] for pieces in words]
