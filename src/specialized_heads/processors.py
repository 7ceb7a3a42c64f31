"""How many processors this process may use."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

SYSTEM = Path("/")  # where /proc and /sys are


def processors() -> int:
    """Processors that this process may use: those that it may run on, or fewer if a control group
    limits its time."""
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        allowed = len(os.sched_getaffinity(0))
    return min([allowed, *map(math.ceil, _quotas())])


def _quotas() -> Iterator[float]:
    """How many processors the control groups of this process, v1 or v2, allow on average."""
    table = SYSTEM / "proc/self/cgroup"
    for line in table.read_text(encoding="utf-8").splitlines() if table.is_file() else ():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Limits of parents hold, too. A container may see its own group as the root, under the path
        # of the host.
        for part in (PurePosixPath(group), *PurePosixPath(group).parents):
            root = SYSTEM / "sys/fs/cgroup" / ("cpu" if controllers else "")
            folder = root / str(part).lstrip("/")
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            with suppress(OSError, ValueError):  # no such file, or "max"
                texts = [(folder / name).read_text("ascii") for name in files]
                quota, period = map(int, " ".join(texts).split())
                if quota > 0:
                    yield quota / period
