"""Layer-wise relevance propagation through the Transformer (section 4, appendix A; Ding et al. 2017).

Each generation step starts with relevance 1 at its top-1 logit. A neuron passes its relevance down in proportion to what its
inputs contributed: through a matrix product in the ratio of the products (ε keeps the denominator off zero), through a sum
in the ratio of the summands. Non-linearities (ReLU, LayerNorm, softmax) are ignored: LayerNorm and ReLU hand relevance
through neuron by neuron, attention weights count as the constant weights of a sum over values. Biases take no share. So
nothing is lost: relevance summed over all neurons of a level stays 1, but for ε.

All generation steps of all sentences of a batch go through at once, as one more axis.

Shapes: B sentences, N generation steps, T target and S source tokens, P either, H heads, K width of a head, D width.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.corpus.vocabulary import PAD
from specialized_heads.model.attention import MultiHeadAttention, Tape
from specialized_heads.model.transformer import KINDS, FeedForward, Transformer
from specialized_heads.stage import progress
from specialized_heads.training.batching import Batch, cut, make_batch

# Floats in the largest tensor, relevance of N steps at P positions; bounds the memory of a batch.
BATCH_FLOATS = 1_000_000


@dataclass
class Relevance:
    """Relevance of one batch.

    heads: (B, N, H) per (attention type, layer): summed over the neurons of each head's output, before W^O.
    totals: (B, N) by name of the level, from the logit down: relevance summed over all neurons; 1 if conserved.
    steps: (B, N) true for real generation steps, false for padding.
    """

    heads: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    totals: dict[str, Tensor] = field(default_factory=dict)
    steps: Tensor = field(default_factory=lambda: torch.empty(0))


@torch.inference_mode()
def propagate(model: Transformer, batch: Batch, *, epsilon: float) -> Relevance:
    """Relevance of all heads for the top-1 prediction of each generation step of a batch (reference prefixes).

    Args:
        model: in evaluation mode, without gates.
        batch: teacher-forced sentences.
        epsilon: stabiliser, added to denominators with their sign.
    """
    tape: Tape = {}
    states = model(batch.source, batch.target_in, tape)
    result = Relevance(steps=batch.target_out != PAD)
    memory = torch.zeros(())  # relevance of the encoder's output, collected from all decoder layers

    top = model.softmax_embedding[
        model.logits(states).argmax(-1)
    ]  # (B, T, D): the row of W for each step's top-1 logit
    shares = states * top
    shares = shares / stabilise(shares.sum(-1, keepdim=True), epsilon)
    relevance = torch.diag_embed(shares.transpose(1, 2)).permute(0, 2, 3, 1)  # (B, N, T, D), zero where n ≠ t

    for layer in reversed(model.decoder):
        relevance = through_feed_forward(layer.feed_forward, tape, relevance, epsilon)
        relevance, update = through_residual("cross", layer.cross.layer, tape, relevance, epsilon)
        memory = memory + through_attention(layer.cross, tape, update, epsilon, result)
        relevance, update = through_residual("decoder", layer.attention.layer, tape, relevance, epsilon)
        relevance = relevance + through_attention(layer.attention, tape, update, epsilon, result)
        result.totals[f"decoder {layer.attention.layer + 1}"] = total(relevance) + total(memory)
    from_target = total(relevance)
    relevance = memory
    for layer in reversed(model.encoder):
        if relevance.dim():  # a decoder without cross-attention heads sends no relevance here
            relevance = through_feed_forward(layer.feed_forward, tape, relevance, epsilon)
            relevance, update = through_residual("encoder", layer.attention.layer, tape, relevance, epsilon)
            relevance = relevance + through_attention(layer.attention, tape, update, epsilon, result)
        result.totals[f"encoder {layer.attention.layer + 1}"] = from_target + total(relevance)
    return result


def through_residual(kind: str, layer: int, tape: Tape, relevance: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Divide relevance (B, N, P, D) of a sum between the residual stream and the update added to it."""
    residual, update = tape[kind, layer, "residual"], tape[kind, layer, "update"]
    ratio = relevance / stabilise(residual + update, epsilon)[:, None]
    return residual[:, None] * ratio, update[:, None] * ratio


