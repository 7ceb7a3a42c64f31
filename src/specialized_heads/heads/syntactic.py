"""Syntactic heads: does an attention head attend from a word to its syntactic head or dependent
(section 5.2)?

Trees are aligned with the subwords of a model by character offsets in the raw sentence, never by
matching strings: SentencePiece gives the bytes of the raw text that each piece covers, the parser
the characters of each word. A piece belongs to every word that it overlaps, even by one letter:
"don't" in one piece belongs to both "do" and "n't". If the text was preprocessed before BPE, its
characters are mapped to those of the raw sentence one by one, ignoring white space.

Attention between subwords becomes attention between words: attention to a word is the sum over its
pieces, attention from a word the mean over its pieces. A head is right on an arc if it attends most
to the word at the other end. Each relation counts in both directions, each compared with the best
fixed offset.

Words can share pieces: in the pieces "didn", "'" and "t" of "didn't", the words are "did" and
"n't". A shared piece is divided among its words in proportion to their characters in it. Words with
the same pieces (both words of "don't" in one piece, the words of a multi-word token) are
indistinguishable to attention: each gets the attention that they have together, and arcs between
them are left out, because a head that finds one also finds the other.

Shapes: B sentences, H heads, S pieces (EOS and padding included), W words of the longest sentence,
R relations. A span is (id, start, end): a piece, and characters [start, end) of a sentence.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_pb2 import SentencePieceText
from torch import Tensor

from specialized_heads.parsing.relations import DIRECTIONS, Arc, arcs
from specialized_heads.parsing.words import Word

SAMPLES = 1000  # resamples of sentences
RESAMPLES = 100  # held at once; bounds the memory
NORMAL = 1.959964  # 97.5% quantile of the normal distribution
# Endings of the columns of one relation and direction: accuracy, that of the best fixed offset, the
# difference, 95% intervals.
ENDINGS = ("", "_low", "_high", "_baseline", "_margin", "_margin_low", "_margin_high")


def score_names(relations: Sequence[str]) -> np.ndarray:
    """`<relation>_<direction>` (R, 2): the names of accuracies in tables."""
    return np.array([[f"{name}_{direction}" for direction in DIRECTIONS] for name in relations])


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
        the aligned sentences, and the number of arcs of each relation left out of them. A sentence
        is not aligned if its two texts disagree or one of its words has no piece.
    """
    sentences, left_out = {}, Counter[str]()
    for number, words in parses.items():
        spans = raw_piece_spans(bpe, (processed or texts)[number], texts[number])
        if spans is None:
            continue
        pieces = words_to_pieces([(word.start, word.end) for word in words], spans)
        if all(pieces):
            shares = piece_shares([(word.start, word.end) for word in words], spans, pieces)
            kept = []
            for arc in arcs(words, relations):
                if pieces[arc.head] != pieces[arc.dependent]:
                    kept.append(arc)
                else:
                    left_out[arc.relation] += 1
            pieces = [[tags + piece for piece in word] for word in pieces]
            sentences[number] = Sentence(pieces, shares, kept)
    return sentences, left_out


def piece_spans(processor: SentencePieceProcessor, text: str) -> list[tuple[int, int, int]]:
    """The spans of the T pieces of a sentence, in order.

    White space at the ends of a piece is not part of its span: "▁The" spans three letters, a piece
    of white space alone has an empty span. Our own models neither normalise text nor cut bytes;
    where an imported one does, pieces of a character each span all of it.
    """
    # The serialised form has byte offsets in all SentencePiece versions since 0.2.0.
    encoded = SentencePieceText.FromString(processor.encode(text, out_type="serialized_proto"))
    # The character to which each byte belongs.
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


