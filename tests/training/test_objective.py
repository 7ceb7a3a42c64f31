"""Penalty on the gates: control of λ towards a number of heads, and the fixed gates."""

import pytest
import torch

from specialized_heads.model.gates import HardConcrete, draw
from specialized_heads.training.objective import HeadCountController, fix_largest


def gates(*log_alpha: float) -> list[HardConcrete]:
    """Two sub-layers of gates with these log α; the first has two."""
    values = torch.tensor(log_alpha, dtype=torch.float32).split([2, len(log_alpha) - 2])
    made = [HardConcrete(len(part), log_alpha=0.0) for part in values]
    for gate, part in zip(made, values, strict=True):
        gate.log_alpha.data = part.clone()
    return made


def weights(penalty: HeadCountController, updates: int, *log_alpha: float) -> list[float]:
    """λ of each update, the gates being constant."""
    values = []
    for update in range(1, updates + 1):
        values.append(penalty.lam)
        penalty.advance(update, gates(*log_alpha) if log_alpha else [])
    return values


def test_lambda_is_positive_with_too_many_open_gates_and_negative_with_too_few() -> None:
    wide = weights(HeadCountController(2, 200), 60, 3, 3, 3, 3, 3)
    assert wide[-1] > 0.1
    assert wide == sorted(wide)
    assert wide[58] > wide[50]  # the target has reached two heads before: the integral grows
    assert weights(HeadCountController(2, 200), 60, -3, -3, -3, -3, -3)[-1] < -0.05
    # all heads are the target
    assert weights(HeadCountController(5, 100), 2, 3, 3, 3, 3, 3) == [0.0, 0.0]


def test_lambda_is_proportional_to_the_error_and_to_its_sum() -> None:
    """0.07 nats for an error of all heads, and 2 nats for one that lasts all 200 updates."""
    # At its median noise a gate with log α 0 is half open: 3.5 of 5 heads. The target is 5 - 0.3 n
    # up to update 10, so errors are 0.06 n - 0.3 of all heads, then 0.3.
    found = weights(HeadCountController(2, 200), 21, 3, 3, 3, 0, -3)
    sums = {1: -0.24, 5: -0.6, 10: 0.3, 20: 3.3}
    errors = {1: -0.24, 5: 0.0, 10: 0.3, 20: 0.3}
    expected = {update: 0.07 * errors[update] + 2 * sums[update] / 200 for update in sums}
    assert {update: found[update] for update in sums} == pytest.approx(expected)


@pytest.mark.parametrize("updates", [1, 2, 3, 10])
def test_lambda_is_zero_after_the_decision(updates: int) -> None:
    controller = HeadCountController(1, updates)
    assert 1 <= controller.decision <= updates
    after = weights(controller, updates + 2, 3, 3, 3)[controller.decision :]
    assert after == [0.0] * (updates + 2 - controller.decision)


@pytest.mark.parametrize("count", range(6))
def test_the_largest_log_alpha_are_fixed_open(count: int) -> None:
    fixed = gates(0.1, -2.0, 0.1, 4.0, 0.1)
    fix_largest(fixed, count)
    decisions = torch.cat([gate.fixed for gate in fixed])
    # the first of equal ones
    assert set(decisions.nonzero().flatten().tolist()) == set([3, 0, 2, 4, 1][:count])
    assert decisions.sum() == count
    for gate in fixed:
        gate.train()
        draw([gate], torch.Generator().manual_seed(1))
        assert gate().tolist() == gate.open_probability().tolist() == gate.fixed.tolist()
