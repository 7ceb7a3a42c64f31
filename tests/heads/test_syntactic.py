"""From attention between pieces to accuracy on arcs, on cases whose answers are known (section 5.2)."""

import numpy as np
import pytest
import torch

from specialized_heads.heads.syntactic import arc_hits, bootstrap_intervals, word_attention
from specialized_heads.parsing.relations import Arc

# Three words: pieces 0; 1 and 2; 3. Piece 4 is EOS.
WORDS = [[0], [1, 2], [3]]
PIECES = torch.tensor(
    [
        [
            [0.1, 0.2, 0.2, 0.3, 0.2],
            [0.6, 0.0, 0.1, 0.2, 0.1],
            [0.0, 0.1, 0.1, 0.8, 0.0],
            [0.0, 0.0, 0.0, 0.1, 0.9],
            [0.2, 0.2, 0.2, 0.2, 0.2],
        ]
    ]
)


def between(words: list[list[int]], from_word: str = "mean") -> torch.Tensor:
    """Attention between words of one sentence, (H, W, W)."""
    return word_attention(PIECES[None], [words], from_word=from_word)[0]


def test_attention_to_a_word_is_the_sum_and_from_a_word_the_mean() -> None:
    words = between(WORDS)
    expected = [[0.1, 0.4, 0.3], [0.3, 0.15, 0.5], [0.0, 0.0, 0.1]]
    assert torch.allclose(words, torch.tensor([expected]))


def test_attention_from_the_first_piece() -> None:
    words = between(WORDS, from_word="first")
    assert torch.allclose(words[0, 1], torch.tensor([0.6, 0.1, 0.2]))
    assert torch.equal(words[0, 0], between(WORDS)[0, 0])


def test_a_piece_of_two_words_counts_for_both() -> None:
    words = between([[0, 1], [1, 2]])
    assert torch.allclose(words[0, 0], torch.tensor([0.45, 0.25]))


def test_a_batch_is_its_sentences() -> None:
    random = torch.Generator().manual_seed(1)
    weights = torch.rand(3, 2, 7, 7, generator=random)
    words = [[[0], [1, 2], [3], [4, 5]], [[0, 1]], [[2], [0, 3], [1]]]
    for from_word in ("mean", "first"):
        together = word_attention(weights, words, from_word=from_word)
        assert together.shape == (3, 2, 4, 4)
        for row, own in enumerate(words):
            alone = word_attention(weights[row : row + 1], [own], from_word=from_word)[0]
            size = len(own)
            assert torch.allclose(together[row, :, :size, :size], alone)
            assert (together[row, :, size:] == 0).all() and (together[row, ..., size:] == 0).all()


def test_arcs_that_are_hit() -> None:
    relations = ["nsubj", "obj", "amod"]
    # Head 1 looks 0→1, 1→2, 2→2; head 2 looks 0→2, 1→0, 2→1.
    attention = torch.zeros(2, 2, 3, 3)
    attention[:, 0, [0, 1, 2], [1, 2, 2]] = 1.0
    attention[:, 1, [0, 1, 2], [2, 0, 1]] = 1.0
    found = [Arc("nsubj", head=1, dependent=0), Arc("obj", head=1, dependent=2), Arc("punct", head=1, dependent=2)]
    hits, counts = arc_hits(attention, [found, []], relations)
    assert counts.tolist() == [[[1, 1], [1, 1], [0, 0]], [[0, 0]] * 3]
    assert hits[0, 0].tolist() == [[0, 1], [1, 0], [0, 0]]  # head to dependent, dependent to head
    assert hits[0, 1].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert not hits[1].any()


def test_two_arcs_of_one_relation_add_up() -> None:
    attention = torch.zeros(1, 1, 3, 3)
    attention[0, 0, :, 1] = 1.0
    arcs = [Arc("amod", head=1, dependent=0), Arc("amod", head=1, dependent=2)]
    hits, counts = arc_hits(attention, [arcs], ["amod"])
    assert (hits[0, 0].tolist(), counts[0].tolist()) == ([[0, 2]], [[2, 2]])


def test_a_head_decides_by_words_and_not_by_pieces() -> None:
    # The heaviest piece of row 0 is piece 3, the heaviest word is word 1 with 0.2 + 0.2.
    hits, _ = arc_hits(between(WORDS)[None], [[Arc("obj", head=0, dependent=1)]], ["obj"])
    assert hits[0, 0].tolist() == [[1, 0]]


@pytest.fixture
def counts() -> tuple[np.ndarray, np.ndarray]:
    """200 sentences, two heads, three relations; the third never occurs."""
    random = np.random.default_rng(1)
    arcs = np.repeat(random.integers(0, 3, (200, 3, 1)), 2, axis=2)
    arcs[:, 2] = 0
    hits = random.binomial(arcs[:, None], np.array([0.2, 0.8])[None, :, None, None])
    return hits, arcs


def test_bootstrap_intervals(counts: tuple[np.ndarray, np.ndarray]) -> None:
    hits, arcs = counts
    accuracy, low, high = bootstrap_intervals(hits, arcs, samples=500, seed=1)
    assert accuracy.shape == low.shape == high.shape == (2, 3, 2)
    assert accuracy[1, 0, 1] == hits[:, 1, 0, 1].sum() / arcs[:, 0, 1].sum()
    real = (slice(None), slice(0, 2))
    assert (low[real] < accuracy[real]).all()
    assert (accuracy[real] < high[real]).all()
    # About 200 arcs each: ±2 standard errors of a share.
    error = np.sqrt(accuracy[real] * (1 - accuracy[real]) / arcs.sum(0)[:2])
    assert (high[real] - low[real]) / error == pytest.approx(3.92, rel=0.25)
    for values in (accuracy, low, high):
        assert np.isnan(values[:, 2]).all()


def test_bootstrap_follows_its_seed(counts: tuple[np.ndarray, np.ndarray]) -> None:
    first, again, other = (bootstrap_intervals(*counts, samples=50, seed=seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


def test_bootstrap_resamples_sentences_not_arcs() -> None:
    # One sentence has all the hits: whether it is drawn decides everything.
    hits, arcs = np.zeros((10, 1, 1, 2), dtype=int), np.full((10, 1, 2), 1)
    hits[0], arcs[0] = 20, 20
    accuracy, low, high = bootstrap_intervals(hits, arcs, samples=2000, seed=1)
    assert accuracy[0, 0, 0] == 20 / 29
    assert low[0, 0, 0] == 0.0
    assert high[0, 0, 0] > 0.85


def test_bootstrap_of_a_relation_in_one_sentence_only() -> None:
    hits, arcs = np.zeros((5, 1, 1, 2), dtype=int), np.zeros((5, 1, 2), dtype=int)
    hits[2], arcs[2] = 1, 2
    accuracy, low, high = bootstrap_intervals(hits, arcs, samples=100, seed=1)
    assert (accuracy == 0.5).all() and (low == 0.5).all() and (high == 0.5).all()  # never drawn says nothing
