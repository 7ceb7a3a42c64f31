"""This engine, run through the same code as in the pipeline.

Training: `training.loop._Run.step`, which makes the padded batches from the token store, as in the pipeline. On a CPU an
update is as many micro-batches as there are threads (the sentences of the batch in turn), each on its own thread; on
a GPU it is one. Decoding: `model.decoding.translate`, with a part of the batch on each thread.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.engine.workload import BEAM, DROPOUT, LABEL_SMOOTHING, MAX_LENGTH_RATIO, Workload
from specialized_heads.model.checkpoint import load
from specialized_heads.model.decoding import mapped, translate
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.training.loop import _Run
from specialized_heads.training.parallel import DistributedContext
from specialized_heads.training.plan import Plan, load_data

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
    def __init__(self, workload: Workload, *, device: str, threads: int) -> None:
        self.workload, self.device, self.threads = workload, torch.device(device), threads
        self.parallel = 1 if self.device.type == "cuda" else threads  # micro-batches, or parts of a batch to translate
        prepare_cpu()

    def training_variants(self) -> list[str]:
        return ["bf16", "fp32"]

    def prepare_training(self, variant: str) -> None:
        torch.set_num_threads(1)
        model = load(self.workload.weights, dropout=DROPOUT, device=self.device).train()
        data = load_data(self.workload.tokens, self.workload.tokens)
        plan = PLAN.model_copy(update={"precision": variant})
        self.run = _Run(
            model, plan, data, Path(os.devnull), None, None, workers=self.parallel, context=DistributedContext()
        )
        self.run.working.train()

    def update(self, batch: list[int]) -> None:
        pieces = [np.array(batch[start :: self.parallel]) for start in range(self.parallel)]
        self.run.step(self.run.make(self.run.data.train, 0, 0, pieces))

    def decoding_variants(self) -> list[str]:
        return ["fp32"]

    def prepare_decoding(self, variant: str) -> None:
        torch.set_num_threads(self.threads)
        self.model = load(self.workload.weights, device=self.device)

    def translate(self, number: int) -> list[list[int]]:
        sources = self.workload.sources(self.workload.decode[number])
        size = -(-len(sources) // self.parallel)
        parts = [sources[start : start + size] for start in range(0, len(sources), size)]
        settings = {"beam": BEAM, "max_length_ratio": MAX_LENGTH_RATIO}
        with mapped(self.parallel) as map_:
            return [output for outputs in map_(partial(translate, self.model, **settings), parts) for output in outputs]


class Float32System(System):
    """As on a processor without bf16 instructions; training only, since decoding is in float32 anyway."""

    def training_variants(self) -> list[str]:
        return ["fp32"]

    def decoding_variants(self) -> list[str]:
        return []
