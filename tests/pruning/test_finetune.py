"""Fine-tuning a cut model: which weights change, and that it trains as pruning does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small import PRUNING, TRAINING, changed, outputs

from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import finetune, prune
from specialized_heads.training import plan as plans
from specialized_heads.training import train as training

SETTINGS = {"seed": 1, "scope": "encoder", "dropout": 0.1, "training": TRAINING, "device": "cpu"}
CUT = {"criterion": "random"}


@pytest.fixture
def files(token_file, sentences, tiny_model, tmp_path: Path) -> dict:
    model = tiny_model()
    model.keep_heads({"encoder": [[1], [0]], "decoder": [[0], [0, 1]], "cross": [[0, 1], [1]]})
    save(model, tmp_path / "cut.safetensors", training={"cut": CUT})
    return {
        "model": tmp_path / "cut.safetensors",
        "train": token_file("train", *sentences(60)),
        "dev": token_file("dev", *sentences(10, seed=2)),
    }


@pytest.fixture
def run(call, files: dict, tmp_path: Path) -> Callable[..., Path]:
    """`run(scope="all")`: the weights of the model trained on."""

    def trained(**settings: object) -> Path:
        written = outputs(tmp_path / "finetuned")
        call(finetune, settings=SETTINGS | settings, **files, **written)
        return written["output"]

    return trained


def test_scope_encoder_leaves_the_rest_bit_for_bit_and_scope_all_trains_everything(run, files: dict) -> None:
    before = load(files["model"])
    after = load(run())
    assert after.architecture == before.architecture
    for name, differs in changed(before, after).items():
        assert differs == name.startswith(("source_embedding", "encoder")), name
    assert all(changed(before, load(run(scope="all"))).values())


def test_it_trains_as_pruning_does(call, files: dict, monkeypatch, tmp_path: Path, run) -> None:
    """The plan is that of pruning but for gates and penalty, with the same frozen weights."""
    seen = []

    def record(model: Transformer, plan: plans.Plan, data: plans.Data, **_: object) -> None:
        seen.append((plan, {name for name, p in model.named_parameters() if p.requires_grad}, data.hash))

    for module in (prune, training):
        monkeypatch.setattr(module, "train", record)
    run()
    more = {"gates": tmp_path / "gates"}
    baseline = {name if name != "model" else "baseline": path for name, path in files.items()}
    settings = PRUNING | {"lam": 0.0, "gate_learning_rate": 0.0}
    call(prune, settings=settings, **baseline, **outputs(tmp_path / "pruned"), **more)
    (plan, trained, data), (expected, gated, same) = seen
    assert vars(plan) == vars(expected)
    assert trained == {name for name in gated if not name.endswith("log_alpha")}
    assert data == same
