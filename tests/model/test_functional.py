"""Dropout, softmax and the blocked loss against the library's own, in value and in gradient."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F

from specialized_heads.model import functional
from specialized_heads.model.functional import cross_entropy, dropout, dropout_seed, softmax


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_zeroes_at_its_rate_and_keeps_the_expectation(rate, dtype) -> None:
    torch.manual_seed(1)
    x = torch.full((400, 501), 2.0, dtype=dtype)
    y = dropout(x, rate, training=True)
    assert y.dtype == dtype
    assert float((y == 0).double().mean()) == pytest.approx(rate, abs=0.005)
    assert float(y.double().mean()) == pytest.approx(2.0, rel=0.01)
    assert sorted(set(y.flatten().tolist())) == pytest.approx([0.0, 2.0 / (1 - rate)], rel=0.004)


def test_dropout_of_neighbours_is_independent() -> None:
    torch.manual_seed(1)
    zero = (dropout(torch.ones(200_000), 0.3, training=True) == 0).double()
    for distance in (1, 2, 3, 4):  # four elements share a draw
        both = float((zero[distance:] * zero[:-distance]).mean())
        assert both == pytest.approx(0.09, abs=0.005)


def test_dropout_follows_the_seed_and_is_off_in_evaluation() -> None:
    x = torch.randn(5, 7)
    torch.manual_seed(4)
    first = dropout(x, 0.5, training=True)
    assert not torch.equal(first, dropout(x, 0.5, training=True))
    torch.manual_seed(4)
    assert torch.equal(first, dropout(x, 0.5, training=True))
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


def test_a_dropout_seed_holds_whatever_other_threads_draw() -> None:
    x, cpu = torch.ones(500), torch.device("cpu")

    def draw(seed: int) -> list[list[float]]:
        with dropout_seed(seed, cpu):
            return [dropout(x, 0.5, training=True).tolist() for _ in range(50)]

    torch.manual_seed(1)
    expected = [draw(seed) for seed in range(4)]
    torch.manual_seed(2)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(4))) == expected
    assert expected[0] != expected[1]
    assert expected[0][0] != expected[0][1]


def test_softmax_equals_that_of_the_library() -> None:
    assert softmax(torch.zeros(4, 9).bfloat16()).dtype == torch.float32
    torch.manual_seed(2)
    scores = 30 * torch.randn(3, 2, 5, 7)
    scores[..., 4:] = -torch.inf
    scores[0, 0, 0] = 1e4  # ties, and far from zero
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    p, q = softmax(ours), torch.softmax(theirs, -1)
    assert torch.allclose(p, q, atol=1e-7)
    assert (p[1, ..., 4:] == 0).all()
    weight = torch.randn(p.shape)
    (p * weight).sum().backward()
    (q * weight).sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-6)


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States (40, 6), table (11, 6), labels with some to ignore."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(1, 11, (40,), generator=generator)
    labels[::7] = 0
    return torch.randn(40, 6, generator=generator), torch.randn(11, 6, generator=generator), labels


@pytest.mark.parametrize(
    "rows, smoothing, size", [(7, 0.0, 1), (7, 0.1, 1), (40, 0.1, 1), (512, 0.1, 1), (7, 0.1, 300)]
)
def test_cross_entropy_equals_that_of_the_library(
    problem, rows, smoothing: float, size: float, monkeypatch
) -> None:
    monkeypatch.setattr(functional, "LOSS_ROWS", rows)
    states, table, labels = problem
    bias = torch.linspace(-1, 1, len(table))
    ours, theirs = (
        [each.clone().requires_grad_() for each in (size * states, table, bias)] for _ in range(2)
    )
    loss = cross_entropy(*ours[:2], labels, bias=ours[2], smoothing=smoothing, ignore=0)
    logits = theirs[0] @ theirs[1].T + theirs[2]
    expected = F.cross_entropy(
        logits, labels, label_smoothing=smoothing, ignore_index=0, reduction="sum"
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    (loss / 3).backward()
    (expected / 3).backward()
    for mine, library in zip(ours, theirs, strict=True):
        assert torch.allclose(mine.grad, library.grad, rtol=1e-4, atol=2e-6 * size)
    assert (ours[0].grad[::7] == 0).all()


@pytest.mark.parametrize("frozen", [0, 1])
def test_cross_entropy_of_a_frozen_side(problem, frozen: int) -> None:
    states, table, labels = problem
    both = [states.clone().requires_grad_(), table.clone().requires_grad_()]
    cross_entropy(*both, labels, smoothing=0.1, ignore=0).backward()
    one = [states.clone(), table.clone()]
    one[1 - frozen].requires_grad_()
    cross_entropy(*one, labels, smoothing=0.1, ignore=0).backward()
    assert one[frozen].grad is None
    assert torch.equal(one[1 - frozen].grad, both[1 - frozen].grad)


@pytest.mark.parametrize(
    ("given", "expected"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")]
)
def test_waiting_threads_sleep_unless_the_user_says_otherwise(given, expected) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"
    } | given
    said = (
        "import os, sys, specialized_heads; print(os.environ['OMP_WAIT_POLICY'], 'torch' in "
        "sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", said], env=environment, text=True)
    assert printed.split() == [expected, "False"]
