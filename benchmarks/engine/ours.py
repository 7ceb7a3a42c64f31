"""This engine, run through the same code as in the pipeline.

Training: `training.loop._Run.step`, which makes the padded batches from the token store, as in the
pipeline. An update is as many micro-batches as there are threads (the sentences of the batch in
turn), each on its own thread.
"""

import os
from pathlib import Path

import numpy as np
import torch

from benchmarks.engine.workload import DROPOUT, LABEL_SMOOTHING, Workload
from specialized_heads.model.checkpoint import load
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.training.loop import Plan, _Run, load_data
from specialized_heads.training.state import DistributedContext

PLAN = Plan(
    seed=1,
    updates=10**9,
    batch_tokens=4000,  # not used: the batches are given
    micro_batch_tokens=4000,
    schedule="inverse_sqrt",
    learning_rate=4.0,
    warmup=16000,
    label_smoothing=LABEL_SMOOTHING,
    precision="fp32",
    log_every=10**9,
    evaluate_every=10**9,
)


class System:
    def __init__(self, workload: Workload, *, threads: int) -> None:
        self.workload, self.parallel = workload, threads  # as many micro-batches in an update
        prepare_cpu()

    def variants(self) -> list[str]:
        return ["bf16", "fp32"]

    def prepare(self, variant: str) -> None:
        torch.set_num_threads(1)
        model = load(self.workload.weights, dropout=DROPOUT).train()
        data = load_data(self.workload.tokens, self.workload.tokens)
        plan = PLAN.model_copy(update={"precision": variant})
        self.run = _Run(
            model,
            plan,
            data,
            Path(os.devnull),
            None,
            workers=self.parallel,
            context=DistributedContext(),
        )
        self.run.working.train()

    def update(self, batch: list[int]) -> None:
        pieces = [np.array(batch[start :: self.parallel]) for start in range(self.parallel)]
        self.run.step(self.run.make(self.run.data.train, 0, 0, pieces))


class Float32System(System):
    """As on a processor without bf16 instructions."""

    def variants(self) -> list[str]:
        return ["fp32"]
