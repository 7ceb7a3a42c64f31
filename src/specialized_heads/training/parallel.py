"""Data-parallel training in several processes started by `torchrun`, one per GPU or group of cores.

Every process holds the whole model and takes its share of the micro-batches of each update. All
processes draw gates and micro-batches from the same seeds and sum their gradients, so all make the
same update.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from specialized_heads.model.devices import choose_device, prepare_gpu, take_gpus, use_gpu
from specialized_heads.stage import report
from specialized_heads.training.state import claim


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
