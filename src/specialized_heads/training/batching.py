"""Batches of sentences of like length, in an order that depends on nothing but the seed and the epoch.

An epoch shuffles the sentences, sorts them by length and cuts them into micro-batches, whose order is shuffled again;
consecutive micro-batches form an update. Any update of any epoch can be named by two numbers, so that a run that goes on
after a kill sees the very next batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.model.transformer import BOS, EOS, PAD


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
        batch_tokens: source tokens (EOS counted, padding not) after which an update is complete.
        micro_batch_tokens: most tokens of a micro-batch on either side, padding included. A longer sentence stands alone.
    """
    random = np.random.default_rng([seed, epoch])
    source, target = store.source_lengths + 1, store.target_lengths + 1
    order = random.permutation(len(store))
    order = order[np.lexsort((source[order], np.maximum(source, target)[order]))]
    limit = min(micro_batch_tokens, batch_tokens)
    micro_batches = cut(np.maximum(source, target)[order], order, limit)
    updates: list[list[np.ndarray]] = [[]]
    tokens = 0
    for index in random.permutation(len(micro_batches)):
        size = int(source[micro_batches[index]].sum())
        # Complete the update at the micro-batch that brings it nearest to the size asked for.
        if updates[-1] and tokens + size / 2 > batch_tokens:
            updates.append([])
            tokens = 0
        updates[-1].append(micro_batches[index])
        tokens += size
    return updates


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
