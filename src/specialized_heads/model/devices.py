"""Which device a stage computes on, in which precision, and that jobs side by side on a workstation do not share a GPU.

Snakemake counts GPUs (`resources: gpu=2`) but does not say which one a job has. So a stage locks the first free one that it
sees, by a file named after the GPU, and waits where none is free. The kernel drops the lock when the process ends, however it
ends. In a slurm job the visible GPUs are the job's own, and nothing is locked.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch

from specialized_heads.stage import UserError, log

POLL_SECONDS = 1.0
PROCESSOR = Path("/proc/cpuinfo")
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}  # what Linux calls instructions for products of bf16, on x86 and ARM


@cache
def choose_device(name: str) -> torch.device:
    """The device that `auto`, `cpu` or `cuda` stands for on this machine; a GPU is this process' own until it ends.

    Raises:
        UserError: `cuda` was asked for, and there is no GPU.
    """
    if not use_gpu(name):
        return torch.device("cpu")
    [index] = take_gpus(1)
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def use_gpu(name: str) -> bool:
    """Whether `auto`, `cpu` or `cuda` stands for a GPU on this machine.

    Raises:
        UserError: `cuda` was asked for, and there is no GPU.
    """
    available = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UserError("device: cuda was asked for, but torch sees no GPU; set device: cpu or auto")
    return available


def products(precision: str, device: torch.device) -> str:
    """The precision of matrix products, fp32 or bf16, on a device that is asked for one of these.

    Without instructions for it bf16 is no help: a processor takes up to fifty times as long as for float32, which takes its
    place then.
    """
    return "fp32" if precision == "bf16" and not multiplies_bf16(device.type) else precision


@cache
def multiplies_bf16(device: str) -> bool:
    """Whether a device of this type, `cpu` or `cuda`, has instructions for products of bf16."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    lines = PROCESSOR.read_text(encoding="utf-8").splitlines() if PROCESSOR.is_file() else []
    named = (line.partition(":") for line in lines)
    return any(key.strip() in ("flags", "Features") and BF16 & set(value.split()) for key, _, value in named)


def take_gpus(number: int) -> list[int]:
    """Indices of GPUs that are this process' own until it ends.

    Raises:
        UserError: there are fewer.
    """
    seen = torch.cuda.device_count()
    if number > seen:
        raise UserError(f"the job has {number} processes with a GPU each, but torch sees {seen}; give it gpu={seen}")
    if number == seen and "SLURM_JOB_ID" in os.environ:  # the job's own; with more, others may run in its allocation
        return list(range(number))
    # An index stands for different devices as CUDA_VISIBLE_DEVICES varies, the identifier does not.
    names = [str(torch.cuda.get_device_properties(index).uuid) for index in range(seen)]
    return lock(names, number, folder=Path(tempfile.gettempdir()))


def lock(names: Sequence[str], number: int, *, folder: Path) -> list[int]:
    """Lock so many of the named devices, all of them at once; wait until there are as many free.

    Args:
        names: of all devices.
        number: how many are wanted.
        folder: where the locks are, the same for all processes of the machine.

    Returns:
        the devices' positions in `names`, ascending.
    """
    told = False
    while True:
        held: dict[int, int] = {}
        for index, name in enumerate(names):
            descriptor = _try(folder / f"specialized_heads-{name}.lock")
            if descriptor is not None:
                held[index] = descriptor
            if len(held) == number:
                return list(held)  # the descriptors stay open, and with them the locks
        # Two jobs that each kept a part of what they need would wait for each other for ever.
        for descriptor in held.values():
            os.close(descriptor)
        if not told:
            what = f"waiting for {number} of {len(names)} GPUs, which other jobs hold (locks in {folder})"
            log.info("%s; to compute on the CPU, set device: cpu", what)
            told = True
        time.sleep(POLL_SECONDS)


def _try(path: Path) -> int | None:
    """An open file that holds the lock at `path`, or None where another process holds it."""
    try:
        # Where another user made the file, it can be read but, in a shared folder, not be opened for creation.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return _try(path)
        os.fchmod(descriptor, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
