"""Run one system in a separate process: requests on standard input, answers on standard output, as
JSON lines.

A request names a task. At its first, the system is tried in each of its variants (precision,
attention) on one batch after a warm-up batch, and continues with the fastest, as do all systems.
Each measurement is of whole updates, the same ones in the same order for every system, until the
given seconds have passed.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engine.ceiling import product_rates
from benchmarks.engine.workload import Workload

SYSTEMS = {  # module, class and title
    "ours": ("ours", "System", "this engine"),
    "ours-fp32": ("ours", "Float32System", "this engine, float32"),
    "marian": ("marian", "System", "Marian in transformers"),
}
TITLES = {name: title for name, (_, _, title) in SYSTEMS.items()}


def main() -> None:
    name, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print to standard output
    workload = Workload.read(folder)
    tasks: dict[str, Callable[..., Any]] = {
        "ceiling": partial(product_rates, workload, threads=threads)
    }
    if name in SYSTEMS:
        module, kind, _ = SYSTEMS[name]
        system = getattr(importlib.import_module(f"benchmarks.engine.{module}"), kind)
        tasks = {"train": Measured(system(workload, threads=threads), workload).train}
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(tasks[request.pop("task")](**request)), file=answers, flush=True)


class Measured:
    """A system and the variant in which it turned out fastest."""

    def __init__(self, system: Any, workload: Workload) -> None:
        self.system, self.workload = system, workload
        self.trained = ""

    def train(self, *, seconds: float) -> dict[str, Any]:
        """Updates until `seconds` have passed, at least one."""
        system, workload = self.system, self.workload
        if not self.trained:
            self.trained = self.fastest(system.variants(), lambda: system.update(workload.train[0]))
        done, started = 0, time.perf_counter()
        while done == 0 or time.perf_counter() - started < seconds:
            system.update(workload.train[done % len(workload.train)])
            done += 1
        elapsed = time.perf_counter() - started
        batches = [workload.train[number % len(workload.train)] for number in range(done)]
        return {
            "variant": self.trained,
            "seconds": elapsed,
            "updates": done,
            "source_tokens": sum(map(workload.source_tokens, batches)),
            "tokens": sum(map(workload.target_tokens, batches)),
            "flops": sum(map(workload.training_flops, batches)),
        }

    def fastest(self, variants: list[str], run: Callable[[], Any]) -> str:
        """Prepare the variant that runs fastest after a warm-up, and return its name."""
        times = {}
        for variant in variants:
            self.system.prepare(variant)
            run()
            started = time.perf_counter()
            run()
            times[variant] = time.perf_counter() - started
        best = min(times, key=times.__getitem__)
        if best != variants[-1]:
            self.system.prepare(best)
            run()
        return best


if __name__ == "__main__":
    main()
