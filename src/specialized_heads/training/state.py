"""The resumable state of a training run: a folder beside the model, verified when read, with one
owner at a time.

`state.pt` holds the run after some update; `update{n}.safetensors` holds the weights of a
checkpoint; `owner` identifies the training process. A process started while another is still
training (because its Snakemake was killed, its node was given up, or a second Snakemake runs) takes
over: it resumes from the last state, and the other process stops when it next checks the folder.
This needs no file locks, which some network file systems lack.
"""

import os
import shutil
import socket
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specialized_heads.model.checkpoint import read_tensors, write_tensors
from specialized_heads.stage import UserError, atomic, log, write_file


def claim(folder: Path) -> None:
    """Make this process the owner of the folder."""
    write_file(folder / "owner", _this_process())


def check(folder: Path) -> None:
    """Raise a `UserError` if another process has taken over the folder, and may have finished."""
    path = folder / "owner"
    if not path.exists() or path.read_text(encoding="utf-8") != _this_process():
        raise UserError(
            f"{folder}: another process has taken over, or has finished; this one stops"
        )


def finish(folder: Path) -> None:
    """Remove the folder, if any, once the results have been written."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def finishing(folder: Path) -> Iterator[None]:
    """Write the results in this context: the folder must be this process's, and is removed at the
    end."""
    check(folder)
    yield
    finish(folder)


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write the state of a run (tensors, numbers and text in lists and dictionaries); the folder
    must be this process's."""
    check(folder)
    try:
        with atomic(folder / "state.pt") as temporary, open(temporary, "wb") as stream:
            torch.save(state, stream)
    except FileNotFoundError:  # another process has removed the folder meanwhile
        check(folder)
        raise


def read_state(
    folder: Path, *, fingerprint: str, checkpoints: Iterable[int]
) -> dict[str, Any] | None:
    """Read the state of the run with this fingerprint, on the CPU; None if there is none to resume
    from.

    Of the checkpoints after these updates, those up to the state's own update must be readable. If
    the disk or the memory fails, the file may be sound: a `UserError` says so.
    """
    path = folder / "state.pt"
    try:
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:  # torch does not look at the checksums
                raise ValueError(f"{damaged} is damaged")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["fingerprint"] != fingerprint:
            log.info(
                "the saved state %s belongs to other settings, data or code; starting over", path
            )
            return None
        for update in checkpoints:
            if update <= state["update"]:
                read_checkpoint(folder, update)
    except FileNotFoundError:
        return None
    except (OSError, MemoryError) as error:
        raise UserError(
            f"{path}: cannot be read now ({error}); run again, or delete {folder} to start over"
        ) from error
    # torch raises many types for a damaged file; starting over is always safe
    except Exception as error:
        log.info(
            "the saved state %s cannot be read (%s); starting over", path, str(error).split("\n")[0]
        )
        return None
    return state


def write_checkpoint(folder: Path, update: int, weights: dict[str, Tensor]) -> None:
    """Write the weights and gates of this update. The folder must be this process's."""
    check(folder)
    write_tensors(_checkpoint(folder, update), weights)


def read_checkpoint(folder: Path, update: int) -> dict[str, Tensor]:
    """The weights and gates, by name, after one of the updates `Plan.checkpoints`."""
    return read_tensors(_checkpoint(folder, update))


def _checkpoint(folder: Path, update: int) -> Path:
    return folder / f"update{update}.safetensors"


@cache
def _this_process() -> str:
    """A name unique to this process, on any machine and at any time."""
    return f"process {os.getpid()} on {socket.gethostname()}, {uuid.uuid4().hex}"