def piece_shares(
    word_spans: Sequence[tuple[int, int]],
    piece_spans: Sequence[tuple[int, int, int]],
    words: Sequence[list[int]],
) -> list[list[float]]:
    """Divide pieces among `words`, whose pieces are those of `words_to_pieces`.

    For each word and each of its pieces: the fraction of the piece's characters that belong to the
    word or to a word with the same pieces; 1 for a piece of one word. In "He didn't", the pieces
    ▁He, ▁didn, ' and t, as (position, start, end), have the words He, did and n't, which divide
    ▁didn:

    >>> words, pieces = [(0, 2), (3, 6), (6, 9)], [(0, 0, 2), (1, 3, 7), (2, 7, 8), (3, 8, 9)]
    >>> words_to_pieces(words, pieces)
    [[0], [1], [1, 2, 3]]
    >>> piece_shares(words, pieces, words_to_pieces(words, pieces))
    [[1.0], [0.75], [0.25, 1.0, 1.0]]
    """
    # A piece can be white space inside a word, without a character of the word.
    overlaps = [
        [max(1, min(end, piece_spans[p][2]) - max(start, piece_spans[p][1])) for p in pieces]
        for (start, end), pieces in zip(word_spans, words, strict=True)
    ]
    whole: Counter[int] = Counter()
    alike: Counter[tuple[tuple[int, ...], int]] = Counter()
    # Words that are not spelled one by one, such as both of "du", have the same characters.
    once = dict(zip(word_spans, zip(words, overlaps, strict=True), strict=True))
    for pieces, characters in once.values():
        for piece, number in zip(pieces, characters, strict=True):
            whole[piece] += number
            alike[tuple(pieces), piece] += number
    return [[alike[tuple(pieces), piece] / whole[piece] for piece in pieces] for pieces in words]


def word_attention(weights: Tensor, sentences: Sequence[Sentence]) -> Tensor:
    """Attention between words (B, H, W, W), from row to column, from that between pieces (B, H, S,
    S).

    It is zero for padding. Rows need not sum to 1, since EOS and pieces outside words get attention
    too. Here one head has three pieces and EOS; the first word has the pieces 0 and 1, the second
    piece 2:

    >>> rows = [[0.5, 0.25, 0.25, 0.0], [0.0, 0.25, 0.25, 0.5], [1.0, 0.0, 0.0, 0.0], [0.25] * 4]
    >>> sentence = Sentence(words=[[0, 1], [2]], shares=[[1.0, 1.0], [1.0]], arcs=[])
    >>> word_attention(torch.tensor([[rows]]), [sentence]).tolist()
    [[[[0.5, 0.25], [1.0, 0.0]]]]
    """
    pieces = weights.shape[-1]
    most = max((len(sentence.words) for sentence in sentences), default=0)
    to_word = torch.zeros(len(sentences), pieces, most)
    from_ = torch.zeros(len(sentences), most, pieces)
    for b, sentence in enumerate(sentences):
        w = [word for word, own in enumerate(sentence.words) for _ in own]
        p = [piece for own in sentence.words for piece in own]
        to_word[b, p, w] = torch.tensor([share for own in sentence.shares for share in own])
        from_[b, w, p] = 1.0
    from_ /= from_.sum(-1, keepdim=True).clamp(min=1.0)
    return from_[:, None] @ weights @ to_word[:, None]


