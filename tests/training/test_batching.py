"""Batches: every sentence once, like lengths together, the size asked for, one order per seed and
epoch."""

from itertools import chain

import numpy as np
import pytest

from specialized_heads.corpus.tokens import BOS, EOS, PAD, TokenStore
from specialized_heads.training.batching import epoch_updates, in_order, joined, make_batch

SIZES = {"batch_tokens": 4000, "micro_batch_tokens": 1500}


@pytest.fixture(scope="module")
def news() -> TokenStore:
    """20 000 sentences with the lengths of a news corpus: log-normal, median 22 subwords, target
    lengths correlated."""
    random = np.random.default_rng(1)
    source = np.clip(np.exp(random.normal(3.1, 0.6, 20_000)), 1, 150).astype(int)
    target = np.clip(source * np.exp(random.normal(0.0, 0.2, len(source))), 1, 200).astype(int)
    offsets = [np.concatenate([[0], np.cumsum(lengths)]) for lengths in (source, target)]
    ids = [np.full(ends[-1], 7, dtype=np.int32) for ends in offsets]
    return TokenStore(ids[0], offsets[0], ids[1], offsets[1])


def test_every_sentence_once_per_epoch(news: TokenStore) -> None:
    for epoch in range(3):
        updates = epoch_updates(news, seed=1, epoch=epoch, **SIZES)
        assert sorted(chain.from_iterable(np.concatenate(update) for update in updates)) == list(
            range(len(news))
        )


def test_the_order_depends_on_seed_and_epoch_alone(news: TokenStore) -> None:
    def order(seed: int, epoch: int) -> list[int]:
        np.random.seed(0)
        updates = epoch_updates(news, seed=seed, epoch=epoch, **SIZES)
        return np.concatenate([np.concatenate(update) for update in updates]).tolist()

    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(seed, epoch)[:50]) for seed in (1, 2) for epoch in (0, 1)}) == 4


@pytest.mark.parametrize("batch_tokens", [500, 1500, 4000, 5000, 16_000])
def test_updates_have_the_size_asked_for(news: TokenStore, batch_tokens: int) -> None:
    updates = epoch_updates(
        news, seed=1, epoch=0, batch_tokens=batch_tokens, micro_batch_tokens=1500
    )
    sizes = np.array(
        [sum(int((news.source_lengths[m] + 1).sum()) for m in update) for update in updates[:-1]]
    )
    assert sizes.mean() == pytest.approx(batch_tokens, rel=0.02)
    assert sizes.std() < 0.15 * batch_tokens
    assert sizes.max() < 1.2 * batch_tokens
    assert len({len(update) for update in updates[:-1]}) == 1  # threads share an update evenly


def test_micro_batches_fit_on_either_side_and_hold_little_padding(news: TokenStore) -> None:
    tokens = padded = 0
    for micro_batch in chain.from_iterable(epoch_updates(news, seed=1, epoch=0, **SIZES)):
        for lengths in (news.source_lengths[micro_batch] + 1, news.target_lengths[micro_batch] + 1):
            size = len(lengths) * int(lengths.max())
            assert size <= 1500
            padded += size
            tokens += int(lengths.sum())
    assert 1 - tokens / padded < 0.05


def test_a_sentence_above_the_limit_stands_alone(store) -> None:
    lengths = [3, 30, 2, 5, 31, 2]
    data = store([[5] * length for length in lengths], [[6]] * 6)
    updates = epoch_updates(data, seed=1, epoch=0, batch_tokens=100, micro_batch_tokens=12)
    micro_batches = list(chain.from_iterable(updates))
    assert [1] in [m.tolist() for m in micro_batches]
    assert [4] in [m.tolist() for m in micro_batches]
    assert sorted(np.concatenate(micro_batches)) == list(range(6))
    assert [1] in [m.tolist() for m in in_order(data, tokens=12)]


def test_in_order_has_every_sentence_once_by_length(news: TokenStore) -> None:
    batches = in_order(news, tokens=2000)
    assert sorted(np.concatenate(batches)) == list(range(len(news)))
    longest = np.maximum(news.source_lengths, news.target_lengths) + 1
    assert (np.diff(longest[np.concatenate(batches)]) >= 0).all()
    assert all(len(batch) * longest[batch].max() <= 2000 for batch in batches)


def test_a_batch_is_padded_and_marked_at_its_ends(store) -> None:
    data = store([[5, 6, 7], [8], []], [[9], [4, 5], [11]])
    batch = make_batch(data, np.array([1, 0, 2]))
    assert batch.source.tolist() == [[8, EOS, PAD, PAD], [5, 6, 7, EOS], [EOS, PAD, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 4, 5], [BOS, 9, PAD], [BOS, 11, PAD]]
    assert batch.target_out.tolist() == [[4, 5, EOS], [9, EOS, PAD], [11, EOS, PAD]]
    assert batch.real(batch.target_out).sum() == 7


@pytest.mark.parametrize("most", [1, 2, 5])
def test_joined_pairs_hold_every_pair_once_and_at_most_n(store, most: int) -> None:
    number = 400
    data = store(*([[i] * (i % length) + [1000 + i] for i in range(number)] for length in (4, 3)))
    ends = []
    for epoch in (0, 1):
        epoch_store = joined(data, most=most, seed=1, epoch=epoch)
        for sentence in range(len(epoch_store)):
            sources, targets = epoch_store.source_ids(sentence), epoch_store.target_ids(sentence)
            pairs = [i - 1000 for i in sources.tolist() if i >= 1000]
            assert 1 <= len(pairs) <= most
            assert sources.tolist() == [token for i in pairs for token in data.source_ids(i)]
            assert targets.tolist() == [token for i in pairs for token in data.target_ids(i)]
            ends.append((epoch, pairs))
    for epoch in (0, 1):
        assert sorted(i for e, pairs in ends if e == epoch for i in pairs) == list(range(number))
    sizes = [len(pairs) for _, pairs in ends]
    assert np.mean(sizes) == pytest.approx((most + 1) / 2, rel=0.15)  # uniform from 1 to n
    assert [pairs for e, pairs in ends if e == 0] != [pairs for e, pairs in ends if e == 1]
    again = joined(data, most=most, seed=1, epoch=1)
    assert again.source.tolist() == epoch_store.source.tolist()
    assert again.source_offsets.tolist() == epoch_store.source_offsets.tolist()
