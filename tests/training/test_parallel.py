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
from small import PRUNING, TRAINING

import specialized_heads
from specialized_heads.model.checkpoint import save
from specialized_heads.pruning import prune
from specialized_heads.stage import read_json

SETTINGS = PRUNING | {
    "scope": "all",
    "lam": None,
    "target_heads": 5,
    # Muon trains the matrices, Adam the rest. An even number of micro-batches: the two shares are those of one process.
    "training": TRAINING | {"updates": 8, "batch_tokens": 100, "evaluate_every": 4, "optimizer": "muon"},
}


def prune_in_two_processes(files: dict[str, Path]) -> None:
    arguments = [argument for name, path in files.items() for argument in (f"--{name}", str(path))]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    stage = ["-m", "specialized_heads.pruning.prune", "--settings", json.dumps(SETTINGS)]
    path = str(Path(specialized_heads.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, *stage, *arguments]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_two_processes_prune_as_one(call, token_file, sentences, tiny_model, tmp_path: Path) -> None:
    save(tiny_model(), tmp_path / "baseline.safetensors", training={})
    inputs = {
        "baseline": tmp_path / "baseline.safetensors",
        "train": token_file("train", *sentences(80)),
        "dev": token_file("dev", *sentences(10, seed=2)),
    }

    def results(folder: Path, run: Callable[[dict[str, Path]], None]) -> tuple:
        folder.mkdir()
        names = {"output": "model.safetensors", "records": "log.jsonl", "gates": "gates.json"}
        outputs = {name: folder / file for name, file in names.items()}
        run({**inputs, **outputs, "state": folder / "state"})
        assert {path.name for path in folder.iterdir()} == {*names.values(), "model.json"}
        records = [json.loads(line) for line in outputs["records"].read_text().splitlines()]
        return load_file(outputs["output"]), read_json(outputs["gates"]), records

    alone, gates, records = results(tmp_path / "1", lambda files: call(prune, settings=SETTINGS, **files))
    together, shared_gates, shared_records = results(tmp_path / "2", prune_in_two_processes)

    assert gates["kept"] == shared_gates["kept"] == 5
    for own, other in zip(gates["rows"], shared_gates["rows"], strict=True):
        assert own["log_alpha"] == pytest.approx(other["log_alpha"], abs=1e-5)
    assert alone.keys() == together.keys()
    for name, weight in alone.items():
        assert torch.allclose(weight, together[name], atol=1e-5), name
    assert [r["tokens"] for r in records] == [r["tokens"] for r in shared_records]
    assert [r["loss"] for r in records] == pytest.approx([r["loss"] for r in shared_records], rel=1e-5)