def arc_hits(
    attention: Tensor, sentences: Sequence[Sentence], offsets: dict[tuple[str, str], int | None]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the arcs that each head gets right, and those that the fixed offsets get right, per
    sentence.

    Args:
        attention: between words (B, H, W, W).
        sentences: their trees (B); a word with the same pieces as the target is right, too, for
            heads and offsets alike.
        offsets: the fixed offset by relation and direction, for each of the R relations; None
        without arcs.

    Returns:
        hits (B, H, R, 2), fixed (B, R, 2) and arcs (B, R, 2), int32; the last axis is the
        direction, as in `parsing.relations.DIRECTIONS`.
    """
    relations = list(dict.fromkeys(relation for relation, _ in offsets))
    batch, heads, most = attention.shape[:3]
    hits = np.zeros((batch, heads, len(relations), 2), dtype=np.int32)
    fixed = np.zeros((batch, len(relations), 2), dtype=np.int32)
    counts = np.zeros((batch, len(relations), 2), dtype=np.int32)
    rows = [
        (number, relations.index(arc.relation), arc.head, arc.dependent)
        for number, sentence in enumerate(sentences)
        for arc in sentence.arcs
        if arc.relation in relations
    ]
    if rows:
        sentence, relation, head, dependent = np.array(rows).T
        first = np.tile(np.arange(most), (batch, 1))  # per word, the first one with the same pieces
        for row, own in zip(first, (each.words for each in sentences), strict=True):
            row[: len(own)] = [own.index(pieces) for pieces in own]
        best = attention.argmax(-1).numpy()  # (B, H, W); ties go to the first word, not to padding
        np.add.at(counts, (sentence, relation), 1)
        for d, (looking, target) in enumerate(((head, dependent), (dependent, head))):
            attended = first[sentence[:, None], best[sentence, :, looking]]  # (arcs, H)
            right = attended == first[sentence, target][:, None]
            np.add.at(hits[..., d], (sentence, slice(None), relation), right)
            wanted = [offsets[name, DIRECTIONS[d]] for name in relations]
            # No offset points beyond every sentence.
            shift = np.array([most if offset is None else offset for offset in wanted])
            place = looking + shift[relation]
            inside = (place >= 0) & (place < most)
            same = first[sentence, place.clip(0, most - 1)] == first[sentence, target]
            np.add.at(fixed[..., d], (sentence, relation), inside & same)
    return hits, fixed, counts


def bootstrap_intervals(
    hits: np.ndarray, fixed: np.ndarray, arcs: np.ndarray, *, seed: int
) -> dict[str, np.ndarray]:
    """Accuracies, and margins above the fixed offset, with 95% percentile intervals over resampled
    sentences.

    A margin is paired: each resample compares head and fixed offset on the same sentences, with the
    offset of the whole set. If a head gets all arcs right, or none, so does every resample. The
    accuracy then has Wilson's interval, as if arcs were independent, and the margin's interval is
    widened by it in quadrature (Zou and Donner 2008).

    From the hits (N, H, R, 2) of N sentences, those of the fixed offset and all arcs, both (N, R,
    2): (H, R, 2) for each of `ENDINGS`; NaN without arcs.
    """
    n, heads = hits.shape[:2]
    random = np.random.default_rng(seed)
    counted = np.concatenate([hits, fixed[:, None]], axis=1)  # the fixed offset is one more head
    flat_hits, flat_arcs = (counts.reshape(n, -1).astype(np.float64) for counts in (counted, arcs))
    resampled = []
    # Without arcs of a relation, in the set or in a resample, accuracies are NaN.
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        accuracy = counted.sum(0) / arcs.sum(0)
        for start in range(0, SAMPLES, RESAMPLES):
            size = min(RESAMPLES, SAMPLES - start)
            weights = random.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)
            drawn = (weights @ flat_arcs).reshape(size, 1, *arcs.shape[1:])
            resampled.append((weights @ flat_hits).reshape(size, *counted.shape[1:]) / drawn)
        accuracies = np.concatenate(resampled)  # (SAMPLES, H + 1, R, 2)
        low, high = np.nanpercentile(accuracies[:, :heads], [2.5, 97.5], axis=0)
        margins = accuracies[:, :heads] - accuracies[:, heads:]
        margin_low, margin_high = np.nanpercentile(margins, [2.5, 97.5], axis=0)
        width = NORMAL**2 / (arcs.sum(0) + NORMAL**2)  # of Wilson's interval at 0 or 1
    accuracy, baseline = accuracy[:heads], np.broadcast_to(accuracy[heads:], accuracy[:heads].shape)
    margin, below, above = accuracy - baseline, width * (accuracy == 1), width * (accuracy == 0)
    margin_low = margin - np.hypot(margin - margin_low, below)
    margin_high = margin + np.hypot(margin_high - margin, above)
    found = (accuracy, low - below, high + above, baseline, margin, margin_low, margin_high)
    return dict(zip(ENDINGS, found, strict=True))
