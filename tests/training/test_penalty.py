"""Penalty on the gates: control of λ towards a number of heads, and the fixed gates."""

import re

import pytest
import torch

from specialized_heads.model.gates import HardConcrete, draw
from specialized_heads.pruning.prune import remark
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
    assert weights(HeadCountController(5, 100), 2, 3, 3, 3, 3, 3) == [0.0, 0.0]  # all heads are the target


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
    assert set(decisions.nonzero().flatten().tolist()) == set([3, 0, 2, 4, 1][:count])  # the first of equal ones
    assert decisions.sum() == count
    for gate in fixed:
        gate.train()
        draw([gate], torch.Generator().manual_seed(1))
        assert gate().tolist() == gate.open_probability().tolist() == gate.fixed.tolist()


# Remarks on gates that failed.


def rows(encoder: list[float], cross=(), kept: int | None = None, decided: int = 99) -> list[dict]:
    """Gates with these log α, open if positive or among the `kept` largest; the first `decided` are decided."""
    gates = [{"type": "encoder", "log_alpha": value} for value in encoder]
    gates += [{"type": "cross", "log_alpha": value} for value in cross]
    for place, row in enumerate(sorted(gates, key=lambda row: -row["log_alpha"])):
        row["kept"] = row["log_alpha"] > 0 if kept is None else place < kept
        row["decided"] = place < decided
    return gates


@pytest.mark.parametrize(
    ("gates", "target", "said"),
    [
        (rows([-1.0, 3.0, 2.0]), {"lam": 0.01}, None),
        (rows([-1.0, 3.0, 2.0, -2.0], kept=2), {"target_heads": 2}, None),
        (rows([1.0] * 6 + [-2.0] * 4, kept=4), {"target_heads": 4}, None),  # near the number
        (rows([3.0, 3.0], kept=2), {"target_heads": 2}, None),
        (rows([-3.0] * 4 + [3.0], decided=4), {"lam": 0.01}, None),  # 80% are decided
        (rows([3.0, 1.0, 2.5]), {"lam": 0.0001}, "no gate closed at λ 0.0001.*pruning.heads"),
        (rows([-3.0, -1.0]), {"lam": 100.0}, "all 2 gates closed at λ 100;.*pruning.heads"),
        (rows([-3.0, -1.0], [4.0]), {"scope": "all", "lam": 0.02}, "all gates of type encoder.*pruning.heads_all"),
        (rows([1.95, 2.1, 2.0], decided=0), {"lam": 0.01}, "the gates hardly moved: log α is at most 0.10"),
        (rows([1.95, 2.1, 2.0], kept=1, decided=0), {"target_heads": 1}, "the gates hardly moved"),
        (rows([1.0] * 9 + [-2.0], kept=4), {"target_heads": 4}, "9 of 10 gates were open.*pruning.updates"),
        (rows([1.0] + [-2.0] * 9, kept=4), {"target_heads": 4}, "1 of 10 gates.*pruning.updates"),
        (rows([-1.0, 3.0, 2.0], decided=2), {"lam": 0.01}, "2 of 3 gates are decided"),
        (rows([-1.0, -2.0], decided=0), {"lam": 0.01}, "all 2 gates closed.*; 0 of 2 gates are decided"),
    ],
)
def test_gates_that_failed_are_remarked_on_and_sound_ones_are_not(gates: list[dict], target: dict, said) -> None:
    usual = {"scope": "encoder", "lam": None, "target_heads": None, "init": 2.0, "updates": "pruning.updates"}
    found = remark(gates, **(usual | target))
    assert re.match(said, found) if said else found is None
