"""Syntactic heads: does an attention head attend from a word to its syntactic head or dependent (section 5.2)?

Attention between subwords becomes attention between words: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces. A piece that several words share is divided among them. A head is
right on an arc if it attends most to the word at the other end, or to a word with the same pieces. Each relation counts in
both directions, each compared with the best fixed offset.

Shapes: B sentences, H heads, S pieces (EOS and padding included), W words of the longest sentence, R relations.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from specialized_heads.parsing.relations import DIRECTIONS, Arc

SAMPLES = 1000  # resamples of sentences
RESAMPLES = 100  # held at once; bounds the memory
NORMAL = 1.959964  # 97.5% quantile of the normal distribution
# Endings of the columns of one relation and direction: accuracy, that of the best fixed offset, the difference, 95% intervals.
ENDINGS = ("", "_low", "_high", "_baseline", "_margin", "_margin_low", "_margin_high")


def score_names(relations: Sequence[str]) -> np.ndarray:
    """`<relation>_<direction>` (R, 2): the names of accuracies in tables."""
    return np.array([[f"{relation}_{direction}" for direction in DIRECTIONS] for relation in relations])


def word_attention(weights: Tensor, words: Sequence[list[list[int]]], shares: Sequence[list[list[float]]]) -> Tensor:
    """Attention between words.

    Args:
        weights: attention between pieces (B, H, S, S).
        words: per sentence and word, the numbers of its pieces.
        shares: the word's share in each of these pieces, as in `trees.Sentence`.

    Returns:
        (B, H, W, W), from row to column; zero for padding. Rows need not sum to 1, since EOS and pieces outside words get
        attention too.
    """
    pieces, most = weights.shape[-1], max(map(len, words), default=0)
    to_word = torch.zeros(len(words), pieces, most)
    from_ = torch.zeros(len(words), most, pieces)
    received = [(b, w, p) for b, row in enumerate(words) for w, word in enumerate(row) for p in word]
    b, w, p = torch.tensor(received, dtype=torch.long).reshape(-1, 3).T
    to_word[b, p, w] = torch.tensor([share for row in shares for word in row for share in word], dtype=torch.float)
    from_[b, w, p] = 1.0
    from_ /= from_.sum(-1, keepdim=True).clamp(min=1.0)
    return from_[:, None] @ weights @ to_word[:, None]


def arc_hits(
    attention: Tensor,
    words: Sequence[list[list[int]]],
    arcs: Sequence[list[Arc]],
    offsets: dict[tuple[str, str], int | None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the arcs that each head gets right, and those that the fixed offsets get right, per sentence.

    Args:
        attention: between words (B, H, W, W).
        words: per sentence, the pieces of each word; finding a word with the same pieces as the target is right.
        arcs: of each sentence.
        offsets: the fixed offset by relation and direction, for each of the R relations; None without arcs.

    Returns:
        hits (B, H, R, 2), fixed (B, R, 2) and arcs (B, R, 2), int32; the last axis is the direction, as in
        `parsing.relations.DIRECTIONS`.
    """
    relations = list(dict.fromkeys(relation for relation, _ in offsets))
    sentences, heads, most = attention.shape[:3]
    hits = np.zeros((sentences, heads, len(relations), 2), dtype=np.int32)
    fixed = np.zeros((sentences, len(relations), 2), dtype=np.int32)
    counts = np.zeros((sentences, len(relations), 2), dtype=np.int32)
    rows = [
        (sentence, relations.index(arc.relation), arc.head, arc.dependent)
        for sentence, sentence_arcs in enumerate(arcs)
        for arc in sentence_arcs
        if arc.relation in relations
    ]
    if rows:
        sentence, relation, head, dependent = np.array(rows).T
        first = np.tile(np.arange(most), (sentences, 1))  # per word, the first one with the same pieces
        for row, pieces_of in enumerate(words):
            first[row, : len(pieces_of)] = [pieces_of.index(pieces) for pieces in pieces_of]
        best = attention.argmax(-1).numpy()  # (B, H, W); ties go to the first word, so never to padding
        np.add.at(counts, (sentence, relation), 1)
        for d, (looking, target) in enumerate(((head, dependent), (dependent, head))):
            attended = first[sentence[:, None], best[sentence, :, looking]]  # (arcs, H)
            right = attended == first[sentence, target][:, None]
            np.add.at(hits[..., d], (sentence, slice(None), relation), right)
            wanted = np.array([offsets[name, DIRECTIONS[d]] for name in relations], dtype=float)  # None becomes NaN
            np.add.at(fixed[..., d], (sentence, relation), target - looking == wanted[relation])
    return hits, fixed, counts


def bootstrap_intervals(hits: np.ndarray, fixed: np.ndarray, arcs: np.ndarray, *, seed: int) -> dict[str, np.ndarray]:
    """Accuracies, and margins above the fixed offset, with 95% percentile intervals over resampled sentences.

    A margin is paired: each resample compares head and fixed offset on the same sentences, with the offset of the whole set. If a
    head gets all arcs right, or none, so does every resample. The accuracy then has Wilson's interval, as if arcs were
    independent, and the margin's interval is widened by it in quadrature (Zou and Donner 2008).

    From the hits (N, H, R, 2) of N sentences, those of the fixed offset and all arcs, both (N, R, 2): (H, R, 2) for each of
    `ENDINGS`; NaN without arcs.
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
            weights = random.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)  # (size, N)
            drawn = (weights @ flat_arcs).reshape(size, 1, *arcs.shape[1:])
            resampled.append((weights @ flat_hits).reshape(size, *counted.shape[1:]) / drawn)
        accuracies = np.concatenate(resampled)  # (SAMPLES, H + 1, R, 2)
        low, high = np.nanpercentile(accuracies[:, :heads], [2.5, 97.5], axis=0)
        margin_low, margin_high = np.nanpercentile(accuracies[:, :heads] - accuracies[:, heads:], [2.5, 97.5], axis=0)
        width = NORMAL**2 / (arcs.sum(0) + NORMAL**2)  # of Wilson's interval at 0 or 1
    accuracy, baseline = accuracy[:heads], np.broadcast_to(accuracy[heads:], accuracy[:heads].shape)
    margin, below, above = accuracy - baseline, width * (accuracy == 1), width * (accuracy == 0)
    margins = margin, margin - np.hypot(margin - margin_low, below), margin + np.hypot(margin_high - margin, above)
    return dict(zip(ENDINGS, (accuracy, low - below, high + above, baseline, *margins), strict=True))
