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

from specialized_heads.model.checkpoint import choose_device


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
    chosen = choose_device(device)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Team(), chosen
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Team(dist.get_rank(), size), chosen
    finally:
        dist.destroy_process_group()
