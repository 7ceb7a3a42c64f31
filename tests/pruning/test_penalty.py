"""What presses on the gates: the growth of a given λ, and the steering of λ to a number of heads."""

import pytest
import torch

from specialized_heads.model.gates import HardConcrete
from specialized_heads.pruning.penalty import Lambda, Steering, largest


def gates(*log_alpha: float) -> list[HardConcrete]:
    """Two sub-layers of gates with these log α, the first one has two."""
    made = [HardConcrete(2, log_alpha=0.0), HardConcrete(len(log_alpha) - 2, log_alpha=0.0)]
    values = torch.tensor(log_alpha, dtype=torch.float32)
    made[0].log_alpha.data, made[1].log_alpha.data = values[:2].clone(), values[2:].clone()
    return made


def weights(penalty: Lambda, updates: int) -> list[float]:
    """λ of each update."""
    found = []
    for update in range(1, updates + 1):
        found.append(penalty.weight)
        penalty.advance(update, [])
    return found


def test_lambda_grows_linearly_from_zero_and_then_stays() -> None:
    assert weights(Lambda(0.2, 4), 6) == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2, 0.2])
    assert weights(Lambda(0.2, 0), 3) == [0.2, 0.2, 0.2]
    assert weights(Lambda(0.2, 1), 3) == [0.2, 0.2, 0.2]


def test_too_many_open_gates_press_and_too_few_pull() -> None:
    wide, narrow = Steering(2, 100), Steering(2, 100)
    for update in range(1, 60):
        wide.advance(update, gates(3, 3, 3, 3, 3))
        narrow.advance(update, gates(-3, -3, -3, -3, -3))
    assert wide.weight > 0.1
    assert narrow.weight < -0.1


def test_an_error_that_lasts_presses_more() -> None:
    steering, seen = Steering(2, 100), []
    for update in range(1, 60):
        steering.advance(update, gates(3, 3, 3, 3, 3))
        seen.append(steering.weight)
    assert seen == sorted(seen)
    assert seen[58] > seen[50]  # the target has long arrived at two heads: what grows is the integral


def test_all_heads_asked_for_and_all_open_is_no_error() -> None:
    steering = Steering(5, 100)
    steering.advance(1, gates(3, 3, 3, 3, 3))
    assert steering.weight == 0.0


def test_the_decision_fixes_exactly_so_many_gates_and_ends_the_penalty() -> None:
    own, steering = gates(-1.0, 0.5, 0.5, -3.0, 0.5), Steering(2, 10)
    for update in range(1, steering.decision):
        steering.advance(update, own)
        assert all(gate.fixed.isnan().all() for gate in own)
    steering.advance(steering.decision, own)
    assert [gate.fixed.tolist() for gate in own] == [[0, 1], [1, 0, 0]]  # the first ones of equal log α
    assert steering.weight == 0.0
    own[0].train()
    assert own[0]().tolist() == [0, 1]  # whatever was drawn
    assert own[0].open_probability().tolist() == [0, 1]
    steering.advance(steering.decision + 1, own)
    assert steering.weight == 0.0


@pytest.mark.parametrize("updates", [1, 2, 3])
def test_the_shortest_runs_decide_too(updates: int) -> None:
    assert 1 <= Steering(1, updates).decision <= updates


@pytest.mark.parametrize("count", range(6))
def test_largest(count: int) -> None:
    values = torch.tensor([0.1, -2.0, 0.1, 4.0, 0.1])
    chosen = largest(values, count)
    assert chosen.sum() == count
    assert set(chosen.nonzero().flatten().tolist()) == set([3, 0, 2, 4, 1][:count])
