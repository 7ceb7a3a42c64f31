"""Muon against a float64 reference, which parameters it trains, and the learning rate."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from specialized_heads.training.loop import Plan
from specialized_heads.training.optimizers import Muon, is_layer_matrix, learning_rate

SHAPES = [(12, 8), (8, 8), (8, 20), (12, 8), (1, 8)]


def after_steps(
    make: Callable[..., torch.optim.Optimizer], *, lr: float = 0.5
) -> list[torch.Tensor]:
    """Random matrices after four steps with random gradients."""
    generator = torch.Generator().manual_seed(3)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]
    optimizer = make(weights, lr=lr)
    for _ in range(4):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.step()
    return [weight.detach() for weight in weights]


class Reference:
    """Muon for one matrix at a time, in float64 NumPy (Jordan et al. 2024)."""

    def __init__(self, weights: list[torch.nn.Parameter], lr: float) -> None:
        self.weights, self.lr = weights, lr
        self.exact = [weight.detach().double().numpy() for weight in weights]
        self.momentum = [np.zeros_like(weight) for weight in self.exact]

    def step(self) -> None:
        for weight, exact, momentum in zip(self.weights, self.exact, self.momentum, strict=True):
            gradient = weight.grad.double().numpy()
            momentum += 0.05 * (gradient - momentum)
            x = 0.05 * gradient + 0.95 * momentum
            x /= np.linalg.norm(x)
            for _ in range(5):
                x = 3.4445 * x + (-4.7750 * (x @ x.T) + 2.0315 * (x @ x.T) @ (x @ x.T)) @ x
            exact -= self.lr * max(1, x.shape[0] / x.shape[1]) ** 0.5 * x
            weight.data.copy_(torch.from_numpy(exact))


def test_muon_equals_the_reference_in_float32() -> None:
    for ours, exact in zip(after_steps(Muon), after_steps(Reference), strict=True):
        assert torch.allclose(ours, exact, atol=2e-5)


def test_rows_and_columns_without_a_gradient_are_as_if_absent() -> None:
    """Those of closed heads keep their weights, whatever their momentum; the others move as in a
    matrix of their own."""
    generator = torch.Generator().manual_seed(1)
    whole, part = (torch.nn.Parameter(torch.ones(shape)) for shape in ((12, 8), (8, 5)))
    rows, columns = torch.tensor([0, 1, 2, 3, 6, 7, 8, 11])[:, None], torch.tensor([0, 2, 3, 6, 7])
    optimizer, alone = Muon([whole], lr=0.5), Muon([part], lr=0.5)
    for _ in range(3):
        part.grad = torch.randn(8, 5, generator=generator)
        whole.grad = torch.zeros(12, 8)
        whole.grad[rows, columns] = part.grad
        optimizer.step()
        alone.step()
    expected = torch.ones(12, 8)
    expected[rows, columns] = part.detach()
    assert torch.equal(whole.detach(), expected)
    whole.grad = torch.zeros(12, 8)
    optimizer.step()
    assert torch.equal(whole.detach(), expected)


def test_muon_is_for_the_matrices_of_the_layers(tiny_model) -> None:
    parameters = dict(tiny_model(layers=1).named_parameters())
    matrices = {name for name, parameter in parameters.items() if parameter.dim() == 2}
    found = {name for name, parameter in parameters.items() if is_layer_matrix(name, parameter)}
    assert matrices - found == {"source_embedding", "target_embedding", "output_embedding"}
    assert found < matrices


# The learning rate at known updates (appendix B.3).

PAPER = Plan(seed=1, schedule="inverse_sqrt", learning_rate=4.0, warmup=16_000, updates=100_000)
LINEAR = Plan(seed=1, schedule="linear", learning_rate=0.003, warmup=200, updates=1000)


def rate(update: int, plan: Plan) -> float:
    """With the paper's width."""
    return learning_rate(update, plan, width=512)


def test_the_paper_s_schedule() -> None:
    assert rate(16_000, PAPER) == pytest.approx(1.40e-3, rel=0.005)
    assert rate(1, PAPER) == pytest.approx(1.40e-3 / 16_000, rel=0.005)
    assert rate(8_000, PAPER) == pytest.approx(rate(16_000, PAPER) / 2)
    assert rate(64_000, PAPER) == pytest.approx(rate(16_000, PAPER) / 2)
    assert max(range(1, 100_001, 100), key=lambda t: rate(t, PAPER)) in range(15_900, 16_101)
    assert learning_rate(100, PAPER, width=2048) == pytest.approx(rate(100, PAPER) / 2)


def test_linear_goes_up_to_its_peak_and_down_to_nothing() -> None:
    rates = [rate(t, LINEAR) for t in range(1, 1001)]
    assert rates[199] == max(rates) == 0.003
    assert rates[99] == pytest.approx(0.0015)
    assert rates[600] == pytest.approx(0.0015, rel=0.01)
    assert 0 < rates[-1] < 0.003 / 500
    assert all(b > a for a, b in zip(rates[:199], rates[1:200], strict=True))
    assert all(b < a for a, b in zip(rates[199:-1], rates[200:], strict=True))


def test_a_warm_up_longer_than_the_run_never_reaches_its_peak() -> None:
    short = LINEAR.model_copy(update={"updates": 50})
    rates = [rate(t, short) for t in range(1, 51)]
    assert rates == pytest.approx([0.003 * t / 200 for t in range(1, 51)])
