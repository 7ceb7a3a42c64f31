"""Syntactic heads: does a head look from a word to the word it stands in a relation with (section 5.2)?

Attention between subwords becomes attention between words: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces (or its first piece). Of a piece that belongs to several words each gets its share. A head is
right on an arc if, of all words of the sentence, it attends most to the one at the other end, or to one with the same pieces.
Each relation counts in both directions, and each is compared with the best fixed offset.

Shapes: B sentences, H heads, S pieces (EOS and padding included), W words of the longest sentence, R relations.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from specialized_heads.parsing.relations import DIRECTIONS, Arc

RESAMPLES = 100  # held at once, which bounds the memory
NORMAL = 1.959964  # the normal distribution has 95% within so many standard deviations


class Intervals(NamedTuple):
    """Accuracies and what they are above the fixed offset, with 95% intervals; each (H, R, 2), NaN without arcs."""

    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    margin: np.ndarray
    margin_low: np.ndarray
    margin_high: np.ndarray


def word_attention(
    weights: Tensor, words: Sequence[list[list[int]]], shares: Sequence[list[list[float]]], *, from_word: str
) -> Tensor:
    """Attention between words.

    Args:
        weights: attention between pieces (B, H, S, S).
        words: for each of the B sentences and each of its words, the numbers of its pieces.
        shares: the word's share in each of these pieces, as in `trees.Sentence`.
        from_word: "mean" over the pieces of the word that attends, or its "first" piece.

    Returns:
        (B, H, W, W), from row to column; zero beyond a sentence's own words. Rows need not sum to 1: EOS and pieces outside
        of words take their part.
    """
    pieces, most = weights.shape[-1], max(map(len, words), default=0)
    to_word = torch.zeros(len(words), pieces, most)
    from_ = torch.zeros(len(words), most, pieces)
    received = [(b, w, p) for b, row in enumerate(words) for w, own in enumerate(row) for p in own]
    b, w, p = torch.tensor(received, dtype=torch.long).reshape(-1, 3).T
    to_word[b, p, w] = torch.tensor([share for row in shares for own in row for share in own], dtype=torch.float)
    if from_word == "mean":
        from_[b, w, p] = 1.0
        from_ /= from_.sum(-1, keepdim=True).clamp(min=1.0)
    else:
        sent = [(b, w, own[0]) for b, row in enumerate(words) for w, own in enumerate(row) if own]
        b, w, p = torch.tensor(sent, dtype=torch.long).reshape(-1, 3).T
        from_[b, w, p] = 1.0
    return from_[:, None] @ weights @ to_word[:, None]


def arc_hits(
    attention: Tensor,
    words: Sequence[list[list[int]]],
    arcs: Sequence[list[Arc]],
    offsets: dict[tuple[str, str], int | None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the arcs that each head gets right, sentence by sentence, and those that a fixed offset does.

    Args:
        attention: between words (B, H, W, W).
        words: the pieces of each word of the B sentences; finding a word with the same pieces as the one asked for is right.
        arcs: of each of the B sentences.
        offsets: the fixed one by relation and direction, for each of the R relations asked for; None without arcs.

    Returns:
        hits (B, H, R, 2), fixed (B, R, 2) and arcs (B, R, 2), int32; the last axis is the direction, as in
        `parsing.relations.DIRECTIONS`.
    """
    relations = list(dict.fromkeys(relation for relation, _ in offsets))
    sentences, heads, most = attention.shape[:3]
    hits = np.zeros((sentences, heads, len(relations), 2), dtype=np.int32)
    fixed = np.zeros((sentences, len(relations), 2), dtype=np.int32)
    counts = np.zeros((sentences, len(relations), 2), dtype=np.int32)
    place = {relation: number for number, relation in enumerate(relations)}
    rows = [
        (sentence, place[arc.relation], arc.head, arc.dependent)
        for sentence, own in enumerate(arcs)
        for arc in own
        if arc.relation in place
    ]
    if rows:
        sentence, relation, head, dependent = np.array(rows).T
        first = np.tile(np.arange(most), (sentences, 1))  # of each word the first one with the same pieces
        for row, own in enumerate(words):
            first[row, : len(own)] = [own.index(pieces) for pieces in own]
        best = attention.argmax(-1).numpy()  # (B, H, W); ties go to the first word, so never to padding
        np.add.at(counts, (sentence, relation), 1)
        for d, (looking, target) in enumerate(((head, dependent), (dependent, head))):
            found = first[sentence[:, None], best[sentence, :, looking]]  # (arcs, H)
            right = found == first[sentence, target][:, None]
            np.add.at(hits[..., d], (sentence, slice(None), relation), right)
            wanted = np.array([offsets[name, DIRECTIONS[d]] for name in relations], dtype=float)  # None becomes NaN
            np.add.at(fixed[..., d], (sentence, relation), target - looking == wanted[relation])
    return hits, fixed, counts


def bootstrap_intervals(hits: np.ndarray, fixed: np.ndarray, arcs: np.ndarray, *, samples: int, seed: int) -> Intervals:
    """Accuracies and margins with 95% percentile intervals over resampled sentences.

    A margin is paired: each resample compares head and fixed offset on the same sentences. The offset stays that of the whole
    set. Where a head has all arcs right, or none, so has every resample; there the accuracy has Wilson's interval, as if arcs
    were independent, and the margin's interval gets that interval's width added in squares (Zou and Donner 2008).

    Args:
        hits: per sentence (N, H, R, 2).
        fixed: arcs that the fixed offset gets right, per sentence (N, R, 2).
        arcs: per sentence (N, R, 2).
        samples: number of resamples.
        seed: of the resamples.
    """
    n, heads = hits.shape[:2]
    random = np.random.default_rng(seed)
    counted = np.concatenate([hits, fixed[:, None]], axis=1)  # the fixed offset is one more head
    flat_hits, flat_arcs = (counts.reshape(n, -1).astype(np.float64) for counts in (counted, arcs))
    resampled = []
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = counted.sum(0) / arcs.sum(0)
        for start in range(0, samples, RESAMPLES):
            size = min(RESAMPLES, samples - start)
            weights = random.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)  # (size, N)
            drawn = (weights @ flat_arcs).reshape(size, 1, *arcs.shape[1:])
            resampled.append((weights @ flat_hits).reshape(size, *counted.shape[1:]) / drawn)
    every = np.concatenate(resampled)  # (samples, H + 1, R, 2)
    with warnings.catch_warnings():  # a resample without arcs of a relation says nothing about it
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        low, high = np.nanpercentile(every[:, :heads], [2.5, 97.5], axis=0)
        margin_low, margin_high = np.nanpercentile(every[:, :heads] - every[:, heads:], [2.5, 97.5], axis=0)
    accuracy, margin = accuracy[:heads], accuracy[:heads] - accuracy[heads:]
    with np.errstate(invalid="ignore", divide="ignore"):
        width = NORMAL**2 / (arcs.sum(0) + NORMAL**2)  # of Wilson's interval at 0 or 1
    below, above = width * (accuracy == 1), width * (accuracy == 0)
    return Intervals(
        accuracy,
        low - below,
        high + above,
        margin,
        margin - np.hypot(margin - margin_low, below),
        margin + np.hypot(margin_high - margin, above),
    )
