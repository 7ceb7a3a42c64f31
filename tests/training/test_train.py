"""The training stage: its files, its determinism, a real kill, and training from scratch with another model's heads."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from small import TRAINING, outputs

import specialized_heads
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import load, save
from specialized_heads.stage import UserError, file_hash
from specialized_heads.training import checkpoint, train
from specialized_heads.training.train import spread_evenly

SETTINGS = {
    "seed": 1,
    "vocabulary": {"source": 20, "target": 21},
    "model": {"layers": 2, "heads": 2, "width": 8, "feed_forward": 12, "dropout": 0.1},
    "training": TRAINING | {"learning_rate": 0.01},
    "device": "cpu",
}
# Runs the stage in children of one process that has done the imports: once undisturbed, then killed at random moments and
# run again. With a state after every update, and slow enough to be hit.
KILLER = """
import os, pathlib, random, shutil, signal, sys, time
from specialized_heads import stage
from specialized_heads.training import loop, objective, train
loop.SAVE_SECONDS, make_batch = 0.0, objective.make_batch
objective.make_batch = lambda *args: time.sleep(0.01) or make_batch(*args)
folder, kills = pathlib.Path(sys.argv.pop(1)), int(sys.argv.pop(1))

def start(name):
    (folder / name).mkdir(exist_ok=True)
    if child := os.fork():
        return child
    out = folder / name
    sys.argv += ["--output", f"{out}/model.safetensors", "--records", f"{out}/log.jsonl", "--state", f"{out}/state"]
    sys.argv += ["--checkpoints", f"{out}/checkpoints.safetensors"]
    stage.run(train.main)
    os._exit(0)

