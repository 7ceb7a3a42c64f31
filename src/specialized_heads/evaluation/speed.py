"""Stage: how much time the heads that were removed save, in the encoder and in translation as a whole.

A model that was pruned in the encoder has smaller matrices there. Its encoder is timed beside the whole model's, and beside
the whole model with the same heads multiplied by zero, which computes the same and saves nothing. Translation is timed as it
is used: beam search to the end of each sentence, so that models with longer translations take longer; the number of tokens
stands beside the time. Decoder and softmax, which encoder pruning leaves alone, bound what can be gained there.

Models take turns, round after round, and the median counts. The rule asks for all cores, so that no other job of the
pipeline runs beside it; the work itself is done by one thread.
"""

import math
import time
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.checkpoint import load
from specialized_heads.model.decoding import translate
from specialized_heads.model.devices import choose_device
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer
from specialized_heads.sections import Decoding
from specialized_heads.stage import Section
from specialized_heads.tables import write_table
from specialized_heads.training.batching import make_batch

ROUNDS = 3
SENTENCES = 16  # timed per round, if one batch has fewer


class Settings(Section):
    batches: list[int]  # sentences per batch
    decoding: Decoding
    device: str


def masked(baseline: Transformer, pruned: Transformer) -> Transformer:
    """The baseline, in place, with the encoder heads that the pruned model lacks multiplied by zero."""
    for whole, part in zip(baseline.attentions("encoder"), pruned.attentions("encoder"), strict=True):
        whole.gate = Mask(torch.tensor([float(head in part.heads) for head in whole.heads])).to(whole.output.device)
    return baseline


def batches_of(store: TokenStore, size: int) -> list[np.ndarray]:
    """At least `SENTENCES` sentences in batches of `size`, sorted by length, each spread evenly over all lengths of the set."""
    order = np.argsort(store.source_lengths, kind="stable")
    size = min(size, len(order))
    count = math.ceil(min(SENTENCES, len(order)) / size)
    return [order[(number + count * np.arange(size)) * len(order) // (count * size)] for number in range(count)]


@torch.inference_mode()
def encoding_seconds(model: Transformer, store: TokenStore, batches: list[np.ndarray]) -> float:
    """Seconds of the encoder for these batches."""
    device = model.source_embedding.device
    sources = [make_batch(store, batch).source.to(device) for batch in batches]
    model.encode(sources[0])  # kernels are made at the first call
    started = clock(device)
    for source in sources:
        model.encode(source)
    return clock(device) - started


def translation_seconds(
    model: Transformer, store: TokenStore, batches: list[np.ndarray], decoding: Decoding
) -> tuple[float, int]:
    """Seconds of beam search for these batches, and the target tokens of the translations, EOS included."""
    device = model.source_embedding.device
    tokens, started = 0, clock(device)
    for batch in batches:
        sources = [store.source_ids(number).tolist() for number in batch]
        tokens += sum(len(ids) + 1 for ids in translate(model, sources, **decoding.model_dump()))
    return clock(device) - started, tokens


def clock(device: torch.device) -> float:
    """Seconds, read when all work on the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def measure(
    baseline: Transformer, pruned: list[Transformer], twins: list[Transformer], store: TokenStore, settings: Settings
) -> list[dict[str, Any]]:
    """One row per model and batch size: medians over the rounds, times per batch.

    Args:
        baseline: with all heads.
        pruned: with fewer encoder heads.
        twins: of each pruned model, the whole one with the same heads masked.
        store: the test set.
        settings: of the stage.
    """
    models = [baseline, *pruned]
    rows = []
    for size in settings.batches:
        batches = batches_of(store, size)
        if any(row["sentences"] == len(batches[0]) for row in rows):
            continue  # a set with fewer sentences than several of the sizes is one batch for all of them
        seconds: dict[tuple[int, str], list[float]] = {}
        tokens = [0] * len(models)
        for turn in range(ROUNDS):
            for number in np.roll(range(len(models)), turn).tolist():  # none is always the first
                whole, tokens[number] = translation_seconds(models[number], store, batches, settings.decoding)
                seconds.setdefault((number, "translation"), []).append(whole)
                encoding = encoding_seconds(models[number], store, batches)
                seconds.setdefault((number, "encoder"), []).append(encoding)
                if number:
                    encoding = encoding_seconds(twins[number - 1], store, batches)
                    seconds.setdefault((number, "masked"), []).append(encoding)
        for number, model in enumerate(models):
            times = {
                f"{what}_seconds": median(seconds[number, what]) / len(batches) if (number, what) in seconds else None
                for what in ("encoder", "masked", "translation")
            }
            heads = sum(len(attention.heads) for attention in model.attentions("encoder"))
            rows.append(
                {
                    "heads": heads,
                    "sentences": len(batches[0]),
                    "batches": len(batches),
                    "rounds": ROUNDS,
                    "tokens": tokens[number] / len(batches),
                    **times,
                    "parameters": sum(parameter.numel() for parameter in model.parameters()),
                }
            )
    return rows


def main() -> None:
    files = stage.arguments(__doc__, files=("baseline", "tokens", "output"), many=("pruned",))
    settings = Settings.model_validate(files.settings)
    prepare_cpu()
    torch.set_num_threads(1)
    device = choose_device(settings.device)
    baseline, store = load(files.baseline, device=device), load_tokens(files.tokens)
    by_heads = {}
    for path in files.pruned:  # of models with the same number of encoder heads, the first
        model = load(path, device=device)
        by_heads.setdefault(sum(len(attention.heads) for attention in model.attentions("encoder")), model)
    by_heads.pop(sum(len(attention.heads) for attention in baseline.attentions("encoder")), None)
    pruned = [by_heads[heads] for heads in sorted(by_heads, reverse=True)]
    twins = [masked(load(files.baseline, device=device), model) for model in pruned]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, 1 thread"
    rows = [row | {"device": name} for row in measure(baseline, pruned, twins, store, settings)]
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("%d models at %d batch sizes", 1 + len(pruned), len(settings.batches))


SCHEMA = pa.schema(
    [
        ("heads", pa.int64()),  # of the encoder
        ("sentences", pa.int64()),  # per batch
        ("batches", pa.int64()),  # timed in each round
        ("rounds", pa.int64()),
        ("tokens", pa.float64()),  # target tokens per batch, EOS included
        ("encoder_seconds", pa.float64()),  # per batch, as all times
        ("masked_seconds", pa.float64()),  # of the whole encoder, the same heads multiplied by zero
        ("translation_seconds", pa.float64()),
        ("parameters", pa.int64()),
        ("device", pa.string()),
    ]
)


if __name__ == "__main__":
    stage.run(main)
