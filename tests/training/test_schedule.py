"""The learning rate at known updates (appendix B.3)."""

import pytest

from specialized_heads.training.schedule import learning_rate

PAPER = {"schedule": "inverse_sqrt", "factor": 4.0, "warmup": 16_000, "updates": 100_000, "width": 512}
LINEAR = {"schedule": "linear", "factor": 0.003, "warmup": 200, "updates": 1000, "width": 128}


def test_the_paper_s_schedule() -> None:
    assert learning_rate(16_000, **PAPER) == pytest.approx(1.40e-3, rel=0.005)
    assert learning_rate(1, **PAPER) == pytest.approx(1.40e-3 / 16_000, rel=0.005)
    assert learning_rate(8_000, **PAPER) == pytest.approx(learning_rate(16_000, **PAPER) / 2)
    assert learning_rate(64_000, **PAPER) == pytest.approx(learning_rate(16_000, **PAPER) / 2)
    assert max(range(1, 100_001, 100), key=lambda t: learning_rate(t, **PAPER)) in range(15_900, 16_101)
    assert learning_rate(100, **PAPER | {"width": 2048}) == pytest.approx(learning_rate(100, **PAPER) / 2)


def test_linear_goes_up_to_its_peak_and_down_to_nothing() -> None:
    rates = [learning_rate(t, **LINEAR) for t in range(1, 1001)]
    assert rates[199] == max(rates) == 0.003
    assert rates[99] == pytest.approx(0.0015)
    assert rates[600] == pytest.approx(0.0015, rel=0.01)
    assert 0 < rates[-1] < 0.003 / 500
    assert all(b > a for a, b in zip(rates[:199], rates[1:200], strict=True))
    assert all(b < a for a, b in zip(rates[199:-1], rates[200:], strict=True))


def test_a_warm_up_longer_than_the_run_never_reaches_its_peak() -> None:
    rates = [learning_rate(t, **LINEAR | {"updates": 50}) for t in range(1, 51)]
    assert rates == pytest.approx([0.003 * t / 200 for t in range(1, 51)])
