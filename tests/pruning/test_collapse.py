"""What is said of gates that came to nothing."""

import pytest

from specialized_heads.pruning.collapse import remark


def rows(encoder: list[float], cross: list[float] | None = None, kept: int | None = None) -> list[dict]:
    """Gates with these log α; the decision is theirs, or for the `kept` largest."""
    found = [{"type": "encoder", "log_alpha": value} for value in encoder]
    found += [{"type": "cross", "log_alpha": value} for value in cross or []]
    order = sorted(found, key=lambda row: -row["log_alpha"])
    for place, row in enumerate(order):
        row["kept"] = row["log_alpha"] > 0 if kept is None else place < kept
    return found


def said(found: list[dict], **target: object) -> str | None:
    usual = {"scope": "encoder", "penalty": None, "heads": None, "init": 2.0, "updates": "pruning.updates"}
    return remark(found, **(usual | target))


def test_nothing_is_said_of_a_sound_result() -> None:
    assert said(rows([-1.0, 3.0, 2.0]), penalty=0.01) is None
    assert said(rows([-1.0, 3.0, 2.0, -2.0], kept=2), heads=2) is None


def test_no_penalty_and_all_heads_are_meant() -> None:
    assert said(rows([3.0, 3.0]), penalty=0.0) is None
    assert said(rows([3.0, 3.0], kept=2), heads=2) is None


def test_no_gate_closed() -> None:
    text = said(rows([3.0, 1.0, 2.5]), penalty=0.0001)
    assert text.startswith("no gate closed at λ 0.0001; try a larger λ")
    assert "pruning.heads)" in text


def test_all_gates_closed() -> None:
    text = said(rows([-3.0, -1.0]), penalty=100.0)
    assert text.startswith("all 2 gates closed at λ 100;")
    for key in ("smaller λ", "pruning.penalty_warmup", "pruning.gate_learning_rate", "pruning.heads"):
        assert key in text


def test_all_gates_of_one_type_closed() -> None:
    text = said(rows([-3.0, -1.0], [-1.0, 4.0]), scope="all", penalty=0.02)
    assert text.startswith("all gates of type encoder closed at λ 0.02;")
    assert "pruning.heads_all" in text


@pytest.mark.parametrize("target", [{"penalty": 0.01}, {"heads": 1}])
def test_gates_that_hardly_moved(target: dict) -> None:
    found = rows([1.95, 2.1, 2.0], kept=target.get("heads"))
    assert said(found, **target).startswith("the gates hardly moved: log α is at most 0.10 from its start; raise")


def test_gates_far_from_the_number_asked_for() -> None:
    text = said(rows([1.0] * 9 + [-2.0], kept=4), heads=4)
    assert text.startswith("9 of 10 gates were open when 4 heads were chosen")
    assert text.endswith("raise pruning.gate_learning_rate or pruning.updates")
    assert said(rows([1.0] + [-2.0] * 9, kept=4), heads=4).endswith("raise pruning.updates")
    assert said(rows([1.0] * 6 + [-2.0] * 4, kept=4), heads=4) is None
