"""What training needs to go on after a kill: a folder beside the model, checked when it is read, and never shared.

`state.pt` holds the run as it was after some update, with a hash of it; `update{n}.safetensors` the weights at a moment that
is asked for; `owner` says which process trains. A process that is started while another is still at it (its Snakemake was
killed, or its node given up; or a second Snakemake runs) takes over: it goes on at the last state, and the other one stops
as soon as it looks at the folder again. No lock is needed, and so no file system that has them.
"""

import hashlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specialized_heads.model.checkpoint import read_tensors, write_tensors
from specialized_heads.stage import UserError, atomic, log


def claim(folder: Path) -> None:
    """Make this process the owner of the folder, whoever it was before."""
    with atomic(folder / "owner") as temporary:
        temporary.write_text(_this_process(), encoding="utf-8")


def check(folder: Path) -> None:
    """Nothing, if this process is still the owner.

    Raises:
        UserError: another one is, or was and has finished.
    """
    path = folder / "owner"
    if not path.exists() or path.read_text(encoding="utf-8") != _this_process():
        raise UserError(f"{folder}: another process has taken over, or has finished; this one stops")


def clear(folder: Path) -> None:
    """Throw away what is in the folder; this process becomes its owner."""
    shutil.rmtree(folder, ignore_errors=True)
    claim(folder)


def finish(folder: Path) -> None:
    """Remove the folder, after the results have been written; none is no mistake."""
    shutil.rmtree(folder, ignore_errors=True)


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write the state of a run: tensors, numbers, text, in lists and dictionaries.

    Raises:
        UserError: another process owns the folder.
    """
    check(folder)
    try:
        with atomic(folder / "state.pt") as temporary, open(temporary, "wb") as stream:
            torch.save({**state, "sha256": _hash(state)}, stream)
    except FileNotFoundError:  # the other one has removed the folder meanwhile
        check(folder)
        raise


def read_state(
    folder: Path, *, fingerprint: str, moments: Iterable[int], device: torch.device
) -> dict[str, Any] | None:
    """The state of the very run that `fingerprint` is of, or None where there is none that can be gone on with.

    Args:
        folder: of the state.
        fingerprint: what the state must hold under this name.
        moments: updates whose weights must be there if the state is of a later one.
        device: where the tensors go.
    """
    path = folder / "state.pt"
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        if state.pop("sha256") != _hash(state):  # torch does not notice damage by itself
            raise ValueError("damaged")
        for update in moments:
            if update <= state["update"]:
                read_moment(folder, update)
    except Exception as error:  # torch raises many types for a damaged file; starting over is always right
        log.info("the saved state %s cannot be read (%s); starting over", path, str(error).split("\n")[0])
        return None
    if state["fingerprint"] != fingerprint:
        log.info("the saved state %s is of other settings, data or code; starting over", path)
        return None
    return state


def write_moment(folder: Path, update: int, weights: dict[str, Tensor]) -> None:
    """Keep the weights and gates of this update.

    Raises:
        UserError: another process owns the folder.
    """
    check(folder)
    write_tensors(folder / f"update{update}.safetensors", weights)


def read_moment(folder: Path, update: int) -> dict[str, Tensor]:
    """The weights and gates at one of `Plan.moments`, by name: those of this very update, whatever is averaged later."""
    return read_tensors(folder / f"update{update}.safetensors")


@cache
def _this_process() -> str:
    """A name that no other process has, now or later, here or elsewhere."""
    return f"process {os.getpid()} on {socket.gethostname()}, {uuid.uuid4().hex}"


def _hash(value: Any) -> str:
    """SHA-256 of tensors, numbers and text, however deep in lists and dictionaries."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, Tensor):
            digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        elif isinstance(value, dict):
            for key, own in value.items():
                digest.update(repr(key).encode())
                add(own)
        elif isinstance(value, list | tuple):
            digest.update(f"{len(value)} items".encode())
            for own in value:
                add(own)
        else:
            digest.update(repr(value).encode())

    add(value)
    return digest.hexdigest()
