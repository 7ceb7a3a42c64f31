"""Trees laid over the subwords of a model: which pieces make up each word, and the arcs between the words.

Words can share pieces: "didn't" in the pieces "didn", "'" and "t" is "did" and "n't". A shared piece is divided among its words
in the ratio of their characters in it, so that no word has more of a piece than is its own. Words with the same pieces (both
words of "don't" in one piece, the words of a multi-word token) cannot be told apart by attention: they are not divided from
each other, and each has what all of them have together. An arc between two such words is left out: a head that finds the one
looks at the other.
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
    shares: how much of each of these pieces is the word's, above 0 and at most 1.
    arcs: of the relations asked for, between words that do not have the same pieces.
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
) -> tuple[dict[int, Sentence], Counter[str]]:
    """Lay parses over subwords.

    Args:
        parses: the words of each parsed sentence.
        texts: the sentences as the parser saw them.
        bpe: the model that cut them.
        relations: whose arcs are kept.
        processed: the sentences as BPE got them; None: `texts`.

    Returns:
        the aligned sentences, and how many arcs of each relation are left out of them. Not aligned is a sentence whose two
        texts do not agree, and one with a word that has no piece.
    """
    sentences, left_out = {}, Counter[str]()
    for number, words in parses.items():
        spans = raw_piece_spans(bpe, (processed or texts)[number], texts[number])
        if spans is None:
            continue
        pieces = words_to_pieces([(word.start, word.end) for word in words], spans)
        if all(pieces):
            shares = piece_shares([(word.start, word.end) for word in words], spans, pieces)
            apart = []
            for arc in arcs(words, relations):
                if pieces[arc.head] != pieces[arc.dependent]:
                    apart.append(arc)
                else:
                    left_out[arc.relation] += 1
            sentences[number] = Sentence(pieces, shares, apart)
    return sentences, left_out


def piece_shares(
    word_spans: Sequence[tuple[int, int]], piece_spans: Sequence[tuple[int, int, int]], words: Sequence[list[int]]
) -> list[list[float]]:
    """Divide pieces among words.

    Args:
        word_spans: characters [start, end) of each of the W words.
        piece_spans: (id, start, end) of each piece.
        words: the pieces of each word, from `words_to_pieces`.

    Returns:
        for each word and each of its pieces, the share of the word, and of all words with the same pieces, in the characters
        that words have in the piece; a piece of one word alone has share 1.
    """
    # White space inside of a word can be a piece, which has no character of it.
    overlaps = [
        [max(1, min(end, piece_spans[p][2]) - max(start, piece_spans[p][1])) for p in own]
        for (start, end), own in zip(word_spans, words, strict=True)
    ]
    whole: Counter[int] = Counter()
    alike: Counter[tuple[tuple[int, ...], int]] = Counter()
    for own, characters in zip(words, overlaps, strict=True):
        for piece, number in zip(own, characters, strict=True):
            whole[piece] += number
            alike[tuple(own), piece] += number
    return [[alike[tuple(own), piece] / whole[piece] for piece in own] for own in words]