def through_linear(x: Tensor, weight: Tensor, relevance: Tensor, epsilon: float) -> Tensor:
    """Relevance of the inputs of a matrix product: R_u = Σ_v (W_uv u / Σ_u' W_u'v u') R_v, appendix A.

    Args:
        x: inputs (B, P, I).
        weight: (O, I), as in `x @ weight.T`.
        relevance: of the outputs (B, N, P, O).

    Returns:
        relevance of the inputs (B, N, P, I).
    """
    return x[:, None] * ((relevance / stabilise(x @ weight.T, epsilon)[:, None]) @ weight)


def through_feed_forward(module: FeedForward, tape: Tape, relevance: Tensor, epsilon: float) -> Tensor:
    """From the output of a feed-forward sub-layer and its residual sum to its input (B, N, P, D)."""
    relevance, update = through_residual(module.kind, module.layer, tape, relevance, epsilon)
    hidden = tape[module.kind, module.layer, "hidden"]
    inner = through_linear(hidden, module.contract.weight, update, epsilon)
    x = tape[module.kind, module.layer, "input"]
    return relevance + through_linear(x, module.expand.weight, inner, epsilon)


def through_attention(
    module: MultiHeadAttention, tape: Tape, relevance: Tensor, epsilon: float, result: Relevance
) -> Tensor:
    """From an attention update to the input of its keys and values (B, N, P, D), noting the heads on the way."""
    kind, layer = module.kind, module.layer
    if not module.heads:
        result.heads[kind, layer] = relevance.new_zeros(*relevance.shape[:2], 0)
        return relevance.new_zeros(())
    context = tape[kind, layer, "context"]  # (B, H, T, K)
    joined = context.transpose(1, 2).flatten(2)
    outputs = through_linear(joined, module.output, relevance, epsilon)
    outputs = outputs.unflatten(-1, (len(module.heads), module.head_width)).transpose(2, 3)  # (B, N, H, T, K)
    result.heads[kind, layer] = outputs.sum((-1, -2))
    ratio = outputs / stabilise(context, epsilon)[:, None]
    weights, values = tape[kind, layer, "weights"], tape[kind, layer, "values"]
    values_relevance = values[:, None] * (weights.transpose(-1, -2)[:, None] @ ratio)  # (B, N, H, S, K)
    joined = values_relevance.transpose(2, 3).flatten(3)
    return through_linear(tape[kind, layer, "keys_input"], module.value, joined, epsilon)


def stabilise(z: Tensor, epsilon: float) -> Tensor:
    """z moved away from zero by ε; zero counts as positive, so that the result is never zero."""
    return z + torch.where(z < 0, -epsilon, epsilon)


def total(relevance: Tensor) -> Tensor:
    """Relevance summed over positions and neurons: (B, N, P, D) -> (B, N)."""
    return relevance.sum((-1, -2)) if relevance.dim() else relevance


def head_relevance(
    model: Transformer, store: TokenStore, *, epsilon: float
) -> tuple[dict[tuple[str, int], np.ndarray], dict[str, float]]:
    """Mean relevance of each head over all generation steps of a set, and how well relevance was conserved.

    The relevances of the heads of a layer are normalised at each step: divided by the sum of their absolute values.

    Args:
        model: in evaluation mode.
        store: the development set.
        epsilon: stabiliser.

    Returns:
        per (attention type, layer), relevance (H,); per level, the median over steps of |total - 1|.
    """
    device = model.source_embedding.device
    sums = {(a.kind, a.layer): torch.zeros(len(a.heads), dtype=torch.float64) for a in model.attentions(*KINDS)}
    deviations: dict[str, list[Tensor]] = {}
    steps = 0
    longest = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(longest, kind="stable")
    widest = max(model.architecture.feed_forward, model.architecture.width)
    batches = cut(longest[order] ** 2, order, BATCH_FLOATS // widest)
    for sentences in progress(batches, what="relevance", unit="batch"):
        batch = make_batch(store, sentences).to(device)
        result = propagate(model, batch, epsilon=epsilon)
        for key, heads in result.heads.items():
            real = heads[result.steps].double()  # (steps, H)
            scale = real.abs().sum(-1, keepdim=True)
            sums[key] += torch.where(scale > 0, real / scale, 0.0).sum(0).cpu()
        for level, value in result.totals.items():
            deviations.setdefault(level, []).append((value[result.steps] - 1).abs().cpu())
        steps += int(result.steps.sum())
    conservation = {level: float(torch.cat(parts).median()) for level, parts in deviations.items()}
    return {key: (value / steps).numpy() for key, value in sums.items()}, conservation
