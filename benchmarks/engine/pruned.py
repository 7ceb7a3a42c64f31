"""What removing heads gains: time of the encoder, and of translation as a whole, with 48 to 4 of 48 encoder heads.

A head can be taken away in two ways: cut out of the weight matrices (`keep_heads`, as the pipeline does after training
with gates) or multiplied by zero. Both give the same outputs; only the first saves work. The heads that stay are spread
evenly over the layers. By formula an encoder without any head would still have its feed-forward sub-layers, two thirds of
its matrix products, so no pruning of heads makes it more than 1.5 times as fast in products alone.

So that every model translates the same number of tokens, none ends a sentence by itself: each goes on to the limit of the
sentence, half the source's tokens and ten, which is 16 on average.
"""

import time
from typing import Any

import numpy as np
import torch

from benchmarks.engine.workload import BEAM, LENGTH_PENALTY, NEVER, Size, Workload
from specialized_heads.corpus.vocabulary import EOS
from specialized_heads.model.checkpoint import load
from specialized_heads.model.decoding import translate
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import make_batch

HEADS = 48
KEPT = (24, 10, 4)
BATCHES = {1: 16, 16: 4, 64: 1, 256: 1}  # sentences of a batch: how many batches are timed
SIZES = {
    size.name: size
    for size in (
        Size("d256, 6+6 layers", layers=6, heads=8, width=256, feed_forward=1024, vocabulary=6000),
        Size("base", layers=6, heads=8, width=512, feed_forward=2048, vocabulary=32000),
    )
}


def measure(workload: Workload, *, device: str, threads: int, round: int) -> list[dict[str, Any]]:
    """One round: seconds of the encoder and of translation, by way of removal, heads kept and sentences per batch."""
    prepare_cpu()
    torch.set_num_threads(threads)
    ways = [("full", HEADS), *((way, kept) for kept in KEPT for way in ("removed", "masked"))]
    ways = ways[round % len(ways) :] + ways[: round % len(ways)]  # none is always the first
    models = {key: pruned(load(workload.weights, device=device), *key) for key in ways}
    numbers = [number for batch in workload.decode for number in batch]  # by length
    rows = []
    for size, count in BATCHES.items():
        step = len(numbers) // size
        batches = [numbers[start * step // count :: step][:size] for start in range(count)]  # of all lengths each
        for (way, kept), model in models.items():
            timed(workload, model, batches[0], device=device)  # warm-up
            encoder, whole, tokens = zip(*(timed(workload, model, batch, device=device) for batch in batches))
            lengths = workload.store.source_lengths[np.concatenate(batches)] + 1
            rows.append(
                {
                    "way": way,
                    "kept": kept,
                    "batch": size,
                    "batches": count,
                    "threads": threads,
                    "encoder": sum(encoder),
                    "translate": sum(whole),
                    "tokens": sum(tokens),
                    "formula": encoder_gain(workload.size, kept, lengths),
                }
            )
    return rows


def pruned(model: Transformer, way: str, kept: int) -> Transformer:
    """The model with `kept` of its encoder heads, the others removed or masked; it never ends a sentence."""
    model.output_embedding.data[EOS] = NEVER * (torch.arange(model.architecture.width) == 0).to(model.output_embedding)
    layers = model.attentions("encoder")
    for number, attention in enumerate(layers):
        heads = len(attention.heads)
        stay = list(range(kept // len(layers) + (number < kept % len(layers))))
        if way == "removed":
            attention.keep(stay)
        elif way == "masked":
            attention.gate = Mask((torch.arange(heads) < len(stay)).to(attention.output.device))
    return model


@torch.inference_mode()
def timed(workload: Workload, model: Transformer, batch: list[int], *, device: str) -> tuple[float, float, int]:
    """Seconds of the encoder alone, seconds of translation, and target tokens."""
    source = make_batch(workload.store, np.array(batch)).source.to(device)
    started = clock(device)
    model.encode(source)
    encoded = clock(device)
    sources = workload.sources(batch)
    between = clock(device)
    outputs = translate(model, sources, beam=BEAM, length_penalty=LENGTH_PENALTY, max_length_ratio=0.5)
    return encoded - started, clock(device) - between, sum(len(ids) + 1 for ids in outputs)


def encoder_gain(size: Size, kept: int, source: np.ndarray) -> float:
    """By how much the encoder gets faster by formula, for sentences of these lengths, if all operations cost the same."""
    d, k = size.width, size.width // size.heads

    def operations(heads: int) -> float:
        matrices = 2 * (heads * 4 * d * k + size.layers * 2 * d * size.feed_forward)
        return float(matrices * source.sum() + 4 * heads * k * (source**2).sum())

    return operations(HEADS) / operations(kept)


def clock(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
