"""The training stage: its files, its determinism, a kill, training from scratch with another
model's heads; and its state."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hostile import PAYLOAD, Payload
from safetensors.torch import load_file
from small import TRAINING, killed_at, outputs

from specialized_heads.model.checkpoint import load, save
from specialized_heads.stage import UserError, file_hash
from specialized_heads.training import state, train

SETTINGS = {
    "seed": 1,
    "vocabulary": {"source": 20, "target": 21},
    "model": {
        "layers": 2,
        "heads": 2,
        "width": 8,
        "head_width": 6,
        "feed_forward": 12,
        "dropout": 0.1,
    },
    "training": TRAINING | {"learning_rate": 0.01},
    "device": "cpu",
}


def contents(files: dict[str, Path]) -> list[bytes]:
    return [
        path.read_bytes()
        for path in (files["output"], files["output"].with_suffix(".json"), files["records"])
    ]


def test_two_runs_give_the_same_bytes_though_one_was_killed(call, tokens, tmp_path) -> None:
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
    data_hash = f"{file_hash(tokens['train'])} {file_hash(tokens['dev'])}"
    expected = SETTINGS | {"matmul_precision": "fp32", "data_hash": data_hash}
    assert json.loads(contents(first)[1])["training"] == expected


@pytest.mark.parametrize("evenly", [False, True])
def test_from_scratch_with_another_model_s_heads_or_as_many(
    call, tokens, tmp_path, tiny_model, evenly: bool
) -> None:
    """As many are spread evenly."""
    pruned = tiny_model(head_width=6)
    pruned.keep_heads({"encoder": [[], [1]], "decoder": [[0, 1], [1]], "cross": [[0, 1], []]})
    save(pruned, tmp_path / "like.safetensors", training={})
    files = {**tokens, **outputs(tmp_path / "scratch")}
    call(train, settings=SETTINGS | {"evenly": evenly}, like=tmp_path / "like.safetensors", **files)
    scratch = load(files["output"])
    spread = replace(
        pruned.architecture, encoder=((0,), ()), decoder=((0, 1), (0,)), cross=((0,), (0,))
    )
    assert scratch.architecture == (spread if evenly else pruned.architecture)
    assert not torch.equal(scratch.output_embedding, pruned.output_embedding)


def test_checkpoints_are_the_models_of_runs_that_stopped_there(call, tokens, tmp_path) -> None:
    def trained(
        name: str, moments: tuple[int, ...] = (), **training: object
    ) -> dict[str, torch.Tensor]:
        settings = SETTINGS | {
            "training": SETTINGS["training"] | {"schedule": "inverse_sqrt"} | training
        }
        files = {
            **tokens,
            **outputs(tmp_path / name),
            "checkpoints": tmp_path / name / "checkpoints.safetensors",
        }
        call(train, settings=settings | {"moments": moments}, **files)
        return load_file(tmp_path / name / "model.safetensors")

    with killed_at(20):
        trained("whole", moments=(6, 12), updates=12)
    assert (tmp_path / "whole/state/update6.safetensors").exists()
    trained("whole", moments=(6, 12), updates=12)
    whole = {"baseline": tmp_path / "whole/model.safetensors"}
    whole["checkpoints"] = tmp_path / "whole/checkpoints.safetensors"
    for update in (6, 12):
        stopped = trained(f"{update}", updates=update)
        call(
            train.checkpoint,
            settings={"update": update},
            **whole,
            output=tmp_path / f"at{update}.safetensors",
        )
        weights = load_file(tmp_path / f"at{update}.safetensors")
        assert weights.keys() == stopped.keys()
        for name, weight in stopped.items():
            assert torch.equal(weight, weights[name]), (update, name)
        description = json.loads((tmp_path / f"at{update}.json").read_text())
        assert description["training"]["moment"] == update
        load(tmp_path / f"at{update}.safetensors")
    assert load_file(tmp_path / "6/checkpoints.safetensors") == {}  # asked for none


# The folder of a state: what is taken up, and whose it is.

RUN = {"fingerprint": "this one", "update": 7, "weights": {"a": torch.arange(50.0)}, "loss": 0.25}
RUN |= {"mean": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state of update 7, and the weights of the moment 5."""
    state.claim(tmp_path / "seed1.state")
    state.write_state(tmp_path / "seed1.state", RUN)
    state.write_checkpoint(tmp_path / "seed1.state", 5, {"a": torch.ones(20)})
    return tmp_path / "seed1.state"


def taken_up(folder: Path, *, checkpoints: tuple[int, ...] = (5, 9)) -> dict | None:
    return state.read_state(folder, fingerprint="this one", checkpoints=checkpoints)


@pytest.mark.parametrize("name", ["state.pt", "update5.safetensors"])
def test_a_damaged_state_or_moment_is_not_taken_up(folder: Path, name: str) -> None:
    path = folder / name
    whole = path.read_bytes()
    weights = torch.arange(50.0) if name == "state.pt" else torch.ones(20)
    values = whole.index(weights.numpy().tobytes())
    path.write_bytes(whole[: values + 6] + bytes([whole[values + 6] ^ 1]) + whole[values + 7 :])
    assert taken_up(folder) is None
    path.write_bytes(whole[:-30])
    assert taken_up(folder) is None
    path.write_bytes(whole)
    assert taken_up(folder) is not None


@pytest.mark.parametrize(
    "content", [Payload(), {"x": Payload()}, [1, 2], {"fingerprint": "this one"}]
)
@pytest.mark.parametrize(
    "write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))]
)
def test_a_state_of_something_else_is_never_run(
    folder: Path, monkeypatch, caplog, content: object, write
) -> None:
    caplog.set_level("INFO")
    monkeypatch.chdir(folder)
    write(content, folder / "state.pt")
    assert taken_up(folder) is None
    assert "state.pt cannot be read" in caplog.text
    assert not (folder / PAYLOAD).exists()


def test_a_state_that_the_disk_refuses_is_kept(folder: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(torch, "load", refuse)
    with pytest.raises(UserError, match=r"state\.pt: cannot be read now \(stale file handle\)"):
        taken_up(folder)
    assert (folder / "state.pt").exists()


def test_a_state_of_other_settings_is_called_so_whatever_else_is_missing(folder, caplog) -> None:
    caplog.set_level("INFO")
    assert state.read_state(folder, fingerprint="that one", checkpoints=(6,)) is None
    assert "belongs to other settings" in caplog.text


def test_a_moment_that_has_passed_must_be_there_and_a_later_one_need_not(folder: Path) -> None:
    assert taken_up(folder, checkpoints=(8,)) is not None
    assert taken_up(folder, checkpoints=(6,)) is None


def test_of_two_processes_the_first_one_stops(folder: Path) -> None:
    state.check(folder)
    claim = (
        "import sys, pathlib; from specialized_heads.training import state; "
        "state.claim(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", claim, folder], check=True)
    with pytest.raises(UserError, match=r"seed1\.state: another process has taken over"):
        state.write_checkpoint(folder, 6, {"a": torch.zeros(20)})
    assert not (folder / "update6.safetensors").exists()
    with pytest.raises(UserError, match=r"seed1\.state: another process has taken over"):
        state.check(folder)
    state.claim(folder)
    state.check(folder)
    # Nor is a folder used again that another process has removed.
    state.remove(folder)
    state.remove(folder)  # nothing to remove is no mistake
    with pytest.raises(UserError, match="or has finished; this one stops"):
        state.check(folder)
