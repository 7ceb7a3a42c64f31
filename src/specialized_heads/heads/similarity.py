"""Stage: pairwise distances between the heads of one model, within each attention type.

The distance of two heads is the Jensen-Shannon distance of their attention (square root of the divergence in bits), averaged over
queries: 0 for heads with identical attention, 1 for heads that never attend to the same token. Distributions include EOS, since
without it they do not sum to one. Queries are real tokens; the decoder's begin-of-sentence token, which sees only itself, is left
out. The cost grows with the square of the number of heads, so evenly spaced sentences of the analysis set are used.
"""

import itertools
import math

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.heads import maps
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Transformer
from specialized_heads.tables import write_table

BATCH_TOKENS = 1000  # per side; bounds the memory of the mixtures of one head with all others

NUMBERS = ("layer", "head", "other_layer", "other_head")
SCHEMA = pa.schema(
    {"type": pa.string(), **dict.fromkeys(NUMBERS, pa.int32()), "distance": pa.float64(), "queries": pa.int64()}
)


class Settings(stage.Section):
    sentences: int = Field(ge=1)
    device: str


def distances(weights: Tensor, queries: Tensor) -> Tensor:
    """Sum over queries of the Jensen-Shannon distance of each pair of heads.

    Args:
        weights: attention (B, H, T, S), rows sum to 1.
        queries: those that count (B, T).

    Returns:
        (H, H), float64, symmetric, zero on the diagonal.
    """
    rows = weights.transpose(1, 2)[queries].transpose(0, 1)  # (H, queries, S)
    entropies = torch.special.entr(rows).sum(-1)  # (H, queries)
    sums = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for head in range(len(rows) - 1):
        mixed = torch.special.entr((rows[head] + rows[head + 1 :]) / 2).sum(-1)
        divergence = mixed - (entropies[head] + entropies[head + 1 :]) / 2  # in nats, 0 to ln 2
        sums[head, head + 1 :] = (divergence / math.log(2)).clamp(0.0, 1.0).sqrt().double().sum(-1)
    return sums + sums.T


def mean_distances(model: Transformer, store: TokenStore) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Mean distances (H, H) of the heads of each type over a set, NaN without queries, and the number of queries."""
    sums, queries = {}, dict.fromkeys(KINDS, 0)
    for batch in maps.attention_maps(model, store, tokens=BATCH_TOKENS):
        for kind in KINDS:
            sums[kind] = sums.get(kind, 0) + distances(batch.weights[kind], batch.queries[kind])
            queries[kind] += int(batch.queries[kind].sum())
    return {kind: (total / queries[kind]).numpy() for kind, total in sums.items()}, queries


def spread(count: int, most: int) -> list[int]:
    """At most `most` of `count` sentence numbers, evenly spaced."""
    size = min(count, most)
    return [number * count // size for number in range(size)]


@stage.command("model", "analysis", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """Write `--output`: one row per pair of heads of one type."""
    model = load_on(files.model, settings.device)
    store = load_tokens(files.analysis)
    chosen = spread(len(store), settings.sentences)
    means, queries = mean_distances(model, maps.select(store, chosen))
    rows = []
    for kind in KINDS:
        heads = maps.head_numbers(model, kind)
        for first, second in itertools.combinations(range(len(heads)), 2):
            pair = (kind, *heads[first], *heads[second], means[kind][first, second], queries[kind])
            rows.append(dict(zip(SCHEMA.names, pair)))
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("%d pairs of heads compared on %d of %d sentences", len(rows), len(chosen), len(store))
