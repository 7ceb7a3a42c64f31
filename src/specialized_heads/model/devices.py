"""Choose a stage's device and precision, and keep concurrent jobs on one workstation off each
other's GPUs.

Snakemake counts GPUs (`resources: gpu=2`) but does not assign them. A stage therefore locks the
first free GPU, by a file named after it, and waits if none is free. The operating system releases
the lock when the process ends for any reason. The locks of a Slurm job are its own: a job sees no
other's GPUs, but Snakemake may run several stages inside of one.
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
# Flags in PROCESSOR of instructions for bf16 products, on x86 and ARM.
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}
# Limits that oneDNN takes from the environment.
WITHOUT_BF16 = "SSE41 AVX AVX2 AVX2_VNNI AVX2_VNNI_2 AVX512_CORE AVX512_CORE_VNNI".split()


def choose_device(name: str) -> torch.device:
    """Resolve `auto`, `cpu` or `cuda` to a device; this process locks a GPU until it ends."""
    return own_gpu() if use_gpu(name) else torch.device("cpu")


@cache
def own_gpu() -> torch.device:
    """The GPU of this process, the first free one when it is first asked for."""
    [index] = take_gpus(1)
    return prepare_gpu(index)


def prepare_gpu(index: int) -> torch.device:
    """Make this GPU the current one of the process."""
    torch.cuda.set_device(index)
    # From torch 2.11 on, Hopper and Blackwell prefer cuDNN's attention, which plans every new shape
    # anew: tens of milliseconds to a second for each of the thousands of shapes of an epoch. The
    # memory-efficient kernel takes our masks.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda", index)


def use_gpu(name: str) -> bool:
    """Whether this device means a GPU on this machine; `cuda` without one is a `UserError`."""
    if name == "cpu":
        return False
    if torch.cuda.is_available():
        return True
    unusable = idle_gpus()
    if name == "cuda":
        seen = f"this machine has {unusable}; update the driver"
        seen = seen if unusable else "torch sees no GPU"
        raise UserError(f"device: cuda is set, but {seen}; or set device: cpu or auto")
    if unusable:
        _warn_of(unusable)
    return False


def idle_gpus() -> str:
    """The GPUs that the driver counts but CUDA cannot start, as with an old driver; "" for none."""
    count = 0 if torch.cuda.is_available() else torch.cuda.device_count()
    return f"{count} GPU{'s' * (count > 1)} that CUDA cannot start" if count else ""


@cache  # once per process
def _warn_of(unusable: str) -> None:
    said = "computing on the CPU: this machine has %s (is the driver too old for torch %s?)"
    log.warning(said, unusable, torch.__version__)


def matmul_precision(precision: str, device: torch.device) -> str:
    """Precision of matrix products on a device, fp32 or bf16, given the one in the configuration.

    Without hardware instructions, bf16 products on a CPU take up to fifty times as long as fp32, so
    fp32 replaces bf16 there.
    """
    return "fp32" if precision == "bf16" and not multiplies_bf16(device.type) else precision


@cache
def multiplies_bf16(device: str) -> bool:
    """Whether `cpu` or `cuda` has instructions for bf16 products that oneDNN may use."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA", "")
    if limit.upper() in WITHOUT_BF16:
        return False
    lines = PROCESSOR.read_text(encoding="utf-8").splitlines() if PROCESSOR.is_file() else []
    fields = (line.partition(":") for line in lines)
    return any(
        key.strip() in ("flags", "Features") and BF16 & set(value.split())
        for key, _, value in fields
    )


def take_gpus(number: int) -> list[int]:
    """Reserve GPUs until this process ends; their indices, or a `UserError` if there are fewer."""
    visible = torch.cuda.device_count()
    if number > visible:
        raise UserError(
            f"{number} processes need a GPU each, but torch sees {visible}; give the job "
            f"gpu={visible}"
        )
    # CUDA_VISIBLE_DEVICES renumbers the GPUs; their UUIDs stay the same.
    uuids = [str(torch.cuda.get_device_properties(index).uuid) for index in range(visible)]
    names = ["-".join(filter(None, [os.environ.get("SLURM_JOB_ID"), uuid])) for uuid in uuids]
    return lock(names, number, folder=Path(tempfile.gettempdir()))


def lock(names: Sequence[str], number: int, *, folder: Path) -> list[int]:
    """Lock `number` of the named devices at once, waiting until enough are free; returns indices
    into `names`, ascending.

    `folder`: of the lock files, shared by all processes of the machine.
    """
    logged = False
    while True:
        held: dict[int, int] = {}
        for index, name in enumerate(names):
            descriptor = _try(folder / f"specialized_heads-{name}.lock")
            if descriptor is not None:
                held[index] = descriptor
            if len(held) == number:
                return list(held)  # the open descriptors hold the locks
        # Two jobs that each kept some of the devices they need would deadlock.
        for descriptor in held.values():
            os.close(descriptor)
        if not logged:
            said = "waiting for %d of %d GPUs, which other jobs hold (locks in %s)"
            said += "; to compute on the CPU, set device: cpu"
            log.info(said, number, len(names), folder)
            logged = True
        time.sleep(POLL_SECONDS)


def _try(path: Path) -> int | None:
    """Descriptor of an open file that holds the lock, or None if another process holds it."""
    try:
        # A lock file of another user in a shared folder can be read, but not opened with O_CREAT.
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
