"""Batches of sentences of like length, in an order that depends on nothing but the seed and the epoch.

An epoch shuffles the sentences, sorts them by length and cuts them into micro-batches, whose order is shuffled again; a fixed
number of consecutive micro-batches, all of about the same size, forms an update. Any update of any epoch can be named by two
numbers, so that a run that goes on after a kill sees the very next batch.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.corpus.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class Batch:
    """Padded ids: source (B, S) ending in EOS, target_in (B, T) starting with BOS, target_out (B, T) ending in EOS."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.source.to(device), self.target_in.to(device), self.target_out.to(device))

    @property
    def target_tokens(self) -> int:
        return int((self.target_out != PAD).sum())


def epoch_updates(
    store: TokenStore, *, seed: int, epoch: int, batch_tokens: int, micro_batch_tokens: int
) -> list[list[np.ndarray]]:
    """The updates of an epoch: for each, its micro-batches, as arrays of sentence numbers.

    Args:
        store: the training set.
        seed, epoch: determine the order.
        batch_tokens: source tokens per update, on average (EOS counted, padding not).
        micro_batch_tokens: most tokens of a micro-batch on either side, padding included. A longer sentence stands alone.
    """
    random = np.random.default_rng([seed, epoch])
    source = store.source_lengths + 1
    longest = np.maximum(source, store.target_lengths + 1)
    order = random.permutation(len(store))
    order = order[np.lexsort((source[order], longest[order]))]
    # As few micro-batches per update as the limit allows, then just as large as the update needs them.
    pieces = cut(longest[order], order, micro_batch_tokens)
    tokens = source.sum() / len(pieces)
    number = max(math.ceil(batch_tokens / tokens), 1)
    pieces = cut(longest[order], order, math.ceil(micro_batch_tokens * min(batch_tokens / (number * tokens), 1.0)))
    shuffled = [pieces[index] for index in random.permutation(len(pieces))]
    return [shuffled[start : start + number] for start in range(0, len(shuffled), number)]


def cut(lengths: np.ndarray, order: np.ndarray, limit: int) -> list[np.ndarray]:
    """Cut sentences, sorted by length, into runs whose padded size (count times longest) is at most `limit`."""
    pieces, start = [], 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * int(lengths[end]) > limit:
            pieces.append(order[start:end])
            start = end
    return pieces


def make_batch(store: TokenStore, sentences: np.ndarray) -> Batch:
    """Pad these sentences into one batch."""
    sources = [store.source_ids(i) for i in sentences]
    targets = [store.target_ids(i) for i in sentences]
    return Batch(
        source=pad([np.append(ids, EOS) for ids in sources]),
        target_in=pad([np.insert(ids, 0, BOS) for ids in targets]),
        target_out=pad([np.append(ids, EOS) for ids in targets]),
    )


def pad(rows: list[np.ndarray]) -> Tensor:
    """Rows of ids as one matrix, PAD at the end of the shorter ones."""
    matrix = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        matrix[row, : len(ids)] = ids
    return torch.from_numpy(matrix)


def in_order(store: TokenStore, *, tokens: int) -> list[np.ndarray]:
    """All sentences once, by length, in batches of at most `tokens` tokens a side (padding included): for evaluation."""
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    return cut(longest[order], order, tokens)
