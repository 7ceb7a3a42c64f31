"""The training loop: what a kill may not change, what a state may be used for, and what the loss
and its records are."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small import killed_at

from specialized_heads.corpus.tokens import PAD
from specialized_heads.model import transformer
from specialized_heads.model.functional import dropout
from specialized_heads.model.gates import HardConcrete, probability_open
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning.prune import attach_gates
from specialized_heads.stage import UserError
from specialized_heads.training import loop
from specialized_heads.training.batching import joined, make_batch
from specialized_heads.training.loop import Data, Plan, train
from specialized_heads.training.objective import ConstantLambda, HeadCountController, evaluate
from specialized_heads.training.optimizers import is_layer_matrix, make_optimizers
from specialized_heads.training.state import DistributedContext, read_checkpoint

PLAN = Plan(
    seed=1,
    updates=12,
    batch_tokens=60,
    micro_batch_tokens=30,
    schedule="linear",
    learning_rate=0.01,
    warmup=3,
    label_smoothing=0.1,
    precision="fp32",
    log_every=2,
    evaluate_every=4,
    gate_learning_rate=0.2,
)


def changed(plan: Plan, **settings: object) -> Plan:
    return plan.model_copy(update=settings)


# one update on all the data
WHOLE = changed(PLAN, updates=1, batch_tokens=10_000, micro_batch_tokens=10_000)
MUON = {"optimizer": "muon", "muon_learning_rate": 0.03}


@pytest.fixture
def data(store, sentences) -> Data:
    """60 sentences: about four updates in an epoch."""
    return Data(store(*sentences(60)), store(*sentences(10, seed=2)), "hash")


@pytest.fixture
def gated(tiny_model) -> Callable[..., Transformer]:
    """A model with dropout and a gate on every head."""

    def build(dropout: float = 0.3) -> Transformer:
        model = tiny_model(layers=1, dropout=dropout)
        attach_gates(model, scope="all")
        for attention in model.attentions():
            attention.gate.log_alpha.data.fill_(0.5)
        return model

    return build


def finished(
    model: Transformer, plan: Plan, data: Data, folder: Path, lam: float | None = 0.1
) -> tuple[dict, bytes]:
    """Weights, as bytes, and log after training."""
    folder.mkdir(exist_ok=True)
    files = {"state": folder / "state", "records": folder / "log.jsonl"}
    train(model, plan, data, penalty=None if lam is None else ConstantLambda(lam), **files)
    weights = {
        name: parameter.detach().numpy().tobytes() for name, parameter in model.named_parameters()
    }
    return weights, (folder / "log.jsonl").read_bytes()


@pytest.mark.parametrize(
    "at, settings",
    [
        ((1,), {}),
        ((7, 9), {}),
        ((20,), {"precision": "bf16"}),
        ((22,), MUON | {"schedule": "inverse_sqrt"}),
        ((20,), MUON | {"precision": "bf16", "join": 2}),
    ],
)
def test_resumed_equals_uninterrupted(gated, data, tmp_path, monkeypatch, at, settings) -> None:
    # whatever this processor has
    monkeypatch.setattr(loop, "matmul_precision", lambda precision, device: precision)
    plan = changed(PLAN, **settings)
    expected = finished(gated(), plan, data, tmp_path / "whole")
    for batch in at:
        with killed_at(batch):
            finished(gated(), plan, data, tmp_path / "broken")
    assert (tmp_path / "broken/state/state.pt").exists() == (at[0] > 1)
    torch.manual_seed(123)  # a new process does not know the old generator
    assert finished(gated(), plan, data, tmp_path / "broken") == expected


def test_runs_are_told_apart_by_all_that_they_follow_from(gated, data, monkeypatch) -> None:
    def fingerprint(precision: str = "fp32", **changes: object) -> str:
        monkeypatch.setattr(loop, "matmul_precision", lambda wanted, device: precision)
        usual = {"model": gated(), "plan": PLAN, "data": data, "penalty": None}
        run = usual | {"context": DistributedContext(), "folder": Path(), "workers": 1} | changes
        return loop._Run(**run).fingerprint

    frozen, other_weights = gated(), gated()
    frozen.target_embedding.requires_grad = False
    other_weights.output_embedding.data[3] += 0.1
    found = [
        fingerprint(),
        fingerprint(model=gated(dropout=0.1)),
        fingerprint(model=frozen),
        fingerprint(model=other_weights),
        fingerprint(plan=changed(PLAN, seed=2)),
        fingerprint(data=replace(data, hash="another")),
        fingerprint(penalty=ConstantLambda(0.1)),
        fingerprint(penalty=HeadCountController(3, PLAN.updates)),
        fingerprint(context=DistributedContext(0, 2)),
        fingerprint(precision="bf16"),
    ]
    assert fingerprint() == found[0]
    monkeypatch.setattr(loop.stage, "code_hash", lambda *_: "edited")
    found.append(fingerprint())
    assert len(set(found)) == len(found)


def test_training_that_diverges_stops_and_says_so(gated, data: Data, tmp_path: Path) -> None:
    plan = changed(PLAN, learning_rate=1e30, warmup=1)
    said = "update [24]: the loss is (nan|inf): training diverged; lower the learning rate"
    with pytest.raises(UserError, match=said):
        finished(gated(), plan, data, tmp_path)


def test_the_number_of_threads_does_not_show(gated, data: Data, tmp_path: Path) -> None:
    expected = finished(gated(), PLAN, data, tmp_path / "1")
    torch.set_num_threads(3)
    assert finished(gated(), PLAN, data, tmp_path / "3") == expected
    assert torch.get_num_threads() == 3


def test_every_micro_batch_of_every_update_has_its_own_dropout(
    gated, store, tmp_path: Path, monkeypatch
) -> None:
    alike = store([[5, 6, 7]] * 64, [[8, 9]] * 64)  # so that all batches draw equally many numbers
    masks = []

    def look(x: torch.Tensor, rate: float, training: bool) -> torch.Tensor:
        y = dropout(x, rate, training)
        if training and x.shape[-1] == 12:  # the feed-forward sub-layers' inner width
            masks.append(y.flatten(0, -2)[0].detach().numpy().tobytes())
        return y

    monkeypatch.setattr(transformer, "dropout", look)
    model = gated()
    for layer in (*model.encoder, *model.decoder):
        layer.feed_forward.expand.weight.data.zero_()
        layer.feed_forward.expand.bias.data.fill_(1.0)  # all that differs is the mask
        layer.feed_forward.requires_grad_(False)
    finished(model, changed(PLAN, updates=4), Data(alike, alike, "alike"), tmp_path)
    assert len(masks) >= 16
    assert len(set(masks)) > 0.9 * len(masks)


def gradients(
    model: Transformer, plan: Plan, data: Data, folder: Path, lam: float | None
) -> dict[str, torch.Tensor]:
    """The gradients that the optimiser is given at the last update."""
    found = {}

    def look(*_: object) -> None:
        found.update({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", look)
        finished(model, plan, data, folder, lam)
    return found


def objective(model: Transformer, data: Data, penalty: float) -> float:
    """Eq. (11) on the whole training set, for the gates' noise as it is."""
    batch = make_batch(data.train, np.arange(len(data.train)))
    with torch.no_grad():
        logits = model.logits(model(batch.source, batch.target_in)).double()
    labels = batch.target_out.flatten()
    loss = F.cross_entropy(logits.flatten(0, 1), labels, label_smoothing=0.1, ignore_index=PAD)
    gates = [a.gate for a in model.attentions() if isinstance(a.gate, HardConcrete)]
    return loss.item() + penalty * sum(
        float(probability_open(g.log_alpha.detach().double()).sum()) for g in gates
    )


