"""Makes one process of a run fail at a defined moment, once; tests copy this file into a project as
`src/sitecustomize.py`.

Python imports it at start-up. In every process, training saves its state after each update. A fault
waits as a JSON file in `src/faults/` and is removed before it strikes, so the same command, run
again, is undisturbed. It strikes either when a process starts that runs `module`, or when a file
whose path ends with `file` is about to be renamed to its final name, for the `number`-th time in
that process. At that moment all its bytes are in a temporary file, and earlier files have their
names.
"""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

FAULTS = Path(__file__).with_name("faults")
TRAINING = {"specialized_heads.training.train", "specialized_heads.pruning.prune"}

renamed: dict[str, int] = {}


def at_rename(event: str, arguments: tuple) -> None:
    """Audit hook: let the faults strike whose moment this is."""
    if event != "os.rename" or not FAULTS.is_dir():
        return
    temporary, target = map(os.fsdecode, arguments[:2])
    for path in FAULTS.glob("*.json"):
        fault = json.loads(path.read_text(encoding="utf-8"))
        if "file" in fault and target.endswith(fault["file"]):
            renamed[path.name] = renamed.get(path.name, 0) + 1
            if renamed[path.name] == fault.get("number", 1):
                path.unlink()
                strike(fault["what"], temporary)


def strike(what: str, temporary: str) -> None:
    """Snakemake leads its process group; its jobs are the other members."""
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
        case "scheduler killed":
            (FAULTS / "orphan").write_text(str(os.getpid()))
            os.kill(group, signal.SIGKILL)
            wait_for_release()
        case "waits":
            (FAULTS / "waiting").touch()
            wait_for_release()


def wait_for_release(seconds: float = 1800) -> None:
    """Wait until the test creates the file `go on`, or has long failed."""
    end = time.monotonic() + seconds
    while not (FAULTS / "go on").exists() and time.monotonic() < end:
        time.sleep(0.01)


def at_start() -> None:
    """Prepare training, and let the faults strike that wait for this process to start."""
    if TRAINING & set(sys.orig_argv):
        from specialized_heads.training import loop

        loop.SAVE_SECONDS, loop.SAVE_SHARE = 0.0, float("inf")
    for path in FAULTS.glob("*.json") if FAULTS.is_dir() else ():
        fault = json.loads(path.read_text(encoding="utf-8"))
        if fault.get("module") in sys.orig_argv:
            path.unlink()
            if "largest" in fault:
                resource.setrlimit(resource.RLIMIT_FSIZE, (fault["largest"], fault["largest"]))
            if "clock" in fault:
                run_clock_backwards(fault["clock"])


def run_clock_backwards(start: float) -> None:
    """Set the clock to `start` seconds after 1970 and let it run backwards."""
    real = time.monotonic
    time.time = lambda: start - 1000.0 * real()
    time.time_ns = lambda: int(time.time() * 1e9)


at_start()
sys.addaudithook(at_rename)
