"""Gates at the end of pruning: their rows, the loss with and without rounding, and remarks."""

import re

import pytest
import torch
from small import PRUNING, TRAINING

from specialized_heads.model.gates import Mask, soft
from specialized_heads.pruning import prune
from specialized_heads.pruning.prune import attach_gates, fold_soft_gates, gate_rows, remark
from specialized_heads.training.objective import evaluate


def test_rows_of_gates_that_are_open_closed_decided_or_not(tiny_model) -> None:
    model = tiny_model(heads=4)
    model.keep_heads({"encoder": [[1, 2, 3], []], "cross": [[0, 3], []]})  # pruned before
    attach_gates(model, scope="all")
    assert [attention.gate is None for attention in model.attentions("encoder")] == [False, True]
    # max(P(g = 0), P(g = 1)) = σ(|log α| - 0.33 log 11) is 0.9 at |log α| = log 9 + 0.791 = 2.988.
    model.attentions("encoder")[0].gate.log_alpha.data = torch.tensor([-2.98, 0.01, 3.0])
    model.attentions("cross")[0].gate.log_alpha.data = torch.tensor([-3.0, -0.01])
    rows = [row for row in gate_rows(model) if row["type"] != "decoder"]
    assert [row["head"] for row in rows] == [2, 3, 4, 1, 4]
    assert [row["kept"] for row in rows] == [False, True, True, False, False]
    assert [row["decided"] for row in rows] == [False, False, True, True, False]


def test_soft_gates_are_folded_into_the_output_projection(tiny_model) -> None:
    model, plain = tiny_model(head_width=6), tiny_model(head_width=6)
    attach_gates(model, scope="all")
    for attention in model.attentions():
        attention.gate.log_alpha.data.fill_(3.0)  # soft gates of 1: they must change nothing
    assert float(soft(torch.tensor(3.0))) == 1.0
    model.attentions("encoder")[0].gate.log_alpha.data = torch.tensor([-4.0, 0.5])
    model.attentions("cross")[1].gate.log_alpha.data = torch.tensor([1.0, -0.5])
    # log α
    expected = {("encoder", 0): torch.tensor([-4.0, 0.5]), ("cross", 1): torch.tensor([1.0, -0.5])}
    fold_soft_gates(model)
    for attention, original in zip(model.attentions(), plain.attentions(), strict=True):
        assert attention.gate is None
        columns = original.output.unflatten(1, (2, 6))
        gates = expected.get((attention.kind, attention.layer))
        if gates is None:
            assert torch.equal(attention.output, original.output)
        else:
            soft_gates = (1.2 * gates.sigmoid() - 0.1).clamp(0, 1)
            assert torch.allclose(attention.output, (columns * soft_gates[:, None]).flatten(1))


def test_both_losses_are_those_of_their_gates(tiny_model, store, sentences) -> None:
    gated, masked, dev = tiny_model(), tiny_model(), store(*sentences(10, seed=2))
    attach_gates(gated, scope="all")
    losses = {}
    for name, rule in (("hard", lambda a: (a > 0).float()), ("soft", soft)):
        for n, (own, other) in enumerate(zip(gated.attentions(), masked.attentions())):
            own.gate.log_alpha.data = torch.tensor([0.5 - 0.2 * n, 0.1 * n - 0.25])
            other.gate = Mask(rule(own.gate.log_alpha.detach()))
        losses[f"loss_{name}"] = evaluate(masked, dev)
    settings = prune.Settings(**PRUNING | {"training": TRAINING, "scope": "all"})
    found = prune.describe(gated, dev, settings, whole=12, decision=40, updates_key="u")
    assert {name: found[name] for name in losses} == pytest.approx(losses, rel=1e-5)


def rows(encoder: list[float], cross=(), kept: int | None = None, decided: int = 99) -> list[dict]:
    """Gates with these log α, open if positive or among the `kept` largest; the first `decided` are
    decided."""
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
        (rows([-3.0, -1.0], [4.0]), {"scope": "all", "lam": 0.02}, "all gates of .*heads_all"),
        (rows([1.95, 2.1], decided=0), {"lam": 0.01}, "the gates hardly moved: .* at most 0.10"),
        (rows([1.95, 2.1, 2.0], kept=1, decided=0), {"target_heads": 1}, "the gates hardly moved"),
        (rows([1.0] * 9 + [-2.0], kept=4), {"target_heads": 4}, "9 of 10 gates.*pruning.updates"),
        (rows([1.0] + [-2.0] * 9, kept=4), {"target_heads": 4}, "1 of 10 gates.*pruning.updates"),
        (rows([-1.0, 3.0, 2.0], decided=2), {"lam": 0.01}, "2 of 3 gates are decided"),
        (rows([-1.0, -2.0], decided=0), {"lam": 0.01}, "all 2 gates closed.*; 0 of 2 gates are"),
    ],
)
def test_gates_that_failed_are_remarked_on_and_sound_ones_are_not(gates, target, said) -> None:
    usual = {"scope": "encoder", "lam": None, "target_heads": None}
    usual |= {"updates": "pruning.updates"}
    found = remark(gates, **(usual | target))
    assert re.match(said, found) if said else found is None
