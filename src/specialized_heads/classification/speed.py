"""Stage: sentences per second with and without half of the heads, by sentences per batch
(Michel et al. 2019, table 4).

The least important half of the heads is removed from the weights. Both models take turns; the
median and the range over the rounds are written. The rule reserves all cores, so that no other job
of the pipeline runs at the same time, but computes in one thread. On a CPU it counts the time that
this thread computes, which other programs on the machine affect little.
"""

import copy
import math
import time
from statistics import median

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.bert import Bert
from specialized_heads.model.checkpoint import load_on
from specialized_heads.pruning.ablation import ranking
from specialized_heads.tables import read_table, write_table
from specialized_heads.training.batching import make_batch

ROUNDS = 7
SENTENCES = 256  # per round
REMOVED = 0.5  # share of the heads
# By sentences per batch: heads left and in total; sentences per second and the gain over all heads
# in the same round, each with the lowest and highest of the rounds.
SPEEDS = ("speed", "speed_low", "speed_high", "gain", "gain_low", "gain_high")
SCHEMA = pa.schema(
    dict.fromkeys(("sentences", "heads", "total"), pa.int64())
    | dict.fromkeys(SPEEDS, pa.float64())
    | {"parameters": pa.int64(), "device": pa.string()}
)


class Settings(stage.Section):
    batches: list[int]  # sentences per batch
    device: str


def clock(device: torch.device) -> float:
    """Time in seconds: of this thread on a CPU; of the clock on a GPU, once its work is done."""
    if device.type == "cpu":
        return time.thread_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.inference_mode()
def seconds(model: Bert, store: TokenStore, batches: list[np.ndarray]) -> float:
    """Seconds to classify these batches."""
    inputs = [make_batch(store, batch).source.to(model.device) for batch in batches]
    model.logits(model(inputs[0]))  # the first call compiles kernels
    started = clock(model.device)
    for ids in inputs:
        model.logits(model(ids))
    return clock(model.device) - started


@stage.command("model", "importance", "tokens", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    torch.set_num_threads(1)
    model, store = load_on(files.model, settings.device), load_tokens(files.tokens)
    order = ranking(read_table(files.importance).to_pandas(), "all")
    pruned = copy.deepcopy(model)
    pruned.remove_heads(set(order[: math.floor(REMOVED * len(order))]))
    name = (
        "CPU, 1 thread" if model.device.type == "cpu" else torch.cuda.get_device_name(model.device)
    )
    rows = []
    for size in settings.batches:
        # Whole batches only; a small set is repeated.
        batches = list(np.resize(np.arange(len(store)), (max(1, SENTENCES // size), size)))
        times = [[seconds(each, store, batches) for each in (model, pruned)] for _ in range(ROUNDS)]
        gains = [whole / part - 1 for whole, part in times]
        for place, each in enumerate((model, pruned)):
            speeds = [size * len(batches) / pair[place] for pair in times]
            row = {
                "sentences": size,
                "heads": sum(map(len, each.architecture.encoder)),
                "total": len(order),
            }
            row |= {
                "speed": median(speeds),
                "speed_low": min(speeds),
                "speed_high": max(speeds),
                "device": name,
            }
            row |= {"parameters": sum(parameter.numel() for parameter in each.parameters())}
            gain = (
                {"gain": median(gains), "gain_low": min(gains), "gain_high": max(gains)}
                if place
                else {}
            )
            rows.append(row | gain)
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("%d batch sizes", len(settings.batches))
