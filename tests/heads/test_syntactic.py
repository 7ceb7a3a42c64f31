"""From attention between pieces to accuracy on arcs, on cases whose answers are known
(section 5.2)."""

import itertools

import numpy as np
import pytest
import torch

from specialized_heads.heads.syntactic import (
    Sentence,
    arc_hits,
    bootstrap_intervals,
    word_attention,
)
from specialized_heads.parsing.relations import DIRECTIONS, Arc

# Three words: pieces 0; 1 and 2; 3. Piece 4 is EOS.
WORDS = [[0], [1, 2], [3]]
PIECES = [
    [0.1, 0.2, 0.2, 0.3, 0.2],
    [0.6, 0.0, 0.1, 0.2, 0.1],
    [0.0, 0.1, 0.1, 0.8, 0.0],
    [0.0, 0.0, 0.0, 0.1, 0.9],
    [0.2, 0.2, 0.2, 0.2, 0.2],
]
OFFSETS = dict(
    zip(itertools.product(("nsubj", "obj", "amod"), DIRECTIONS), (-1, 1, 1, -2, None, None))
)


def whole(words: list[list[int]], arcs: list[Arc] | None = None) -> Sentence:
    """A sentence of words that share no pieces."""
    return Sentence(words, [[1.0] * len(pieces) for pieces in words], arcs or [])


def test_attention_to_a_word_is_the_sum_and_from_a_word_the_mean() -> None:
    words = word_attention(torch.tensor([[PIECES]]), [whole(WORDS)])[0]
    expected = [[0.1, 0.4, 0.3], [0.3, 0.15, 0.5], [0.0, 0.0, 0.1]]
    assert torch.allclose(words, torch.tensor([expected]))


def test_a_piece_of_two_words_is_divided() -> None:
    sentence = Sentence([[0, 1], [1, 2]], [[1.0, 0.75], [0.25, 1.0]], [])
    words = word_attention(torch.tensor([[PIECES]]), [sentence])[0]
    # Mean of rows 0 and 1: 0.35, 0.1 and 0.15 on pieces 0, 1 and 2.
    assert torch.allclose(words[0, 0], torch.tensor([0.35 + 0.075, 0.025 + 0.15]))


def test_of_words_with_the_same_pieces_either_is_right() -> None:
    weights = torch.zeros(1, 1, 5, 5)
    weights[..., 1] = 0.4
    weights[..., 2] = weights[..., 3] = 0.15
    arcs = [
        Arc("case", head=3, dependent=1),
        Arc("det", head=3, dependent=2),
        Arc("nmod", head=0, dependent=3),
    ]
    names = ("case", "det", "nmod")
    sentences = [whole([[0], [1], [1], [2, 3]], arcs)]  # "de" and "le" of "du" are piece 1
    for offset, found in ((-1, [1, 1, 0]), (-2, [1, 1, 0]), (-3, [0, 0, 0]), (3, [0, 0, 1])):
        offsets = dict.fromkeys(itertools.product(names, DIRECTIONS), offset)
        hits, fixed, _ = arc_hits(word_attention(weights, sentences), sentences, offsets)
        assert hits[0, 0, :, 0].tolist() == [1, 1, 0]
        assert fixed[0, :, 0].tolist() == found


def test_arcs_that_are_hit() -> None:
    # Head 1 looks 0→1, 1→2, 2→2; head 2 looks 0→2, 1→0, 2→1.
    attention = torch.zeros(2, 2, 3, 3)
    attention[:, 0, [0, 1, 2], [1, 2, 2]] = 1.0
    attention[:, 1, [0, 1, 2], [2, 0, 1]] = 1.0
    arcs = [
        Arc("nsubj", head=1, dependent=0),
        Arc("obj", head=1, dependent=2),
        Arc("punct", head=1, dependent=2),
    ]
    arcs += [Arc("amod", head=1, dependent=0), Arc("amod", head=1, dependent=2)]
    hits, fixed, counts = arc_hits(
        attention, [whole([[0], [1], [2]], own) for own in (arcs, [])], OFFSETS
    )
    assert counts.tolist() == [[[1, 1], [1, 1], [2, 2]], [[0, 0]] * 3]
    assert hits[0, 0].tolist() == [[0, 1], [1, 0], [1, 1]]  # head to dependent, dependent to head
    assert hits[0, 1].tolist() == [[1, 0], [0, 1], [1, 1]]
    assert not hits[1].any()
    assert fixed.tolist() == [[[1, 1], [1, 0], [0, 0]], [[0, 0]] * 3]


