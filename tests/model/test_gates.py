"""Hard Concrete gates against their closed form (section 6.1): distribution, penalty, decision,
gradient, noise."""

import math

import pytest
import torch

from specialized_heads.model.gates import (
    EPSILON,
    HardConcrete,
    draw,
    hard,
    probability_open,
    sample,
)

BETA, LOW, HIGH = 0.33, -0.1, 1.1  # the paper's


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def probability_below(x: float, log_alpha: float) -> float:
    """P(stretched s ≤ x): s is Concrete, so that logit(s)·β - log α is logistic."""
    s = (x - LOW) / (HIGH - LOW)
    return sigmoid(BETA * (math.log(s) - math.log(1 - s)) - log_alpha)


@pytest.mark.parametrize("log_alpha", [-3.0, -0.7, 0.0, 0.4, 2.0])
def test_sampled_distribution_is_the_closed_form(log_alpha: float) -> None:
    uniform = torch.rand(400_000, generator=torch.Generator().manual_seed(3)).clamp(
        EPSILON, 1 - EPSILON
    )
    gates = sample(torch.full_like(uniform, log_alpha), uniform)
    assert gates.min() >= 0
    assert gates.max() <= 1
    shut, full_open = float((gates == 0).double().mean()), float((gates == 1).double().mean())
    assert shut == pytest.approx(probability_below(0.0, log_alpha), abs=0.003)
    assert full_open == pytest.approx(1 - probability_below(1.0, log_alpha), abs=0.003)
    for x in (0.1, 0.3, 0.5, 0.9):
        assert float((gates <= x).double().mean()) == pytest.approx(
            probability_below(x, log_alpha), abs=0.003
        )


def test_penalty_is_the_probability_that_a_head_is_not_zero() -> None:
    log_alpha = torch.tensor([-4.0, -1.0, 0.0, 0.5, 3.0])
    expected = [1 - probability_below(0.0, a) for a in log_alpha.tolist()]
    assert probability_open(log_alpha).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("log_alpha", [-2.0, -0.05, -0.001, 0.001, 0.05, 2.0])
def test_decision_is_the_larger_of_the_two_ends(log_alpha: float) -> None:
    shut, full_open = probability_below(0.0, log_alpha), 1 - probability_below(1.0, log_alpha)
    assert bool(hard(torch.tensor(log_alpha))) == (full_open > shut)


def test_gradient_is_finite_everywhere_and_right_inside() -> None:
    log_alpha = torch.tensor([-30.0, -2.0, 0.0, 0.3, 2.0, 30.0], requires_grad=True)
    for u in (EPSILON, 0.5, 1 - EPSILON):
        (gradient,) = torch.autograd.grad(sample(log_alpha, torch.full((6,), u)).sum(), log_alpha)
        assert gradient.isfinite().all()
    (gradient,) = torch.autograd.grad(sample(log_alpha, torch.full((6,), 0.5)).sum(), log_alpha)
    assert float(gradient[2]) == pytest.approx((HIGH - LOW) * 0.25 / BETA)  # σ' (0) = 1/4
    assert gradient[0] == gradient[5] == 0  # clipped
    (gradient,) = torch.autograd.grad(probability_open(log_alpha).sum(), log_alpha)
    p = sigmoid(0.3 - BETA * math.log(0.1 / 1.1))
    assert float(gradient[3]) == pytest.approx(p * (1 - p), rel=1e-5)


def test_a_draw_holds_for_all_forward_passes_and_follows_from_the_generator() -> None:
    gate, twin = HardConcrete(8, log_alpha=0.0), HardConcrete(8, log_alpha=0.0)
    generator = torch.Generator().manual_seed(7)
    draw([gate], generator)
    torch.manual_seed(0)  # the global generator has no say
    draw([twin], torch.Generator().manual_seed(7))
    first = gate()
    assert torch.equal(first, gate())
    assert torch.equal(first, twin())
    assert len(set(first.tolist())) > 4  # one draw per head
    draw([gate], generator)
    assert not torch.equal(first, gate())


@pytest.mark.parametrize("training", [True, False])
def test_a_fixed_gate_is_a_constant_whatever_its_log_alpha_and_noise(training: bool) -> None:
    gate = HardConcrete(3, log_alpha=0.5).train(training)
    gate.fix(torch.tensor([True, False, False]))
    draw([gate], torch.Generator().manual_seed(1))
    assert gate().tolist() == [1.0, 0.0, 0.0]
    assert gate.decisions().tolist() == [True, False, False]
    assert gate.open_probability().tolist() == [1.0, 0.0, 0.0]
    loss = (gate() + gate.open_probability()).sum() + 0 * gate.log_alpha.sum()
    (gradient,) = torch.autograd.grad(loss, gate.log_alpha)
    assert not gradient.any()  # it moves no more
