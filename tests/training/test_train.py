"""The training stage: its files, its determinism, a kill, and training from scratch with another model's heads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small import TRAINING, killed_at, outputs

from specialized_heads.model.checkpoint import load, save
from specialized_heads.stage import UserError, file_hash
from specialized_heads.training import checkpoint, train

SETTINGS = {
    "seed": 1,
    "vocabulary": {"source": 20, "target": 21},
    "model": {"layers": 2, "heads": 2, "width": 8, "head_width": 6, "feed_forward": 12, "dropout": 0.1},
    "training": TRAINING | {"learning_rate": 0.01},
    "device": "cpu",
}


def contents(files: dict[str, Path]) -> list[bytes]:
    return [path.read_bytes() for path in (files["output"], files["output"].with_suffix(".json"), files["records"])]


def test_two_runs_give_the_same_bytes_though_one_was_killed(call, tokens: dict[str, Path], tmp_path: Path) -> None:
    first, second, third = (outputs(tmp_path / name) for name in ("1", "2", "3"))
    call(train, settings=SETTINGS, **tokens, **first)
    with killed_at(20):
        call(train, settings=SETTINGS, **tokens, **second)
    assert (second["state"] / "state.pt").exists()
    torch.manual_seed(77)
    call(train, settings=SETTINGS, **tokens, **second)
    call(train, settings=SETTINGS | {"seed": 2}, **tokens, **third)
    assert contents(first) == contents(second)
    assert contents(first)[0] != contents(third)[0]
    assert not first["state"].exists() and not second["state"].exists()
    data_hash = f"{file_hash(tokens['train'])} {file_hash(tokens['dev'])}"
    assert json.loads(contents(first)[1])["training"] == SETTINGS | {"matmul_precision": "fp32", "data_hash": data_hash}


@pytest.mark.parametrize("evenly", [False, True])
def test_from_scratch_with_another_model_s_heads_or_as_many(call, tokens, tmp_path, tiny_model, evenly: bool) -> None:
    """As many are spread evenly."""
    pruned = tiny_model(head_width=6)
    pruned.keep_heads({"encoder": [[], [1]], "decoder": [[0, 1], [1]], "cross": [[0, 1], []]})
    save(pruned, tmp_path / "like.safetensors", training={})
    files = {**tokens, **outputs(tmp_path / "scratch")}
    call(train, settings=SETTINGS | {"evenly": evenly}, like=tmp_path / "like.safetensors", **files)
    scratch = load(files["output"])
    spread = replace(pruned.architecture, encoder=((0,), ()), decoder=((0, 1), (0,)), cross=((0,), (0,)))
    assert scratch.architecture == (spread if evenly else pruned.architecture)
    assert not torch.equal(scratch.output_embedding, pruned.output_embedding)


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
