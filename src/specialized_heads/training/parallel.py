"""Several processes that train one model, started by `torchrun`: one per GPU, or per group of cores.

Every process holds the whole model and takes its share of each update's micro-batches. Gates and micro-batches are drawn
from seeds that all of them know, gradients are summed over all of them, and so all make the same update.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from specialized_heads.model.devices import choose_device, take_gpus, use_gpu


@dataclass(frozen=True)
class Team:
    """The processes that train together; a process alone is a team of one."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process is the one that writes files."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> None:
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)


@contextmanager
def team(device: str) -> Iterator[tuple[Team, torch.device]]:
    """The team that `torchrun` has started, and this process' device.

    Args:
        device: `auto`, `cpu` or `cuda`, as in the configuration.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team(), choose_device(device)
        return
    gpu = use_gpu(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")
    try:
        chosen = torch.device("cuda", _share(dist.get_rank())) if gpu else torch.device("cpu")
        yield Team(dist.get_rank(), dist.get_world_size()), chosen
    finally:
        dist.destroy_process_group()


def _share(rank: int) -> int:
    """The index of this process' GPU; the first process takes them for all, and `torchrun` ends all if it ends."""
    taken = [take_gpus(dist.get_world_size()) if rank == 0 else None]
    dist.broadcast_object_list(taken, device=torch.device("cpu"))
    torch.cuda.set_device(taken[0][rank])
    return taken[0][rank]
