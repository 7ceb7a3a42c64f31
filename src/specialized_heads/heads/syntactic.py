"""Syntactic heads: does a head look from a word to the word it stands in a relation with (section 5.2)?

Attention between subwords becomes attention between words: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces (or its first piece). A head is right on an arc if, of all words of the sentence, it attends
most to the one at the other end. Each relation counts in both directions, and each is compared with the best fixed offset.
"""

import warnings

import numpy as np
import torch
from torch import Tensor

from specialized_heads.parsing.relations import Arc


def word_attention(weights: Tensor, words: list[list[int]], *, from_word: str) -> Tensor:
    """Attention between words.

    Args:
        weights: attention between pieces (H, T, T) of one sentence.
        words: for each of the W words, the numbers of its pieces.
        from_word: "mean" over the pieces of the word that attends, or its "first" piece.

    Returns:
        (H, W, W), from row to column. Rows need not sum to 1: EOS and pieces outside of words take their part.
    """
    to_word = torch.zeros(weights.shape[-1], len(words))
    from_ = torch.zeros(len(words), weights.shape[-1])
    for word, pieces in enumerate(words):
        to_word[pieces, word] = 1.0
        senders = pieces if from_word == "mean" else pieces[:1]
        from_[word, senders] = 1.0 / len(senders)
    return from_ @ weights @ to_word


def arc_hits(attention: Tensor, arcs: list[Arc], relations: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Count the arcs of one sentence that each head gets right.

    Args:
        attention: between words (H, W, W).
        arcs: of the sentence.
        relations: the R relations asked for.

    Returns:
        hits (H, R, 2) and arcs (R, 2); the last axis is the direction, as in `parsing.relations.DIRECTIONS`.
    """
    best = attention.argmax(-1).numpy()  # (H, W)
    hits = np.zeros((len(best), len(relations), 2), dtype=np.int64)
    counts = np.zeros((len(relations), 2), dtype=np.int64)
    for arc in arcs:
        if arc.relation in relations:
            row = relations.index(arc.relation)
            hits[:, row, 0] += best[:, arc.head] == arc.dependent
            hits[:, row, 1] += best[:, arc.dependent] == arc.head
            counts[row] += 1
    return hits, counts


def bootstrap_intervals(
    hits: np.ndarray, arcs: np.ndarray, *, samples: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Accuracies with 95% percentile intervals over resampled sentences.

    Args:
        hits: per sentence (N, H, R, 2).
        arcs: per sentence (N, R, 2).
        samples: number of resamples.
        seed: of the resamples.

    Returns:
        accuracy, lower and upper bound, each (H, R, 2); NaN where a relation has no arcs.
    """
    n = len(hits)
    random = np.random.default_rng(seed)
    weights = random.multinomial(n, np.full(n, 1.0 / n), size=samples).astype(np.float64)  # (samples, N)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = hits.sum(0) / arcs.sum(0)
        resampled_arcs = (weights @ arcs.reshape(n, -1)).reshape(samples, 1, *arcs.shape[1:])
        resampled = (weights @ hits.reshape(n, -1)).reshape(samples, *hits.shape[1:]) / resampled_arcs
    with warnings.catch_warnings():  # a resample without arcs of a relation says nothing about it
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        low, high = np.nanpercentile(resampled, [2.5, 97.5], axis=0)
    return accuracy, low, high
