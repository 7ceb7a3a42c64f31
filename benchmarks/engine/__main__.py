"""Measure this engine, its peers and the machine side by side, and write engine.md and engine.csv.

    python -m venv .venv-benchmarks
    .venv-benchmarks/bin/pip install -r benchmarks/requirements.txt
    export PYTHONPATH=src
    .venv-benchmarks/bin/python -m benchmarks.engine  # all of it
    .venv-benchmarks/bin/python -m benchmarks.engine --sizes d128 --rounds 2 --seconds 2  # a test

Every system trains in a separate process, with the same Python and PyTorch. Rounds are interleaved
(A B C A B C ...), and a system does nothing while another is measured, so that what else the
machine does meets them all alike. Tables give the median of the rounds and their range.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engine import report
from benchmarks.engine.machine import describe, say
from benchmarks.engine.worker import SYSTEMS, TITLES
from benchmarks.engine.workload import SIZES, Workload, make

ROOT = Path(__file__).parents[2]
BATCH_TOKENS = 4000  # per update


class Process:
    """A system in a separate process; see `worker`."""

    def __init__(self, name: str, workload: Workload, *, threads: int) -> None:
        counts = {variable: str(threads) for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.worker", name, workload.folder, str(threads)],
            cwd=ROOT,
            env={**os.environ, **counts},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()  # once it has started, it does nothing

    def ask(self, task: str, **arguments: Any) -> Any:
        """Let the process do a task, and wait for its answer."""
        self.process.stdin.write(json.dumps({"task": task, **arguments}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the process ended; its error is above")
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    options = arguments()
    machine = describe(options.threads, command=["python -m benchmarks.engine", *sys.argv[1:]])
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sizes:
            workload = make(SIZES[name], Path(folder) / name, batch_tokens=BATCH_TOKENS, updates=32)
            rows += compare(workload, options)
            report.write(options.output, rows, machine=machine)  # what is known so far


def compare(workload: Workload, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Training of all systems at one size, and the machine's own rate of matrix products."""
    size, rows = workload.size.name, []
    processes = [
        Process(name, workload, threads=options.threads) for name in ["ceiling", *options.systems]
    ]
    for number in range(options.rounds):
        columns = {"size": size, "round": number + 1}
        for process in processes:
            say(f"{size}: round {number + 1}, {process.name}")
            if process.name == "ceiling":
                rows += [{"part": "ceiling", **columns, **row} for row in process.ask("ceiling")]
            else:
                row = process.ask("train", seconds=options.seconds)
                rows.append({"part": "train", **columns, "system": TITLES[process.name], **row})
    for process in processes:
        process.close()
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument(
        "--rounds", type=int, default=5, help="interleaved rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="of training per round (default: %(default)s)"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="default: all cores, %(default)s"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "benchmarks/engine", help="without suffix"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
