"""Relevance of each head averaged over the generation steps of a set, how well it is conserved, and how stable it is."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore, cut
from specialized_heads.heads.relevance.propagate import propagate
from specialized_heads.heads.relevance.rules import Rule
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, progress
from specialized_heads.training.batching import make_batch

# Floats in the largest tensor, relevance of N steps at P positions; bounds the memory of a batch.
BATCH_FLOATS = 1_000_000
SPLITS = 100  # random halves of a set that stability compares


@dataclass(frozen=True)
class Average:
    """Relevance over a set of N sentences.

    heads: per (attention type, layer), (H,): mean over steps of the relevance normalised over the heads of the layer (A.3).
    sums: the same, summed over the steps of each sentence (N, H).
    steps: generation steps of each sentence (N,), EOS included; forced target tags are not predictions.
    conservation: per level, from the logit down, the median and the largest |total - 1| over steps.
    """

    heads: dict[tuple[str, int], np.ndarray]
    sums: dict[tuple[str, int], np.ndarray]
    steps: np.ndarray
    conservation: dict[str, dict[str, float]]


def average_relevance(model: Transformer, store: TokenStore, *, rule: str) -> Average:
    """Mean relevance of each head over all generation steps of a set (section 4).

    At each step the relevances of the heads of a layer are divided by the sum of their absolute values; a layer that no
    relevance reaches counts as 0.
    """
    how = Rule.named(rule)
    sizes = {(a.kind, a.layer): len(a.heads) for a in model.attentions()}
    sums = {key: torch.zeros(len(store), heads, dtype=torch.float64) for key, heads in sizes.items()}
    deviations: dict[str, list[Tensor]] = {}
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    tags = len(store.tokens.target_tags)
    widest = max(model.architecture.feed_forward, model.architecture.width)
    for sentences in progress(cut(longest[order] ** 2, order, BATCH_FLOATS // widest), what=rule, unit="batch"):
        batch = make_batch(store, sentences).to(model.device)
        positions = max(batch.source.shape[1], batch.target_in.shape[1])
        at_once = max(BATCH_FLOATS // (len(sentences) * positions * widest), 1)  # steps; all, except for long sentences
        for start in range(tags, batch.target_in.shape[1], at_once):
            result = propagate(model, batch, rule=how, steps=slice(start, start + at_once))
            for key, heads in result.heads.items():
                if not heads[result.steps].isfinite().all():
                    raise UserError(
                        f"heads.relevance_rules: {rule}: the relevance of {key[0]} layer {key[1] + 1} is not finite; choose "
                        "another rule"
                    )
                heads = torch.where(result.steps[..., None], heads.double(), 0.0)  # (B, steps, H)
                scale = heads.abs().sum(-1, keepdim=True)
                sums[key][sentences] += torch.where(scale > 0, heads / scale, 0.0).sum(1).cpu()
            for level, value in result.totals.items():
                deviations.setdefault(level, []).append((value[result.steps] - 1).abs().cpu())
    conservation = {}
    for level, parts in deviations.items():
        deviation = torch.cat(parts)
        conservation[level] = {"median": float(deviation.median()), "largest": float(deviation.max())}
    steps = store.target_lengths - tags + 1
    means = {key: (value.sum(0) / steps.sum()).numpy() for key, value in sums.items()}
    return Average(means, {key: value.numpy() for key, value in sums.items()}, steps, conservation)


def stability(average: Average) -> dict[str, list[dict[str, float]]]:
    """Agreement between random halves of the set on the most relevant head of each layer.

    Returns:
        per attention type, for each layer with two heads or more that relevance reaches: `layer`, from 1, and `top_head`, the
        share of `SPLITS` random splits whose halves agree.
    """
    sides = np.random.default_rng(1).permuted(np.tile(np.arange(len(average.steps)) % 2, (SPLITS, 1)), axis=1)
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for (kind, layer), sums in average.sums.items():
        if len(sums) < 2 or sums.shape[1] < 2 or not sums.any():
            continue
        means = np.stack([side @ sums / (side @ average.steps)[:, None] for side in (sides, 1 - sides)])
        first, second = means.argmax(-1)
        rows[kind].append({"layer": layer + 1, "top_head": (first == second).mean()})
    return rows
