"""Confidence, entropy and attention parked on EOS, on maps whose answers are known (section 4)."""

import math

import pytest
import torch

from specialized_heads.heads.confidence import confidence, entropy, parked

# Two sentences of three and one tokens: real, real, real, EOS; real, EOS, padding, padding.
REAL = torch.tensor([[True, True, True, False], [True, False, False, False]])


@pytest.fixture
def weights() -> torch.Tensor:
    """(2, 2, 4, 4): head 1 as written, head 2 nine tenths on EOS and the rest on the first token."""
    weights = torch.zeros(2, 2, 4, 4)
    weights[0, 0] = torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [1.0, 0, 0, 0]])
    weights[1, 0] = torch.tensor([[0.3, 0.7, 0, 0], [0.5, 0.5, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    weights[0, 1, :, 3], weights[0, 1, :, 0] = 0.9, 0.1
    weights[1, 1, :, 1], weights[1, 1, :, 0] = 0.9, 0.1
    return weights


def test_confidence_leaves_eos_out_on_both_sides(weights: torch.Tensor) -> None:
    assert confidence(weights, REAL, REAL).tolist() == pytest.approx([0.6 + 0.3 + 0.25 + 0.3, 0.4], abs=1e-6)


def test_entropy_is_that_of_the_whole_distribution_of_real_queries(weights: torch.Tensor) -> None:
    def nats(*shares: float) -> float:
        return -sum(share * math.log(share) for share in shares)

    first = nats(0.1, 0.6, 0.2, 0.1) + nats(0.2, 0.1, 0.3, 0.4) + math.log(4) + nats(0.3, 0.7)
    assert entropy(weights, REAL).tolist() == pytest.approx([first, 4 * nats(0.9, 0.1)], abs=1e-5)


def test_attention_on_eos(weights: torch.Tensor) -> None:
    assert parked(weights, REAL, REAL).tolist() == pytest.approx([0.1 + 0.4 + 0.25 + 0.7, 3.6], abs=1e-6)
    all_keys = torch.ones_like(REAL)  # the decoder has no EOS among its keys
    assert parked(weights, REAL, all_keys).tolist() == [0.0, 0.0]
