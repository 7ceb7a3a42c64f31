"""Stage: measure the time that removing encoder heads saves, in the encoder and in translation as a whole.

A pruned encoder has smaller matrices. It is timed against the full model's encoder, and against the full encoder with the same
heads multiplied by zero, which computes the same result without saving time. Translation is timed as it is used, with beam search
to the end of each sentence, so models with longer translations take longer; the number of tokens is reported too. There, the
decoder and the softmax, which encoder pruning leaves unchanged, limit the gain.

Models take turns in each round; the median over the rounds is reported. The rule reserves all cores, so that no other job of
the pipeline runs at the same time, but computes in one thread.
"""

import math
import time
from collections import defaultdict
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.decoding import translate
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer
from specialized_heads.tables import write_table
from specialized_heads.training.batching import make_batch

ROUNDS = 3
SENTENCES = 16  # to time per round, in several batches if one is smaller
SCHEMA = pa.schema(
    [
        ("heads", pa.int64()),  # of the encoder
        ("sentences", pa.int64()),  # per batch
        ("batches", pa.int64()),  # per round
        ("rounds", pa.int64()),
        ("tokens", pa.float64()),  # target tokens per batch, EOS included
        ("encoder_seconds", pa.float64()),  # per batch, as all times
        ("masked_seconds", pa.float64()),  # of the full encoder with the same heads multiplied by zero
        ("translation_seconds", pa.float64()),
        ("parameters", pa.int64()),
        ("device", pa.string()),
    ]
)


class Settings(stage.Section):
    batches: list[int]  # sentences per batch
    decoding: Decoding
    device: str


def masked(baseline: Transformer, pruned: Transformer) -> Transformer:
    """Mask, in place, the encoder heads of the baseline that the pruned model lacks."""
    for whole, part in zip(baseline.attentions("encoder"), pruned.attentions("encoder"), strict=True):
        whole.gate = Mask(torch.tensor([float(head in part.heads) for head in whole.heads])).to(whole.output.device)
    return baseline


def batches_of(store: TokenStore, size: int) -> list[np.ndarray]:
    """Batches of `size` sentences, each spread evenly over the lengths of the set; at least `SENTENCES` in all."""
    order = np.argsort(store.source_lengths, kind="stable")
    size = min(size, len(order))
    count = math.ceil(min(SENTENCES, len(order)) / size)
    return [order[(number + count * np.arange(size)) * len(order) // (count * size)] for number in range(count)]


@torch.inference_mode()
def encoding_seconds(model: Transformer, store: TokenStore, batches: list[np.ndarray]) -> float:
    """Time to encode these batches, in seconds."""
    device = model.source_embedding.device
    sources = [make_batch(store, batch).source.to(device) for batch in batches]
    model.encode(sources[0])  # the first call compiles kernels
    started = clock(device)
    for source in sources:
        model.encode(source)
    return clock(device) - started


def translation_seconds(
    model: Transformer, store: TokenStore, batches: list[np.ndarray], decoding: Decoding
) -> tuple[float, int]:
    """Seconds of beam search for these batches, and the tokens of the translations, EOS included."""
    device = model.source_embedding.device
    tokens, started = 0, clock(device)
    for batch in batches:
        sources = [store.source_ids(number).tolist() for number in batch]
        tokens += sum(len(ids) + 1 for ids in translate(model, sources, **decoding.model_dump()))
    return clock(device) - started, tokens


def clock(device: torch.device) -> float:
    """Time in seconds, once all work on the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def device_name(device: torch.device) -> str:
    """What a table of times calls the device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, 1 thread"


def measure(
    baseline: Transformer, pruned: list[Transformer], twins: list[Transformer], store: TokenStore, settings: Settings
) -> list[dict[str, Any]]:
    """Time all models: one row per model and batch size, with median times per batch.

    `twins`: for each pruned model, the baseline with the same heads masked.
    """
    models = [baseline, *pruned]
    rows = []
    for size in settings.batches:
        batches = batches_of(store, size)
        if any(row["sentences"] == len(batches[0]) for row in rows):
            continue  # a set smaller than several sizes forms the same batch for all of them
        seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
        tokens = [0] * len(models)
        for turn in range(ROUNDS):
            for number in np.roll(range(len(models)), turn).tolist():  # rotate the order
                whole, tokens[number] = translation_seconds(models[number], store, batches, settings.decoding)
                seconds[number, "translation_seconds"].append(whole)
                seconds[number, "encoder_seconds"].append(encoding_seconds(models[number], store, batches))
                if number:
                    seconds[number, "masked_seconds"].append(encoding_seconds(twins[number - 1], store, batches))
        for number, model in enumerate(models):
            row = {"heads": encoder_heads(model), "sentences": len(batches[0]), "batches": len(batches)}
            row |= {"rounds": ROUNDS, "tokens": tokens[number] / len(batches)}
            row |= {name: median(times) / len(batches) for (n, name), times in seconds.items() if n == number}
            rows.append(row | {"parameters": sum(parameter.numel() for parameter in model.parameters())})
    return rows


def encoder_heads(model: Transformer) -> int:
    """Number of encoder heads."""
    return sum(len(attention.heads) for attention in model.attentions("encoder"))


@stage.command("baseline", "tokens", "output", many=("pruned",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    torch.set_num_threads(1)
    baseline, store = load_on(files.baseline, settings.device), load_tokens(files.tokens)
    by_heads = {}
    for path in files.pruned:  # the first of models with equal numbers of encoder heads
        model = load_on(path, settings.device)
        by_heads.setdefault(encoder_heads(model), model)
    by_heads.pop(encoder_heads(baseline), None)
    pruned = [by_heads[heads] for heads in sorted(by_heads, reverse=True)]
    twins = [masked(load_on(files.baseline, settings.device), model) for model in pruned]
    rows = [row | {"device": device_name(baseline.device)} for row in measure(baseline, pruned, twins, store, settings)]
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("%d models at %d batch sizes", 1 + len(pruned), len(settings.batches))
