"""The folder of a training's state: what is taken up, and whose it is."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hostile import PAYLOAD, Payload

from specialized_heads.stage import UserError
from specialized_heads.training import state

RUN = {"fingerprint": "this one", "update": 7, "weights": {"a": torch.arange(50.0)}, "loss": 0.25, "mean": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state of update 7, and the weights of the moment 5."""
    state.claim(tmp_path / "seed1.state")
    state.write_state(tmp_path / "seed1.state", RUN)
    state.write_checkpoint(tmp_path / "seed1.state", 5, {"a": torch.ones(20)})
    return tmp_path / "seed1.state"


def taken_up(folder: Path, *, checkpoints: tuple[int, ...] = (5, 9)) -> dict | None:
    return state.read_state(folder, fingerprint="this one", checkpoints=checkpoints, device=torch.device("cpu"))


def test_what_is_written_is_taken_up(folder: Path) -> None:
    found = taken_up(folder)
    assert torch.equal(found.pop("weights")["a"], RUN["weights"]["a"])
    assert len(found.pop("sha256")) == 64
    assert found == {name: value for name, value in RUN.items() if name != "weights"}
    assert torch.equal(state.read_checkpoint(folder, 5)["a"], torch.ones(20))


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


@pytest.mark.parametrize("content", [Payload(), {"x": Payload()}, [1, 2], {"fingerprint": "x"}])
@pytest.mark.parametrize("write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
def test_a_state_of_something_else_is_never_run(folder: Path, monkeypatch, caplog, content: object, write) -> None:
    caplog.set_level("INFO")
    monkeypatch.chdir(folder)
    write(content, folder / "state.pt")
    assert taken_up(folder) is None
    assert "state.pt cannot be read" in caplog.text
    assert not (folder / PAYLOAD).exists()


def test_a_moment_that_has_passed_must_be_there_and_a_later_one_need_not(folder: Path) -> None:
    assert taken_up(folder, checkpoints=(8,)) is not None
    assert taken_up(folder, checkpoints=(6,)) is None


def test_of_two_processes_the_first_one_stops(folder: Path) -> None:
    state.check(folder)
    claim = "import sys, pathlib; from specialized_heads.training import state; state.claim(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", claim, folder], check=True)
    with pytest.raises(UserError, match=r"seed1\.state: another process has taken over"):
        state.write_checkpoint(folder, 6, {"a": torch.zeros(20)})
    assert not (folder / "update6.safetensors").exists()
    with pytest.raises(UserError, match=r"seed1\.state: another process has taken over"):
        state.check(folder)
    state.claim(folder)
    state.check(folder)


def test_a_folder_that_another_process_has_removed_is_not_used_again(folder: Path) -> None:
    state.finish(folder)
    state.finish(folder)  # nothing to remove is no mistake
    with pytest.raises(UserError, match="or has finished; this one stops"):
        state.check(folder)
