"""The training stage: its files, its determinism, a real kill, and training from scratch with another model's heads."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

import specialized_heads
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, file_hash
from specialized_heads.training import train

SETTINGS = {
    "seed": 1,
    "vocabulary": {"source": 20, "target": 21},
    "model": {"layers": 2, "heads": 2, "width": 8, "feed_forward": 12, "dropout": 0.1},
    "training": {
        "updates": 30,
        "batch_tokens": 60,
        "micro_batch_tokens": 60,
        "schedule": "linear",
        "learning_rate": 0.01,
        "warmup": 3,
        "log_every": 1,
        "evaluate_every": 10,
    },
    "device": "cpu",
}
# The stage with a state after every update, and slow enough to be hit.
SLOW = """
import time
from specialized_heads import stage
from specialized_heads.training import loop, train
loop.SAVE_SECONDS, make_batch = 0.0, loop.make_batch
loop.make_batch = lambda *args: time.sleep(0.1) or make_batch(*args)
stage.run(train.main)
"""


@pytest.fixture
def tokens(token_file: Callable[..., Path], sentences) -> dict[str, Path]:
    return {"train": token_file("train", *sentences(60)), "dev": token_file("dev", *sentences(10, seed=2))}


def outputs(folder: Path) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    return {"output": folder / "model.safetensors", "log": folder / "log.jsonl", "state": folder / "state"}


def contents(files: dict[str, Path]) -> list[bytes]:
    return [path.read_bytes() for path in (files["output"], files["output"].with_suffix(".json"), files["log"])]


def test_two_runs_give_the_same_bytes(call: Callable[..., None], tokens: dict[str, Path], tmp_path: Path) -> None:
    first, second, third = (outputs(tmp_path / name) for name in ("1", "2", "3"))
    call(train, settings=SETTINGS, **tokens, **first)
    torch.manual_seed(77)
    call(train, settings=SETTINGS, **tokens, **second)
    call(train, settings=SETTINGS | {"seed": 2}, **tokens, **third)
    assert contents(first) == contents(second)
    assert contents(first)[0] != contents(third)[0]
    assert contents(first)[2] != contents(third)[2]
    assert not first["state"].exists()
    data_hash = f"{file_hash(tokens['train'])} {file_hash(tokens['dev'])}"
    assert json.loads(contents(first)[1])["training"] == SETTINGS | {"data_hash": data_hash}


def test_killed_and_started_again_gives_the_same_bytes(
    call: Callable[..., None], tokens: dict[str, Path], tmp_path: Path
) -> None:
    whole, killed = outputs(tmp_path / "whole"), outputs(tmp_path / "killed")
    call(train, settings=SETTINGS, **tokens, **whole)

    package = str(Path(specialized_heads.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": package}
    arguments = ["--settings", json.dumps(SETTINGS)]
    for name, path in (tokens | killed).items():
        arguments += [f"--{name}", str(path)]
    process = subprocess.Popen([sys.executable, "-c", SLOW, *arguments], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if killed["log"].exists() and len(killed["log"].read_text().splitlines()) > 12:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not killed["output"].exists()
    for path in (killed["output"], killed["log"]):  # Snakemake removes the outputs of a job that failed
        path.unlink(missing_ok=True)

    module = [sys.executable, "-m", "specialized_heads.training.train"]
    again = subprocess.run([*module, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert re.search(r"going on at update \d\d", again.stderr)
    assert contents(killed) == contents(whole)
    assert not killed["state"].exists()


def test_from_scratch_with_the_heads_of_another_model(
    call: Callable[..., None], tokens: dict[str, Path], tmp_path: Path, tiny_model: Callable[..., Transformer]
) -> None:
    pruned = tiny_model()
    pruned.keep_heads({"encoder": [[], [1]], "decoder": [[0], [1]], "cross": [[0, 1], [0]]})
    save(pruned, tmp_path / "like.safetensors", training={})
    call(train, settings=SETTINGS, like=tmp_path / "like.safetensors", **tokens, **outputs(tmp_path / "scratch"))
    scratch = load(tmp_path / "scratch/model.safetensors")
    assert scratch.architecture == pruned.architecture
    assert not torch.equal(scratch.softmax_embedding, pruned.softmax_embedding)


def test_mistakes_are_named(call: Callable[..., None], tokens: dict[str, Path], tmp_path: Path) -> None:
    files = tokens | outputs(tmp_path / "x")
    with pytest.raises(ValidationError, match="seeds"):
        call(train, settings=SETTINGS | {"seeds": 1}, **files)
    with pytest.raises(UserError, match=r"none\.safetensors: no such file"):
        call(train, settings=SETTINGS, **files | {"train": tmp_path / "none.safetensors"})
