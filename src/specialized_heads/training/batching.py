"""Batches of sentences of similar length, in an order that depends only on seed, epoch, batch sizes
and number of processes.

Each epoch shuffles the sentences, sorts them by length (first of the longer side, then of the side
that is shorter overall) and cuts them into micro-batches, whose order is shuffled again. A fixed
number of consecutive micro-batches of about equal size forms an update; the last one of an epoch
has those that are left. Epoch and position identify an update, so a resumed run continues with the
very next batch.

In a corpus with few sentences per length, large micro-batches would be mostly padding.
Micro-batches are therefore made smaller, and more of them form an update, until at most 5% of the
positions are padding.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import OURS, SpecialTokens, TokenStore, cut

MAX_PADDING = 0.05  # share of the positions of an epoch
MIN_TOKENS = 500  # per micro-batch; smaller ones cost more time than padding does


@dataclass(frozen=True)
class Batch:
    """Padded ids: source (B, S) and target_out (B, T) ending in EOS, target_in (B, T) beginning
    with the start token."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    tokens: SpecialTokens = OURS

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; copies to a GPU are asynchronous."""
        if device.type == "cpu":
            return self
        ids = (self.source, self.target_in, self.target_out)
        moved = (each.pin_memory().to(device, non_blocking=True) for each in ids)
        return Batch(*moved, self.tokens)

    def real(self, ids: Tensor) -> Tensor:
        """Which of the ids of a side (B, P) are not padding; for target_in, ask about target_out,
        which is as long."""
        return ids != self.tokens.pad


def joined(store: TokenStore, *, most: int, seed: int, epoch: int) -> TokenStore:
    """Join sentence pairs in random order into longer ones, each of 1 to `most` pairs (uniformly),
    for one epoch.

    In longer text, neighbouring words reveal less about a token's position, so attention has to
    find it. (Kondo et al. 2021 join pairs for another reason: their test sentences are longer than
    those of training.) Every pair occurs exactly once.
    """
    random = np.random.default_rng([seed, epoch, most])
    order = random.permutation(len(store))
    ends = np.cumsum(random.integers(1, most + 1, len(store)))
    ends = np.append(ends[ends < len(store)], len(store))
    shuffled, bounds = store.select(order), np.append(0, ends)
    source, target = shuffled.source_offsets[bounds], shuffled.target_offsets[bounds]
    return replace(shuffled, source_offsets=source, target_offsets=target)


def epoch_updates(
    store: TokenStore,
    *,
    seed: int,
    epoch: int,
    batch_tokens: int,
    micro_batch_tokens: int,
    multiple: int = 1,
) -> list[list[np.ndarray]]:
    """The micro-batches of each update of an epoch, as arrays of sentence indices.

    Args:
        batch_tokens: mean number of source tokens per update (EOS included, padding excluded).
        micro_batch_tokens: largest size of a micro-batch on either side, padding included; a longer
        sentence is one by itself.
        multiple: the number of micro-batches per update is a multiple of this.
    """
    random = np.random.default_rng([seed, epoch])
    source, target = store.source_lengths + 1, store.target_lengths + 1
    longest = np.maximum(source, target)
    order = random.permutation(len(store))
    shorter = source if source.sum() <= target.sum() else target
    order = order[np.lexsort((shorter[order], longest[order]))]
    pieces = cut(longest[order], order, micro_batch_tokens)
    while padding(pieces, source, target) > MAX_PADDING and micro_batch_tokens > MIN_TOKENS:
        micro_batch_tokens = max(int(0.8 * micro_batch_tokens), MIN_TOKENS)
        pieces = cut(longest[order], order, micro_batch_tokens)
    # As few micro-batches per update as the limit allows, then no larger than the update requires.
    number = math.ceil(max(batch_tokens * len(pieces) / source.sum(), 1) / multiple) * multiple
    limit = micro_batch_tokens
    for _ in range(2):  # the second cut accounts for the lower padding of smaller micro-batches
        required = math.ceil(limit * batch_tokens * len(pieces) / (number * source.sum()))
        limit = min(required, micro_batch_tokens)
        pieces = cut(longest[order], order, limit)
    shuffled = [pieces[index] for index in random.permutation(len(pieces))]
    return [shuffled[start : start + number] for start in range(0, len(shuffled), number)]


def padding(pieces: list[np.ndarray], *sides: np.ndarray) -> float:
    """Share of padding in these batches; `sides` are the sentence lengths on each side."""
    real = sum(int(lengths.sum()) for lengths in sides)
    padded = (len(piece) * int(lengths[piece].max()) for piece in pieces for lengths in sides)
    return 1 - real / sum(padded)


def make_batch(store: TokenStore, sentences: np.ndarray) -> Batch:
    """Pad the sentences with these indices into one batch."""
    tokens = store.tokens
    source, ends = pad(store.source, store.source_offsets, sentences, padding=tokens.pad)
    source[ends] = tokens.eos
    target, ends = pad(store.target, store.target_offsets, sentences, padding=tokens.pad)
    shifted = np.roll(target, 1, axis=1)
    shifted[:, 0] = tokens.start
    target[ends] = tokens.eos
    return Batch(*(torch.from_numpy(ids) for ids in (source, shifted, target)), tokens)


def pad(
    ids: np.ndarray, offsets: np.ndarray, sentences: np.ndarray, *, padding: int
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Sentences in the rows of a matrix (sentences, longest + 1), and the index (rows, columns) of
    the place after each one."""
    lengths = offsets[sentences + 1] - offsets[sentences]
    matrix = np.full((len(sentences), int(lengths.max()) + 1), padding, dtype=np.int64)
    columns = np.arange(matrix.shape[1])
    inside = columns < lengths[:, None]
    matrix[inside] = ids[(offsets[sentences][:, None] + columns)[inside]]
    return matrix, (np.arange(len(sentences)), lengths)


def in_order(store: TokenStore, *, tokens: int) -> list[np.ndarray]:
    """Batches of at most `tokens` tokens per side (padding included) with all sentences, sorted by
    length, for evaluation."""
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    return cut(longest[order], order, tokens)
