"""Relevance of each head averaged over the generation steps of a set, and how well it was conserved (section 4, A.3)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.relevance.gradient import gradient_input
from specialized_heads.heads.relevance.propagate import Relevance, propagate
from specialized_heads.heads.relevance.rules import Rule
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.sections import Heads
from specialized_heads.stage import UserError, progress
from specialized_heads.training.batching import Batch, cut, make_batch

# Floats in the largest tensor, relevance of N steps at P positions; bounds the memory of a batch.
BATCH_FLOATS = 1_000_000


@dataclass(frozen=True)
class Average:
    """Relevance over a set.

    heads: per (attention type, layer), (H,): mean over steps of the relevance normalised over the heads of the layer.
    steps: how many generation steps that is.
    conservation: per level, from the logit down, the median and the largest |total - 1| over steps.
    """

    heads: dict[tuple[str, int], np.ndarray]
    steps: int
    conservation: dict[str, dict[str, float]]


def average_relevance(model: Transformer, store: TokenStore, *, rule: str, settings: Heads) -> Average:
    """Mean relevance of each head over all generation steps of a set.

    At each step the relevances of the heads of a layer are divided by the sum of their absolute values; a layer that no
    relevance reaches counts as 0.

    Args:
        model: in evaluation mode.
        store: the development set.
        rule: one of `relevance_rules`.
        settings: the numbers of the rule.

    Raises:
        UserError: a relevance is not finite.
    """
    device = model.source_embedding.device
    sums = {(a.kind, a.layer): torch.zeros(len(a.heads), dtype=torch.float64) for a in model.attentions(*KINDS)}
    deviations: dict[str, list[Tensor]] = {}
    count = 0
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    widest = max(model.architecture.feed_forward, model.architecture.width)
    for sentences in progress(cut(longest[order] ** 2, order, BATCH_FLOATS // widest), what=rule, unit="batch"):
        batch = make_batch(store, sentences).to(device)
        positions = max(batch.source.shape[1], batch.target_in.shape[1])
        at_once = max(BATCH_FLOATS // (len(sentences) * positions * widest), 1)  # steps; all, but for long sentences
        for start in range(0, batch.target_in.shape[1], at_once):
            result = relevance(model, batch, rule=rule, settings=settings, steps=slice(start, start + at_once))
            for key, heads in result.heads.items():
                real = heads[result.steps].double()  # (steps, H)
                if not real.isfinite().all():
                    raise UserError(
                        f"heads.relevance_rules: {rule}: the relevance of {key[0]} layer {key[1] + 1} is not finite; choose "
                        "another rule, or a larger heads.relevance_epsilon"
                    )
                scale = real.abs().sum(-1, keepdim=True)
                sums[key] += torch.where(scale > 0, real / scale, 0.0).sum(0).cpu()
            for level, value in result.totals.items():
                deviations.setdefault(level, []).append((value[result.steps] - 1).abs().cpu())
            count += int(result.steps.sum())
    conservation = {}
    for level, found in deviations.items():
        every = torch.cat(found)
        conservation[level] = {"median": float(every.median()), "largest": float(every.max())}
    return Average({key: (value / count).numpy() for key, value in sums.items()}, count, conservation)


def relevance(model: Transformer, batch: Batch, *, rule: str, settings: Heads, steps: slice = slice(None)) -> Relevance:
    """Relevance of all heads for some generation steps of a batch, by the rule of this name."""
    if rule == "gradient_input":
        return gradient_input(model, batch, steps=steps)
    return propagate(model, batch, rule=Rule.named(rule, settings), steps=steps)
