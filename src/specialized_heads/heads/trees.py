"""Trees laid over the subwords of a model: which pieces make up each word, and the arcs between the words."""

from dataclasses import dataclass

from sentencepiece import SentencePieceProcessor

from specialized_heads.parsing.alignment import raw_piece_spans, words_to_pieces
from specialized_heads.parsing.relations import Arc, arcs
from specialized_heads.parsing.words import Word


@dataclass(frozen=True)
class Sentence:
    """A parsed sentence: the pieces of each word, and the arcs of the relations asked for."""

    words: list[list[int]]
    arcs: list[Arc]


def align(
    parses: dict[int, list[Word]],
    texts: list[str],
    bpe: SentencePieceProcessor,
    relations: list[str],
    *,
    processed: list[str] | None = None,
) -> tuple[dict[int, Sentence], dict[int, list[Word]]]:
    """Lay parses over subwords.

    Args:
        parses: the words of each parsed sentence.
        texts: the sentences as the parser saw them.
        bpe: the model that cut them.
        relations: whose arcs are kept.
        processed: the sentences as BPE got them; None: `texts`.

    Returns:
        the aligned sentences, and their parses. Left out of both: a sentence whose two texts do not agree, and one with
        a word that has no piece.
    """
    sentences, aligned = {}, {}
    for number, words in parses.items():
        spans = raw_piece_spans(bpe, (processed or texts)[number], texts[number])
        if spans is None:
            continue
        pieces = words_to_pieces([(word.start, word.end) for word in words], spans)
        if all(pieces):
            sentences[number] = Sentence(pieces, arcs(words, relations))
            aligned[number] = words
    return sentences, aligned