def test_bootstrap_intervals() -> None:
    """200 sentences, two heads, three relations; the third never occurs."""
    random = np.random.default_rng(1)
    arcs = np.repeat(random.integers(0, 3, (200, 3, 1)), 2, axis=2)
    arcs[:, 2] = 0
    hits = random.binomial(arcs[:, None], np.array([0.2, 0.8])[None, :, None, None])
    fixed = random.binomial(arcs, 0.4)
    scores = bootstrap_intervals(hits, fixed, arcs, seed=1)
    accuracy, low, high, baseline, margin, margin_low, margin_high = scores.values()
    expected = ["", "_low", "_high", "_baseline", "_margin", "_margin_low", "_margin_high"]
    assert list(scores) == expected
    assert accuracy.shape == low.shape == high.shape == (2, 3, 2)
    assert accuracy[1, 0, 1] == hits[:, 1, 0, 1].sum() / arcs[:, 0, 1].sum()
    real = (slice(None), slice(0, 2))
    assert (low[real] < accuracy[real]).all()
    assert (accuracy[real] < high[real]).all()
    # About 200 arcs each: ±2 standard errors of a share.
    error = np.sqrt(accuracy[real] * (1 - accuracy[real]) / arcs.sum(0)[:2])
    assert (high[real] - low[real]) / error == pytest.approx(3.92, rel=0.25)
    assert all(np.isnan(values[:, 2]).all() for values in scores.values())
    assert baseline[0, :2].tolist() == (fixed.sum(0)[:2] / arcs.sum(0)[:2]).tolist()
    assert margin[real].tolist() == (accuracy - baseline)[real].tolist()
    # Head and fixed offset are independent here, so that their variances add up.
    error = np.sqrt(error**2 + 0.4 * 0.6 / arcs.sum(0)[:2])
    assert (margin_high[real] - margin_low[real]) / error == pytest.approx(3.92, rel=0.25)


def test_margins_are_paired() -> None:
    """A head that is right wherever the fixed offset is, and on twelve arcs more: only these are
    uncertain."""
    random = np.random.default_rng(1)
    fixed = random.integers(0, 2, (200, 1, 2))
    hits = fixed[:, None].copy()
    missed = np.flatnonzero(fixed[:, 0, 0] == 0)[:12]
    hits[missed, 0, 0, 0] = 1
    scores = bootstrap_intervals(hits, fixed, np.ones_like(fixed), seed=1)
    assert scores["_margin"][0, 0].tolist() == [pytest.approx(0.06), 0.0]
    assert scores["_margin_low"][0, 0, 0] > 0.02 and scores["_margin_high"][0, 0, 0] < 0.1
    # its own interval holds the fixed offset
    assert scores["_low"][0, 0, 0] < fixed[:, 0, 0].mean()
    assert (scores["_margin_low"][0, 0, 1], scores["_margin_high"][0, 0, 1]) == (0.0, 0.0)


@pytest.mark.parametrize("right", [0, 1])
def test_a_head_that_has_all_arcs_right_or_none_is_not_certain_of_it(right: int) -> None:
    fixed = (np.arange(40) % 4 == 0).astype(int)[:, None, None].repeat(2, axis=2)
    arcs = np.ones_like(fixed)
    scores = bootstrap_intervals(np.full((40, 1, 1, 2), right), fixed, arcs, seed=1)
    wilson = 1.96**2 / (40 + 1.96**2)
    low, high = (1 - wilson, 1.0) if right else (0.0, wilson)
    assert scores["_low"] == pytest.approx(low, abs=1e-4)
    assert scores["_high"] == pytest.approx(high, abs=1e-4)
    swing = np.sqrt(0.25 * 0.75 / 40) * 1.96  # of the fixed offset
    below = scores["_margin"] - scores["_margin_low"]
    above = scores["_margin_high"] - scores["_margin"]
    wide, narrow = (below, above) if right else (above, below)
    assert wide == pytest.approx(np.hypot(swing, wilson), rel=0.15)
    assert narrow == pytest.approx(swing, rel=0.25)


def test_bootstrap_resamples_sentences_not_arcs() -> None:
    # One sentence has all the hits; only whether it is drawn matters.
    hits, arcs = np.zeros((10, 1, 1, 2), dtype=int), np.full((10, 1, 2), 1)
    hits[0], arcs[0] = 20, 20
    accuracy, low, high, *_ = bootstrap_intervals(hits, np.zeros_like(arcs), arcs, seed=1).values()
    assert accuracy[0, 0, 0] == 20 / 29
    assert low[0, 0, 0] == 0.0
    assert high[0, 0, 0] > 0.85


def test_bootstrap_of_a_relation_in_one_sentence_only() -> None:
    hits, arcs = np.zeros((5, 1, 1, 2), dtype=int), np.zeros((5, 1, 2), dtype=int)
    hits[2], arcs[2] = 1, 2
    scores = bootstrap_intervals(hits, np.zeros_like(arcs), arcs, seed=1)
    # resamples without it do not count
    assert all((scores[end] == 0.5).all() for end in ("", "_low", "_high"))
