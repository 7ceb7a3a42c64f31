"""The processes that train one model, and the resumable state of their run.

`torchrun` starts several processes, one per GPU or group of cores. Every process holds the whole
model and takes its share of the micro-batches of each update. All draw gates and micro-batches from
the same seeds and sum their gradients, so all make the same update.

The state is a folder beside the model, verified when read. `state.pt` holds the run after some
update; `update{n}.safetensors` holds the weights of a checkpoint; `owner` identifies the training
process. A process started while another is still training (because its Snakemake was killed, its
node was given up, or a second Snakemake runs) takes over: it resumes from the last state, and the
other process stops when it next checks the folder. This needs no file locks, which some network
file systems lack.

The workflow removes the folder at the end of a run. Until then it also holds the last update,
because Snakemake deletes results that were written while it was not running; they are then made
again from this update.
"""

import os
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from specialized_heads.model.checkpoint import read_tensors, write_tensors
from specialized_heads.model.devices import choose_device, prepare_gpu, take_gpus, use_gpu
from specialized_heads.stage import UserError, atomic, log, report, this_process, write_file


def claim(folder: Path) -> None:
    """Make this process the owner of the folder."""
    write_file(folder / "owner", this_process())


def check(folder: Path) -> None:
    """Raise a `UserError` if another process has taken over the folder, and may have finished.

    A process calls it before it writes to the folder, and before it writes its results.
    """
    path = folder / "owner"
    if not path.exists() or path.read_text(encoding="utf-8") != this_process():
        raise UserError(
            f"{folder}: another process has taken over, or has finished; this one stops"
        )


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


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
    """Read the state of the run with this fingerprint, on the CPU; None to start over.

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
            said = "the saved state %s belongs to other settings, data or code; starting over"
            log.info(said, path)
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
    except Exception as error:  # torch raises many types for a damaged file
        reason = str(error).split("\n")[0]
        log.info("the saved state %s cannot be read (%s); starting over", path, reason)
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


@dataclass(frozen=True)
class DistributedContext:
    """This process among those that train together; by default it is the only one."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> None:
        if self.size > 1:
            dist.all_reduce(tensor)

    def agree(self, value: str) -> bool:
        """Whether this process has the same value as the main one; all must ask."""
        main = [value]
        if self.size > 1:
            dist.broadcast_object_list(main, device=torch.device("cpu"))
        return main[0] == value


@contextmanager
def distributed(device: str, *, state: Path) -> Iterator[tuple[DistributedContext, torch.device]]:
    """Join the processes started by `torchrun`, if any; yield the context and this process's
    `auto`, `cpu` or `cuda` device.

    The folder `state` is claimed before a GPU is waited for. An orphan that holds the GPU then
    stops, instead of finishing and removing the state that this run is about to resume.
    """
    if os.environ.get("RANK", "0") == "0":
        claim(state)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield DistributedContext(), choose_device(device)
        return
    gpu = use_gpu(device)
    # Without it, processes that wait for GPUs to become free would give up after half an hour.
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=timedelta(days=7))
    try:
        chosen = _share(dist.get_rank()) if gpu else torch.device("cpu")
        yield DistributedContext(dist.get_rank(), dist.get_world_size()), chosen
    except BaseException as error:
        # To leave the group would wait for all others, which wait for this process. `torchrun` ends
        # them when this one ends.
        code = report(error)
        sys.stderr.flush()
        os._exit(code)
    dist.destroy_process_group()


def _share(rank: int) -> torch.device:
    """This process's GPU. The first process locks the GPUs of all; if it ends, `torchrun` ends the
    others."""
    taken = [take_gpus(dist.get_world_size()) if rank == 0 else None]
    dist.broadcast_object_list(taken, device=torch.device("cpu"))
    return prepare_gpu(taken[0][rank])
