"""Pruning: what a scope may change, which heads go, and what is written down of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.decoding import translate
from specialized_heads.model.gates import probability_open
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.pruning import prune
from specialized_heads.pruning.prune import attach_gates, remove_closed_heads
from specialized_heads.training.objective import evaluate

SETTINGS = {
    "seed": 1,
    "scope": "encoder",
    "penalty": 0.01,
    "heads": None,
    "penalty_warmup": 0,
    "dropout": 0.1,
    "training": {
        "updates": 40,
        "batch_tokens": 100,
        "micro_batch_tokens": 60,
        "schedule": "linear",
        "learning_rate": 0.003,
        "warmup": 3,
        "log_every": 40,
        "evaluate_every": 40,
    },
    "gate_learning_rate": 0.3,
    "gate_init": 2.0,
    "device": "cpu",
}
SOURCES = [[5, 9, 4, 17], [8], []]
DECODING = {"beam": 2, "length_penalty": 1.0, "max_length_ratio": 2.0}


@pytest.fixture
def pruned(
    call: Callable[..., None], token_file: Callable[..., Path], sentences, tmp_path: Path, tiny_model
) -> Callable[..., tuple[Transformer, Transformer, list[dict], dict]]:
    """`pruned(penalty=1.0, ...)`: baseline and pruned model, rows of the gates, last record of the log."""

    def run(**settings: object) -> tuple[Transformer, Transformer, list[dict], dict]:
        save(tiny_model(), tmp_path / "baseline.safetensors", training={})
        files = {
            "output": tmp_path / "model.safetensors",
            "records": tmp_path / "log.jsonl",
            "gates": tmp_path / "gates.json",
        }
        call(
            prune,
            settings=SETTINGS | settings,
            baseline=tmp_path / "baseline.safetensors",
            train=token_file("train", *sentences(60)),
            dev=token_file("dev", *sentences(10, seed=2)),
            state=tmp_path / "state",
            **files,
        )
        assert not (tmp_path / "state").exists()
        models = load(tmp_path / "baseline.safetensors"), load(files["output"])
        record = json.loads(files["records"].read_text().splitlines()[-1])
        return *models, json.loads(files["gates"].read_text()), record

    return run


def changed(before: Transformer, after: Transformer) -> dict[str, bool]:
    """Per parameter of the same shape, whether any bit differs."""
    theirs = dict(after.named_parameters())
    return {n: not torch.equal(p, theirs[n]) for n, p in before.named_parameters() if p.shape == theirs[n].shape}


def test_scope_encoder_leaves_the_decoder_bit_for_bit(pruned) -> None:
    before, after, _, _ = pruned(penalty=0.05)
    for name, differs in changed(before, after).items():
        assert differs == name.startswith(("source_embedding", "encoder")), name
    frozen = ("decoder.1.cross.output", "decoder_norm.weight", "target_embedding", "softmax_embedding")
    assert set(frozen) < changed(before, after).keys()


def test_scope_all_changes_everything(pruned) -> None:
    before, after, gates, _ = pruned(scope="all", penalty=0.0)
    assert all(changed(before, after).values())
    assert len(changed(before, after)) == len(list(before.parameters()))
    assert {row["type"] for row in gates} == set(KINDS)


@pytest.mark.parametrize("scope", ["encoder", "all"])
def test_without_penalty_all_heads_stay(pruned, scope: str) -> None:
    before, after, gates, _ = pruned(scope=scope, penalty=0.0, gate_init=3.0, gate_learning_rate=0.02)
    assert after.architecture == before.architecture
    assert all(row["kept"] for row in gates)


@pytest.mark.parametrize("scope", ["encoder", "all"])
def test_a_huge_penalty_removes_all_heads_and_the_model_still_translates(pruned, scope: str) -> None:
    before, after, gates, _ = pruned(scope=scope, penalty=100.0)
    assert after.architecture.encoder == ((), ())
    if scope == "all":
        assert after.architecture.decoder == after.architecture.cross == ((), ())
    else:
        assert (after.architecture.decoder, after.architecture.cross) == (
            before.architecture.decoder,
            before.architecture.cross,
        )
    assert not any(row["kept"] for row in gates)
    assert len(translate(after, SOURCES, **DECODING)) == len(SOURCES)


def test_more_penalty_opens_fewer_gates(pruned) -> None:
    expected = [sum(row["p_open"] for row in pruned(scope="all", penalty=penalty)[2]) for penalty in (0.0, 0.3, 3.0)]
    assert expected == sorted(expected, reverse=True)
    assert expected[0] > expected[-1] + 3


def test_rows_of_the_gates(pruned, tmp_path: Path) -> None:
    _, after, gates, record = pruned(scope="all", penalty=0.1, gate_learning_rate=0.6)
    assert [(row["type"], row["layer"], row["head"]) for row in gates] == [
        (kind, layer, head) for kind in KINDS for layer in (1, 2) for head in (1, 2)
    ]
    assert 0 < sum(row["kept"] for row in gates) < 12
    for row in gates:
        assert row["kept"] == (row["log_alpha"] > 0)
        assert row["p_open"] == pytest.approx(float(probability_open(torch.tensor(row["log_alpha"]))))
        heads = getattr(after.architecture, row["type"])[row["layer"] - 1]
        assert row["kept"] == (row["head"] - 1 in heads)
        logged = record["open"][f"{row['type']}.{row['layer']}"][row["head"] - 1]
        assert row["p_open"] == pytest.approx(logged, abs=1e-4)
    description = json.loads((tmp_path / "model.json").read_text())
    assert description["training"]["penalty"] == 0.1


def test_the_logged_development_loss_is_that_of_the_model_without_its_closed_heads(pruned, store, sentences) -> None:
    _, after, gates, record = pruned(scope="all", penalty=0.1, gate_learning_rate=0.6)
    assert 0 < sum(row["kept"] for row in gates) < 12
    assert record["dev_loss"] == pytest.approx(evaluate(after, store(*sentences(10, seed=2))), rel=1e-5)


def test_closed_heads_are_removed_by_their_log_alpha(tiny_model: Callable[..., Transformer]) -> None:
    model = tiny_model(heads=4)
    model.keep_heads({"encoder": [[1, 2, 3], [0, 3]]})  # pruned before
    attach_gates(model, scope="encoder", log_alpha=1.0)
    model.attentions("encoder")[0].gate.log_alpha.data = torch.tensor([-1.0, 0.01, -0.01])
    rows = remove_closed_heads(model)
    assert model.architecture.encoder == ((2,), (0, 3))
    assert [row["head"] for row in rows] == [2, 3, 4, 1, 4]
    assert [row["kept"] for row in rows] == [False, True, False, True, True]
    assert all(attention.gate is None for attention in model.attentions())


def test_a_layer_without_heads_gets_no_gate(tiny_model: Callable[..., Transformer]) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[], [0]]})
    attach_gates(model, scope="all", log_alpha=1.0)
    assert [attention.gate is None for attention in model.attentions("encoder")] == [True, False]
    assert len(remove_closed_heads(model)) == 1 + 4 + 4
