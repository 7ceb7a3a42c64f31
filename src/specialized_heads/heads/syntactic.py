"""Syntactic heads: does a head look from a word to the word it stands in a relation with (section 5.2)?

Attention between subwords becomes attention between words: attention to a word is the sum over its pieces, attention from a
word the mean over its pieces (or its first piece). A head is right on an arc if, of all words of the sentence, it attends
most to the one at the other end. Each relation counts in both directions, and each is compared with the best fixed offset.

Shapes: B sentences, H heads, S pieces (EOS and padding included), W words of the longest sentence, R relations.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from specialized_heads.parsing.relations import Arc

RESAMPLES = 100  # held at once, which bounds the memory


def word_attention(weights: Tensor, words: Sequence[list[list[int]]], *, from_word: str) -> Tensor:
    """Attention between words.

    Args:
        weights: attention between pieces (B, H, S, S).
        words: for each of the B sentences and each of its words, the numbers of its pieces.
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
    to_word[b, p, w] = 1.0
    if from_word == "mean":
        from_[b, w, p] = 1.0
        from_ /= from_.sum(-1, keepdim=True).clamp(min=1.0)
    else:
        sent = [(b, w, own[0]) for b, row in enumerate(words) for w, own in enumerate(row) if own]
        b, w, p = torch.tensor(sent, dtype=torch.long).reshape(-1, 3).T
        from_[b, w, p] = 1.0
    return from_[:, None] @ weights @ to_word[:, None]


def arc_hits(attention: Tensor, arcs: Sequence[list[Arc]], relations: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Count the arcs that each head gets right, sentence by sentence.

    Args:
        attention: between words (B, H, W, W).
        arcs: of each of the B sentences.
        relations: the R relations asked for.

    Returns:
        hits (B, H, R, 2) and arcs (B, R, 2), int32; the last axis is the direction, as in `parsing.relations.DIRECTIONS`.
    """
    sentences, heads = attention.shape[:2]
    hits = np.zeros((sentences, heads, len(relations), 2), dtype=np.int32)
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
        best = attention.argmax(-1).numpy()  # (B, H, W); ties go to the first word, so never to padding
        np.add.at(counts, (sentence, relation), 1)
        for direction, (looking, target) in enumerate(((head, dependent), (dependent, head))):
            right = best[sentence, :, looking] == target[:, None]  # (arcs, H)
            np.add.at(hits[..., direction], (sentence, slice(None), relation), right)
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
    flat_hits, flat_arcs = (counts.reshape(n, -1).astype(np.float64) for counts in (hits, arcs))
    resampled = []
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = hits.sum(0) / arcs.sum(0)
        for start in range(0, samples, RESAMPLES):
            size = min(RESAMPLES, samples - start)
            weights = random.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)  # (size, N)
            drawn = (weights @ flat_arcs).reshape(size, 1, *arcs.shape[1:])
            resampled.append((weights @ flat_hits).reshape(size, *hits.shape[1:]) / drawn)
    with warnings.catch_warnings():  # a resample without arcs of a relation says nothing about it
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        low, high = np.nanpercentile(np.concatenate(resampled), [2.5, 97.5], axis=0)
    return accuracy, low, high
