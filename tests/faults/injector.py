"""Makes one process of a run fail at a definite moment, once; a test copies it into a project as `src/sitecustomize.py`.

Python imports it when it starts. A fault waits as a JSON file in `src/faults/` and goes before it strikes, so that the same
command, started again, runs undisturbed. It says what happens, and when: as a process starts that runs `module`, or as a
file whose path ends with `file` is about to get its name, for the `number`-th time in that process. At that moment all of
its bytes are in a temporary file beside it, and what the process wrote before has its name already.
"""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

FAULTS = Path(__file__).with_name("faults")
LONGEST = 120.0  # seconds that an orphan waits to be let go on

seen: dict[str, int] = {}


def at_rename(event: str, arguments: tuple) -> None:
    """The audit hook: whether this is the moment of one of the faults."""
    if event != "os.rename" or not FAULTS.is_dir():
        return
    temporary, target = map(os.fsdecode, arguments[:2])
    for path in FAULTS.glob("*.json"):
        fault = json.loads(path.read_text(encoding="utf-8"))
        if "file" in fault and target.endswith(fault["file"]):
            seen[path.name] = seen.get(path.name, 0) + 1
            if seen[path.name] == fault.get("number", 1):
                path.unlink()
                strike(fault["what"], temporary)


def strike(what: str, temporary: str) -> None:
    """Let it happen. Snakemake is the first process of its group, and its jobs are the others."""
    group = os.getpgrp()
    match what:
        case "job killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "job killed in the middle of a write":
            os.truncate(temporary, os.path.getsize(temporary) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        case "job terminated":
            os.kill(os.getpid(), signal.SIGTERM)
        case "power lost":
            os.killpg(group, signal.SIGKILL)
        case "interrupted":  # Ctrl-C in a terminal
            os.killpg(group, signal.SIGINT)
        case "scheduler terminated":
            os.kill(group, signal.SIGTERM)
        case "scheduler killed":
            (FAULTS / "orphan").write_text(str(os.getpid()))
            os.kill(group, signal.SIGKILL)
            wait_for(FAULTS / "go on")
        case "waits":
            (FAULTS / "waiting").touch()
            wait_for(FAULTS / "go on")


def wait_for(path: Path) -> None:
    """Until the test makes this file."""
    end = time.monotonic() + LONGEST
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)


def at_start() -> None:
    """Faults of a process from its start."""
    for path in FAULTS.glob("*.json") if FAULTS.is_dir() else ():
        fault = json.loads(path.read_text(encoding="utf-8"))
        if fault.get("module") in sys.orig_argv:
            path.unlink()
            if "largest" in fault:
                resource.setrlimit(resource.RLIMIT_FSIZE, (fault["largest"], fault["largest"]))
            if "clock" in fault:
                turn_back_clock(fault["clock"])


def turn_back_clock(first: float) -> None:
    """From now on it is so many seconds after 1970, and then earlier and earlier."""
    real = time.monotonic
    time.time = lambda: first - 1000.0 * real()
    time.time_ns = lambda: int(time.time() * 1e9)


at_start()
sys.addaudithook(at_rename)
