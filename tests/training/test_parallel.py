"""Two processes that train together: the same updates as one process alone, the same gates, one set of files."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import specialized_heads
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.parallel import DistributedContext, distributed

TRAINING = {
    "updates": 8,
    "batch_tokens": 100,
    "micro_batch_tokens": 60,  # an even number of micro-batches per update: the two shares are those of one process
    "schedule": "linear",
    "learning_rate": 0.01,
    "warmup": 3,
    "log_every": 2,
    "evaluate_every": 4,
}
PRUNING = {
    "seed": 1,
    "scope": "all",
    "penalty": None,
    "heads": 5,
    "penalty_warmup": 0,
    "dropout": 0.1,
    "training": TRAINING,
    "gate_learning_rate": 0.3,
    "gate_init": 0.5,
    "device": "cpu",
}


def run(files: dict[str, Path], *, processes: int, optimizer: str) -> None:
    arguments = [argument for name, path in files.items() for argument in (f"--{name}", str(path))]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    settings = PRUNING | {"training": TRAINING | {"optimizer": optimizer}}
    stage = ["-m", "specialized_heads.pruning.prune", "--settings", json.dumps(settings)]
    path = str(Path(specialized_heads.__file__).parents[1])
    command = [sys.executable, *(launcher if processes > 1 else []), *stage, *arguments]
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_two_processes_prune_as_one(
    token_file: Callable[..., Path], sentences, tiny_model: Callable[..., Transformer], tmp_path: Path, optimizer: str
) -> None:
    save(tiny_model(), tmp_path / "baseline.safetensors", training={})
    inputs = {
        "baseline": tmp_path / "baseline.safetensors",
        "train": token_file("train", *sentences(80)),
        "dev": token_file("dev", *sentences(10, seed=2)),
    }
    results = {}
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        outputs = {
            "output": folder / "model.safetensors",
            "gates": folder / "gates.json",
            "records": folder / "log.jsonl",
            "soft": folder / "soft.safetensors",
        }
        run({**inputs, **outputs, "state": folder / "state"}, processes=processes, optimizer=optimizer)
        records = [json.loads(line) for line in outputs["records"].read_text().splitlines()]
        gates = json.loads(outputs["gates"].read_text())
        assert gates["kept"] == 5
        results[processes] = load_file(outputs["output"]), gates["rows"], records
        assert sorted(path.name for path in folder.iterdir()) == [
            "gates.json",
            "log.jsonl",
            "model.json",
            "model.safetensors",
            "soft.json",
            "soft.safetensors",
        ]

    (alone, gates, records), (together, shared_gates, shared_records) = results[1], results[2]
    assert [row["log_alpha"] for row in gates] == pytest.approx([row["log_alpha"] for row in shared_gates], abs=1e-5)
    assert alone.keys() == together.keys()
    for name, weight in alone.items():
        assert torch.allclose(weight, together[name], atol=1e-5), name
    assert [r["tokens"] for r in records] == [r["tokens"] for r in shared_records]
    assert [r["loss"] for r in records] == pytest.approx([r["loss"] for r in shared_records], rel=1e-5)


def test_a_process_by_itself_needs_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with distributed("cpu") as (context, device):
        assert (context, device) == (DistributedContext(rank=0, size=1), torch.device("cpu"))
        sum_ = torch.ones(3)
        context.all_reduce(sum_)
        assert sum_.tolist() == [1, 1, 1]
