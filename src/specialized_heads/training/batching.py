"""Batches of sentences of like length, in an order that depends on nothing but the seed and the epoch.

An epoch shuffles the sentences, sorts them by length (of the longer side, then of the one that is shorter in most) and cuts
them into micro-batches, whose order is shuffled again; a fixed
number of consecutive micro-batches, all of about the same size, forms an update. Any update of any epoch can be named by two
numbers, so that a run that goes on after a kill sees the very next batch.

A corpus with few sentences of each length would leave much padding in large micro-batches: there they are made smaller, and
more of them form an update, until at most 5% of the positions are padding.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.corpus.vocabulary import BOS, EOS, PAD

PADDING = 0.05  # most, as a share of the positions of an epoch
LEAST_TOKENS = 500  # of a micro-batch: smaller ones cost more time than padding does


@dataclass(frozen=True)
class Batch:
    """Padded ids: source (B, S) ending in EOS, target_in (B, T) starting with BOS, target_out (B, T) ending in EOS."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; the copy to a GPU does not wait for it."""
        if device.type == "cpu":
            return self
        moved = (t.pin_memory().to(device, non_blocking=True) for t in (self.source, self.target_in, self.target_out))
        return Batch(*moved)

    @property
    def target_tokens(self) -> int:
        return int((self.target_out != PAD).sum())


def epoch_updates(
    store: TokenStore, *, seed: int, epoch: int, batch_tokens: int, micro_batch_tokens: int, multiple: int = 1
) -> list[list[np.ndarray]]:
    """The updates of an epoch: for each, its micro-batches, as arrays of sentence numbers.

    Args:
        store: the training set.
        seed, epoch: determine the order.
        batch_tokens: source tokens per update, on average (EOS counted, padding not).
        micro_batch_tokens: most tokens of a micro-batch on either side, padding included. A longer sentence stands alone.
        multiple: the number of micro-batches of an update is a multiple of it.
    """
    random = np.random.default_rng([seed, epoch])
    source, target = store.source_lengths + 1, store.target_lengths + 1
    longest = np.maximum(source, target)
    order = random.permutation(len(store))
    shorter = source if source.sum() <= target.sum() else target
    order = order[np.lexsort((shorter[order], longest[order]))]
    pieces = cut(longest[order], order, micro_batch_tokens)
    while padding(pieces, source, target) > PADDING and micro_batch_tokens > LEAST_TOKENS:
        micro_batch_tokens = max(int(0.8 * micro_batch_tokens), LEAST_TOKENS)
        pieces = cut(longest[order], order, micro_batch_tokens)
    # As few micro-batches per update as the limit allows, then just as large as the update needs them.
    number = math.ceil(max(batch_tokens * len(pieces) / source.sum(), 1) / multiple) * multiple
    limit = micro_batch_tokens
    for _ in range(2):  # smaller micro-batches hold less padding, which the second cut takes into account
        limit = min(math.ceil(limit * batch_tokens * len(pieces) / (number * source.sum())), micro_batch_tokens)
        pieces = cut(longest[order], order, limit)
    shuffled = [pieces[index] for index in random.permutation(len(pieces))]
    return [shuffled[start : start + number] for start in range(0, len(shuffled), number)]


def cut(lengths: np.ndarray, order: np.ndarray, limit: int) -> list[np.ndarray]:
    """Cut sentences, sorted by length, into runs whose padded size (count times longest) is at most `limit`."""
    pieces, start = [], 0
    while start < len(order):
        # The padded size grows with the end of a run, so its last possible end is found by bisection.
        fits = bisect_right(range(start + 1, len(order)), limit, key=lambda end: (end + 1 - start) * int(lengths[end]))
        pieces.append(order[start : start + 1 + fits])
        start += 1 + fits
    return pieces


def padding(pieces: list[np.ndarray], *sides: np.ndarray) -> float:
    """The share of padding among all positions of these batches; `sides`: the sentences' lengths on each side."""
    real = sum(int(lengths.sum()) for lengths in sides)
    return 1 - real / sum(len(piece) * int(lengths[piece].max()) for piece in pieces for lengths in sides)


def make_batch(store: TokenStore, sentences: np.ndarray) -> Batch:
    """Pad these sentences into one batch."""
    source, ends = pad(store.source, store.source_offsets, sentences)
    source[ends] = EOS
    target, ends = pad(store.target, store.target_offsets, sentences)
    shifted = np.roll(target, 1, axis=1)
    shifted[:, 0] = BOS
    target[ends] = EOS
    return Batch(*(torch.from_numpy(ids) for ids in (source, shifted, target)))


def pad(
    ids: np.ndarray, offsets: np.ndarray, sentences: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Sentences as the rows of one matrix, PAD after their ends.

    Returns:
        the ids, int64 (sentences, longest + 1), and the index (rows, columns) of the first position after each sentence.
    """
    lengths = offsets[sentences + 1] - offsets[sentences]
    matrix = np.full((len(sentences), int(lengths.max()) + 1), PAD, dtype=np.int64)
    columns = np.arange(matrix.shape[1])
    inside = columns < lengths[:, None]
    matrix[inside] = ids[(offsets[sentences][:, None] + columns)[inside]]
    return matrix, (np.arange(len(sentences)), lengths)


def in_order(store: TokenStore, *, tokens: int) -> list[np.ndarray]:
    """All sentences once, by length, in batches of at most `tokens` tokens a side (padding included): for evaluation."""
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    return cut(longest[order], order, tokens)