assert os.waitpid(start("whole"), 0)[1] == 0
random.seed(7)
for number in range(kills):
    child, log, lines = start(str(number)), folder / str(number) / "log.jsonl", random.randrange(1, 30)
    while not log.exists() or log.read_text().count(chr(10)) < lines:
        time.sleep(0.002)
    time.sleep(random.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    print(os.waitpid(child, 0)[1], *sorted(p.name for p in (folder / str(number)).iterdir()))
    for path in ("model.safetensors", "model.json", "log.jsonl", "checkpoints.safetensors"):  # as Snakemake does
        (folder / str(number) / path).unlink(missing_ok=True)
    assert os.waitpid(start(str(number)), 0)[1] == 0
"""


@pytest.fixture
def tokens(token_file, sentences) -> dict[str, Path]:
    return {"train": token_file("train", *sentences(60)), "dev": token_file("dev", *sentences(10, seed=2))}


def contents(files: dict[str, Path]) -> list[bytes]:
    return [path.read_bytes() for path in (files["output"], files["output"].with_suffix(".json"), files["records"])]


def test_two_runs_give_the_same_bytes(call, tokens: dict[str, Path], tmp_path: Path) -> None:
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
    assert json.loads(contents(first)[1])["training"] == SETTINGS | {"matmul_precision": "fp32", "data_hash": data_hash}


def test_killed_at_random_moments_and_started_again_gives_the_same_bytes(tokens: dict[str, Path], tmp_path) -> None:
    package = str(Path(specialized_heads.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": package}
    arguments = [argument for name, path in tokens.items() for argument in (f"--{name}", str(path))]
    settings = json.dumps(SETTINGS | {"moments": [3, 17, 30]})
    command = [sys.executable, "-c", KILLER, tmp_path, "6", "--settings", settings, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in killed] == [str(int(signal.SIGKILL))] * 6
    assert not any("model.safetensors" in line for line in killed)
    assert len(set(re.findall(r"resuming at update (\d+)", done.stderr))) >= 4

    def written(folder: Path) -> list[bytes]:
        return [*contents(outputs(folder)), (folder / "checkpoints.safetensors").read_bytes()]

    names = ("checkpoints", "model")
    kept, weights = (load_file(tmp_path / f"whole/{name}.safetensors") for name in names)
    assert len(kept) == 3 * len(weights)
    for number in range(6):
        assert written(tmp_path / str(number)) == written(tmp_path / "whole"), number
        assert not (tmp_path / str(number) / "state").exists()


@pytest.mark.parametrize("evenly", [False, True])
def test_from_scratch_with_the_heads_of_another_model_or_as_many_spread_evenly(
    call, tokens: dict[str, Path], tmp_path: Path, tiny_model, evenly: bool
) -> None:
    pruned = tiny_model()
    pruned.keep_heads({"encoder": [[], [1]], "decoder": [[0, 1], [1]], "cross": [[0, 1], []]})
    save(pruned, tmp_path / "like.safetensors", training={})
    files = {**tokens, **outputs(tmp_path / "scratch")}
    call(train, settings=SETTINGS | {"evenly": evenly}, like=tmp_path / "like.safetensors", **files)
    scratch = load(files["output"])
    spread = replace(pruned.architecture, encoder=((0,), ()), decoder=((0, 1), (0,)), cross=((0,), (0,)))
    assert scratch.architecture == (spread if evenly else pruned.architecture)
    assert not torch.equal(scratch.output_embedding, pruned.output_embedding)


@pytest.mark.parametrize("count", [0, 1, 7, 9, 17, 18])
def test_heads_differ_by_one_from_layer_to_layer(count: int) -> None:
    full = Architecture.full(source_vocabulary=5, target_vocabulary=5, layers=3, heads=6, width=12, feed_forward=4)
    last = tuple(tuple(range(min(6, max(0, count - 6 * layer)))) for layer in range(3))  # crowded into the first layers
    spread = spread_evenly(replace(full, cross=last))
    layers = [len(layer) for layer in spread.cross]
    assert sum(layers) == count and layers == sorted(layers, reverse=True)
    assert max(layers) - min(layers) <= 1
    assert spread.encoder == full.encoder


def test_checkpoints_are_the_models_of_runs_that_stopped_there(call, tokens: dict[str, Path], tmp_path: Path) -> None:
    def trained(name: str, moments: tuple[int, ...] = (), **training: object) -> dict[str, torch.Tensor]:
        settings = SETTINGS | {"training": SETTINGS["training"] | {"schedule": "inverse_sqrt"} | training}
        files = {**tokens, **outputs(tmp_path / name), "checkpoints": tmp_path / name / "checkpoints.safetensors"}
        call(train, settings=settings | {"moments": moments}, **files)
        return load_file(tmp_path / name / "model.safetensors")

    trained("whole", moments=(6, 12), updates=12)
    whole = {"baseline": tmp_path / "whole/model.safetensors"}
    whole["checkpoints"] = tmp_path / "whole/checkpoints.safetensors"
    for update in (6, 12):
        stopped = trained(f"{update}", updates=update)
        call(checkpoint, settings={"update": update}, **whole, output=tmp_path / f"at{update}.safetensors")
        weights = load_file(tmp_path / f"at{update}.safetensors")
        assert weights.keys() == stopped.keys()
        for name, weight in stopped.items():
            assert torch.equal(weight, weights[name]), (update, name)
        description = json.loads((tmp_path / f"at{update}.json").read_text())
        assert description["training"]["moment"] == update
        load(tmp_path / f"at{update}.safetensors")
    assert load_file(tmp_path / "6/checkpoints.safetensors") == {}  # asked for none
    with pytest.raises(UserError, match="no weights of update 7; add it to ablation.moments"):
        call(checkpoint, settings={"update": 7}, **whole, output=tmp_path / "at7.safetensors")


def test_mistakes_are_named(call, tokens: dict[str, Path], tmp_path: Path) -> None:
    files = tokens | outputs(tmp_path / "x")
    with pytest.raises(ValidationError, match="seeds"):
        call(train, settings=SETTINGS | {"seeds": 1}, **files)
    with pytest.raises(UserError, match=r"none\.safetensors: no such file"):
        call(train, settings=SETTINGS, **files | {"train": tmp_path / "none.safetensors"})