def test_gradient_is_that_of_cross_entropy_plus_penalty(gated, data: Data, tmp_path: Path) -> None:
    model = gated(dropout=0.0)
    found = gradients(model, WHOLE, data, tmp_path / "penalty", 0.5)
    without = gradients(gated(dropout=0.0), WHOLE, data, tmp_path / "none", None)
    p_open = probability_open(torch.tensor(0.5))
    model.train()  # gates as drawn
    for attention in model.attentions():
        name = next(n for n, p in model.named_parameters() if p is attention.gate.log_alpha)
        # λ per head
        assert torch.allclose(found[name] - without[name], 0.5 * p_open * (1 - p_open), atol=1e-5)
        for head in range(2):
            values = []
            for step in (0.01, -0.01):
                attention.gate.log_alpha.data[head] += step
                values.append(objective(model, data, penalty=0.5))
                attention.gate.log_alpha.data[head] -= step
            assert float(found[name][head]) == pytest.approx(
                (values[0] - values[1]) / 0.02, abs=0.003, rel=0.02
            ), name


def test_micro_batches_add_up_to_the_batch_with_one_draw_of_the_gates(
    gated, data: Data, tmp_path: Path
) -> None:
    whole = gradients(gated(dropout=0.0), WHOLE, data, tmp_path / "whole", 0.1)
    parts = gradients(
        gated(dropout=0.0), changed(WHOLE, micro_batch_tokens=25), data, tmp_path / "parts", 0.1
    )
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        assert torch.allclose(gradient, parts[name], rtol=1e-3, atol=1e-6), name


def test_records(gated, data: Data, tmp_path: Path) -> None:
    model = gated(dropout=0.5)
    finished(model, changed(PLAN, log_every=5, evaluate_every=4, checkpoints=(12,)), data, tmp_path)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [r["update"] for r in records] == [4, 5, 8, 10, 12]
    assert [r["update"] for r in records if "dev_loss" in r] == [4, 8, 12]
    assert records[-1]["epoch"] >= 2
    assert records[0]["learning_rate"] == pytest.approx(0.01 * 9 / 10)
    # No dropout, penalty, smoothing or noise in the development loss.
    assert records[-1]["dev_loss"] == evaluate(model, data.dev)
    assert list(records[-1]["open"]) == ["encoder.1", "decoder.1", "cross.1"]
    open_ = probability_open(model.attentions("cross")[0].gate.log_alpha.detach())
    assert records[-1]["open"]["cross.1"] == pytest.approx(open_.tolist(), abs=1e-4)
    kept = read_checkpoint(tmp_path / "state", 12)  # weights and gates
    torch.testing.assert_close(kept, dict(model.state_dict()), rtol=0, atol=0, equal_nan=True)
    tokens = [r["tokens"] for r in records]
    assert tokens == sorted(set(tokens))


