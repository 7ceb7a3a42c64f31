"""Pruning: which weights a scope may change, which heads are removed, and what is recorded;
training on after a cut."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small import ENVIRONMENT, PRUNING, TRAINING, changed, killed_at, outputs

from specialized_heads.model.architecture import KINDS, heads_of
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.decoding import translate
from specialized_heads.model.gates import probability_open, soft
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.pruning import prune
from specialized_heads.pruning.criteria import finetune
from specialized_heads.stage import UserError, read_json, write_file
from specialized_heads.training import loop
from specialized_heads.training import train as training
from specialized_heads.training.objective import evaluate
from specialized_heads.training.state import claim

SIZES = {"updates": 40, "batch_tokens": 100, "log_every": 40, "evaluate_every": 40}
SETTINGS = PRUNING | {"training": TRAINING | SIZES}


Pruned = tuple[Transformer, Transformer, list[dict], dict]


@pytest.fixture
def pruned(call, tokens: dict[str, Path], tmp_path: Path, tiny_model) -> Callable[..., Pruned]:
    """`pruned(lam=1.0, ...)`: baseline and pruned model, rows of the gates, last record of the
    log."""

    def run(start: str = "baseline", **settings: object) -> Pruned:
        save(tiny_model(), tmp_path / "baseline.safetensors", training={})
        files = outputs(tmp_path) | {"gates": tmp_path / "gates.json"}
        inputs = tokens | {start: tmp_path / "baseline.safetensors"}
        call(prune, settings=SETTINGS | settings, **inputs, **files)
        shutil.rmtree(tmp_path / "state")  # or the same settings would make the same model from it
        models = load(tmp_path / "baseline.safetensors"), load(files["output"])
        record = json.loads(files["records"].read_text().splitlines()[-1])
        return *models, read_json(files["gates"])["rows"], record

    return run


def test_gate_noise_has_a_seed_of_its_own(pruned) -> None:
    def weights(**settings: object) -> dict:
        return pruned(**settings)[1].state_dict()

    (own, same, other), (plain, unaffected) = (
        [weights(lam=lam, gate_seed=seed) for seed in seeds]
        for lam, seeds in ((0.01, (None, 1, 2)), (0.0, (None, 2)))
    )
    torch.testing.assert_close(same, own, rtol=0, atol=0)
    torch.testing.assert_close(unaffected, plain, rtol=0, atol=0)
    assert any(not torch.equal(own[name], other[name]) for name in own)


@pytest.mark.parametrize("scope, kept", [("encoder", 4), ("all", 12)])
def test_without_penalty_there_are_no_gates_and_all_heads_stay(
    pruned, tmp_path: Path, scope: str, kept: int
) -> None:
    before, after, gates, record = pruned(scope=scope, lam=0.0, gate_learning_rate=5.0)
    assert after.architecture == before.architecture
    assert any(changed(before, after).values())
    assert (gates, read_json(tmp_path / "gates.json")["kept"]) == ([], kept)
    assert "open" not in record
    assert "gates" not in read_json(tmp_path / "model.json")["training"]


@pytest.mark.parametrize("scope", ["encoder", "all"])
def test_a_huge_penalty_removes_all_heads_and_the_model_still_translates(
    pruned, scope: str, tmp_path, caplog
) -> None:
    caplog.set_level("INFO")
    before, after, gates, _ = pruned(scope=scope, lam=100.0)
    assert after.architecture.encoder == ((), ())
    if scope == "all":
        assert after.architecture.decoder == after.architecture.cross == ((), ())
    else:
        assert after.architecture == replace(before.architecture, encoder=((), ()))
    assert not any(row["kept"] for row in gates)
    said = f"all {len(gates)} gates closed at λ 100;"
    assert read_json(tmp_path / "gates.json")["collapse"].startswith(said)
    assert said in caplog.text
    assert len(translate(after, [[5, 9, 4, 17], [8], []], beam=2, max_length_ratio=2.0)) == 3


def test_rows_of_gates_and_the_logged_loss_are_those_of_the_model(
    pruned, store, sentences, tmp_path: Path
) -> None:
    _, after, gates, record = pruned(scope="all", lam=0.1, gate_learning_rate=0.6)
    assert [(row["type"], row["layer"], row["head"]) for row in gates] == list(
        product(KINDS, (1, 2), (1, 2))
    )
    assert 0 < sum(row["kept"] for row in gates) < 12
    for row in gates:
        assert row["kept"] == (row["log_alpha"] > 0)
        assert row["p_open"] == pytest.approx(
            float(probability_open(torch.tensor(row["log_alpha"])))
        )
        heads = getattr(after.architecture, row["type"])[row["layer"] - 1]
        assert row["kept"] == (row["head"] - 1 in heads)
        logged = record["open"][f"{row['type']}.{row['layer']}"][row["head"] - 1]
        assert row["p_open"] == pytest.approx(logged, abs=1e-4)
    assert record["dev_loss"] == pytest.approx(
        evaluate(after, store(*sentences(10, seed=2))), rel=1e-5
    )
    assert read_json(tmp_path / "model.json")["training"]["lam"] == 0.1


@pytest.mark.parametrize("scope, counts", [("encoder", (0, 3)), ("all", (5, 12))])
def test_as_many_heads_as_asked_for_stay(pruned, store, sentences, tmp_path, scope, counts) -> None:
    """Those with the largest log α."""
    for count in counts:
        before, after, rows, record = pruned(scope=scope, lam=None, target_heads=count)
        left = {kind: sum(map(len, getattr(after.architecture, kind))) for kind in KINDS}
        assert sum(left.values()) == count + (8 if scope == "encoder" else 0)
        kept = [row["log_alpha"] for row in rows if row["kept"]]
        assert sorted(kept) == sorted(row["log_alpha"] for row in rows)[len(rows) - count :]
        assert record["dev_loss"] == pytest.approx(
            evaluate(after, store(*sentences(10, seed=2))), rel=1e-5
        )
        written = read_json(tmp_path / "gates.json")
        asked = [written[name] for name in ("scope", "lam", "target_heads", "kept")]
        assert asked == [scope, None, count, count]
        assert written["decided"] == sum(row["decided"] for row in rows) / len(rows)
        assert written["gates_open"] == sum(row["log_alpha"] > 0 for row in rows)
        assert written["decided_after"] == 12
        open_ = [p for layer in record["open"].values() for p in layer]
        # at the end gates are constants
        assert sorted(open_) == [0.0] * (len(rows) - count) + [1.0] * count
        assert {"decoder_norm.weight", "target_embedding", "output_embedding"} < changed(
            before, after
        ).keys()
        for name, differs in changed(before, after).items():
            trained = scope == "all" or name.startswith(("source_embedding", "encoder"))
            assert differs == trained, name


def test_the_controller_leads_the_gates_near_the_target(pruned, tmp_path: Path) -> None:
    training = SETTINGS["training"] | {"updates": 200}
    for count in (3, 9):
        pruned(scope="all", lam=None, target_heads=count, training=training, gate_learning_rate=0.3)
        written = read_json(tmp_path / "gates.json")
        assert abs(written["gates_open"] - count) <= 2, count
        assert "were open when" not in (written["collapse"] or "")


def test_more_heads_than_there_are(pruned) -> None:
    with pytest.raises(UserError, match="5 heads asked for, but the model has 4 in scope encoder"):
        pruned(lam=None, target_heads=5)


def test_an_encoder_that_nothing_attends_to_cannot_be_trained_alone(tiny_model) -> None:
    model = tiny_model()
    model.remove_heads(
        {head for head in heads_of(model.architecture, scope="all") if head[0] == "cross"}
    )
    prune.freeze(model, scope="all")
    with pytest.raises(UserError, match="no cross-attention heads"):
        prune.freeze(model, scope="encoder")


@pytest.mark.parametrize("target", [{"lam": 0.05}, {"lam": None, "target_heads": 2}])
def test_what_rounding_the_gates_costs(pruned, store, sentences, tmp_path, target) -> None:
    _, hard, rows, _ = pruned(**target, gate_learning_rate=0.2)
    for row in rows:
        assert row["soft"] == pytest.approx(float(soft(torch.tensor(row["log_alpha"]))))
    written, dev = read_json(tmp_path / "gates.json"), store(*sentences(10, seed=2))
    if target["lam"] is not None:
        assert written["loss_hard"] == pytest.approx(evaluate(hard, dev), rel=1e-5)
    assert written["loss_hard"] != written["loss_soft"]
    assert written["expected"] == pytest.approx(sum(row["p_open"] for row in rows))
    in_model = read_json(tmp_path / "model.json")["training"]["gates"]
    assert in_model == {
        name: written[name]
        for name in ("expected", "decided", "by_order", "loss_hard", "loss_soft")
    }


@pytest.mark.parametrize("at", [15, 75])  # before and after the decision
def test_a_pruned_count_survives_a_kill(pruned, tmp_path: Path, at: int) -> None:
    names = ("model.safetensors", "model.json", "gates.json", "log.jsonl")
    pruned(scope="all", lam=None, target_heads=5)
    expected = [(tmp_path / name).read_bytes() for name in names]
    with killed_at(at):
        pruned(scope="all", lam=None, target_heads=5)
    assert (tmp_path / "state/state.pt").exists()
    pruned(scope="all", lam=None, target_heads=5)
    assert [(tmp_path / name).read_bytes() for name in names] == expected


def test_the_regularised_control_starts_from_the_baselines_first_weights(
    pruned, monkeypatch
) -> None:
    seen = []

    def look(model: Transformer, settings: prune.Settings, files: object, **more: object) -> None:
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})
        assert all(parameter.requires_grad for parameter in model.parameters())
        train_gates(model, settings, files, **more)

    train_gates = prune.train_gates
    monkeypatch.setattr(prune, "train_gates", look)
    before, after, rows, _ = pruned("like", lam=None, target_heads=1)
    first = Transformer(before.architecture, dropout=0.1)
    initialise(first, seed=1)
    assert all(torch.equal(weight, seen[0][name]) for name, weight in first.named_parameters())
    assert sum(map(len, after.architecture.encoder)) == sum(row["kept"] for row in rows) == 1
    assert all(changed(first, after).values())


# Two processes that train together: the same updates as one process alone, the same gates, one set
# of files.

SHARED = PRUNING | {
    "scope": "all",
    "lam": None,
    "target_heads": 5,
    # Muon trains the matrices, Adam the rest. An even number of micro-batches: the two shares are
    # those of one process. Gates are decided after update 6: the penalty must have moved them.
    "training": TRAINING
    | {"updates": 20, "batch_tokens": 100, "evaluate_every": 10, "optimizer": "muon"},
}


def prune_in_two_processes(files: dict[str, Path]) -> None:
    arguments = [argument for name, path in files.items() for argument in (f"--{name}", str(path))]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    stage = ["-m", "specialized_heads.pruning.prune", "--settings", json.dumps(SHARED)]
    command = [sys.executable, *launcher, *stage, *arguments]
    found = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_two_processes_prune_as_one(
    call, token_file, sentences, tokens, tiny_model, tmp_path: Path
) -> None:
    save(tiny_model(), tmp_path / "baseline.safetensors", training={})
    inputs = tokens | {
        "baseline": tmp_path / "baseline.safetensors",
        "train": token_file("train", *sentences(80)),
    }

    def results(folder: Path, run: Callable[[dict[str, Path]], None]) -> tuple:
        files = outputs(folder) | {"gates": folder / "gates.json"}
        run(inputs | files)
        left = ["gates.json", "log.jsonl", "model.json", "model.safetensors", "state"]
        assert sorted(path.name for path in folder.iterdir()) == left
        records = [json.loads(line) for line in files["records"].read_text().splitlines()]
        return load_file(files["output"]), read_json(files["gates"]), records

    alone, gates, records = results(
        tmp_path / "1", lambda files: call(prune, settings=SHARED, **files)
    )
    together, shared_gates, shared_records = results(tmp_path / "2", prune_in_two_processes)

    assert gates["kept"] == shared_gates["kept"] == 5
    for own, other in zip(gates["rows"], shared_gates["rows"], strict=True):
        assert own["log_alpha"] == pytest.approx(other["log_alpha"], abs=1e-5)
    assert alone.keys() == together.keys()
    for name, weight in alone.items():
        assert torch.allclose(weight, together[name], atol=1e-5), name
    assert [r["tokens"] for r in records] == [r["tokens"] for r in shared_records]
    assert [r["loss"] for r in records] == pytest.approx(
        [r["loss"] for r in shared_records], rel=1e-5
    )


# Fine-tuning a cut model: which weights change, and that it trains as pruning does.


@pytest.fixture
def finetuned(call, tokens: dict[str, Path], tiny_model, tmp_path: Path) -> Callable[..., Path]:
    """`finetuned(scope="all")`: the weights of a cut model trained on."""
    model = tiny_model()
    model.keep_heads({"encoder": [[1], [0]], "decoder": [[0], [0, 1]], "cross": [[0, 1], [1]]})
    save(model, tmp_path / "cut.safetensors", training={"cut": {"criterion": "random"}})

    def run(**changes: object) -> Path:
        settings = {
            name: PRUNING[name] for name in ("seed", "scope", "dropout", "training", "device")
        } | changes
        written = outputs(tmp_path / "finetuned")
        call(finetune, settings=settings, model=tmp_path / "cut.safetensors", **tokens, **written)
        return written["output"]

    return run


def test_scope_encoder_leaves_the_rest_bit_for_bit_and_scope_all_trains_everything(
    finetuned, tmp_path
) -> None:
    before, after = load(tmp_path / "cut.safetensors"), load(finetuned())
    assert after.architecture == before.architecture
    for name, differs in changed(before, after).items():
        assert differs == name.startswith(("source_embedding", "encoder")), name
    assert all(changed(before, load(finetuned(scope="all"))).values())


def test_a_process_that_took_over_keeps_its_state(pruned, finetuned, monkeypatch, tmp_path) -> None:
    """It claims the folder after the last update, while this process measures the losses that it is
    about to write."""

    def train(*_: object, state: Path, **__: object) -> None:
        write_file(state / "owner", "another process")

    runs = ((prune, pruned, tmp_path), (training, finetuned, tmp_path / "finetuned"))
    for module, run, folder in runs:
        monkeypatch.setattr(module, "train", train)
        with pytest.raises(UserError, match="another process has taken over"):
            run()
        assert (folder / "state/owner").read_text() == "another process"
        assert not (folder / "gates.json").exists() and not (folder / "model.safetensors").exists()


def test_it_trains_as_pruning_does(call, finetuned, tokens, monkeypatch, tmp_path) -> None:
    """The plan is that of pruning but for gates and penalty, with the same frozen weights."""
    seen = []

    def record(
        model: Transformer, plan: loop.Plan, data: loop.Data, *, state: Path, **_: object
    ) -> None:
        claim(state)
        trained = {name for name, p in model.named_parameters() if p.requires_grad}
        seen.append((plan, trained, data.hash))

    for module in (prune, training):
        monkeypatch.setattr(module, "train", record)
    finetuned()
    files = {"baseline": tmp_path / "cut.safetensors", "gates": tmp_path / "gates"}
    files |= outputs(tmp_path / "pruned")
    call(prune, settings=PRUNING | {"lam": 0.0, "gate_learning_rate": 0.0}, **tokens, **files)
    (plan, trained, data), (expected, gated, same) = seen
    assert vars(plan) == vars(expected)
    assert trained == {name for name in gated if not name.endswith("log_alpha")}
    assert data == same


@pytest.mark.parametrize("tied", ["", "output", "all"])
def test_scope_encoder_freezes_embeddings_that_the_decoder_shares(tiny_model, tied: str) -> None:
    architecture = replace(tiny_model().architecture, target_vocabulary=20, tied=tied)
    model = Transformer(architecture, dropout=0.0)
    prune.freeze(model, scope="encoder")
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    shared = {name for name in trained if not name.startswith("encoder")}
    assert shared == (set() if tied == "all" else {"source_embedding"})
    assert not model.target_embedding.requires_grad and not model.output_embedding.requires_grad