def test_the_recorded_loss_is_per_target_token(tiny_model, data: Data, tmp_path: Path) -> None:
    plan = changed(PLAN, learning_rate=1e-9, updates=24, log_every=24)
    model = tiny_model()
    finished(model, plan, data, tmp_path, None)
    record = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert record["loss"] == pytest.approx(objective(model, data, penalty=0.0), rel=0.02)


def test_gates_have_their_own_learning_rate(gated, data: Data, tmp_path: Path) -> None:
    model = gated(dropout=0.0)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    # Adam's first step is the learning rate in size, whatever the gradient.
    plan = changed(WHOLE, warmup=1, learning_rate=0.004, gate_learning_rate=0.3)
    finished(model, plan, data, tmp_path, 10.0)
    for name, parameter in model.named_parameters():
        moved = float((parameter.detach() - before[name]).abs().max())
        assert moved == pytest.approx(0.3 if name.endswith("log_alpha") else 0.004, rel=0.01), name


@pytest.mark.parametrize("frozen", [False, True])
def test_muon_trains_layers_without_heads_and_leaves_frozen_weights(
    tiny_model, data, tmp_path, frozen: bool
) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[], [1]], "cross": [[0], []]})
    if frozen:
        model.decoder.requires_grad_(False)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    plan = changed(WHOLE, **MUON, warmup=1, learning_rate=0.004)
    finished(model, plan, data, tmp_path, None)
    for name, parameter in model.named_parameters():
        update = parameter.detach() - before[name]
        if not parameter.numel() or frozen and name.startswith("decoder."):
            assert not update.any(), name
        elif is_layer_matrix(name, parameter):
            rows, columns = update.shape
            norm = float(torch.linalg.matrix_norm(update, 2)) / max(1, rows / columns) ** 0.5
            assert 0.6 * 0.03 < norm < 1.3 * 0.03, name
        elif name.endswith("embedding"):  # Adam's first step
            assert float(update.abs().max()) == pytest.approx(0.004, rel=0.01), name


def test_evaluation_is_per_token_without_dropout_whatever_the_batches(
    tiny_model, store, sentences
) -> None:
    """Against the library's cross-entropy, sentence by sentence."""
    model, data = tiny_model(dropout=0.5).train(), store(*sentences(30))
    loss = evaluate(model, data)
    assert model.training  # as before
    total = tokens = 0
    model.eval()
    for number in range(30):
        batch = make_batch(data, np.array([number]))
        logits = model.logits(model(batch.source, batch.target_in))[0]
        total += F.cross_entropy(logits, batch.target_out[0], reduction="sum").item()
        tokens += len(data.target_ids(number)) + 1
    assert loss == pytest.approx(total / tokens, rel=1e-5)
    torch.manual_seed(99)
    assert evaluate(model, data) == loss
    assert not model.training


def test_gates_are_drawn_anew_for_every_update(gated, data, tmp_path, monkeypatch) -> None:
    seen, draw = [], loop.draw

    def look(gates, generator) -> None:
        draw(gates, generator)
        seen.append(tuple(torch.cat([gate.noise for gate in gates]).tolist()))

    monkeypatch.setattr(loop, "draw", look)
    finished(gated(), PLAN, data, tmp_path)
    assert len(set(seen)) == len(seen) == PLAN.updates


def test_adam_has_the_constants_of_vaswani() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    usual = {"gate_learning_rate": 0.1, "peak": 1.0, "precision": torch.float32, "map": map}
    [adam] = make_optimizers({"w": weight}, PLAN, **usual)
    expected = mean = square = 0.0
    for step, gradient in enumerate((1.0, -3.0, 0.5), start=1):
        weight.grad = torch.tensor([gradient])
        adam.param_groups[0]["lr"] = 0.1
        adam.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        size = (square / (1 - 0.98**step)) ** 0.5 + 1e-9
        expected -= 0.1 * mean / (1 - 0.9**step) / size
        assert weight.item() == pytest.approx(expected, rel=1e-5)


def test_sentences_are_joined_anew_in_every_epoch(gated, data: Data, tmp_path: Path) -> None:
    finished(gated(), changed(WHOLE, updates=3, log_every=1, join=3), data, tmp_path)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    tokens = np.diff([0, *(json.loads(line)["tokens"] for line in lines)])
    # One end per joined sentence beside the words, which are the same in every epoch.
    sizes = [len(joined(data.train, most=3, seed=1, epoch=epoch)) for epoch in range(3)]
    assert (tokens - data.train.target_lengths.sum()).tolist() == sizes
    assert max(sizes) < 60 and len(set(sizes)) > 1
