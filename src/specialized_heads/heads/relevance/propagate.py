"""Layer-wise relevance propagation through the Transformer (section 4, appendix A; Ding et al. 2017).

Each generation step starts with relevance 1 at its top-1 logit, and neurons pass it down as the rule says (`rules.py`).
Non-linearities are ignored: LayerNorm and ReLU hand relevance through neuron by neuron, and attention weights count as the
constant weights of a sum over values. Only the rule "attention" (AttnLRP, Achtibat et al. 2024) gives a product of two
variables half to each: values and weights, through the softmax then queries and keys (proposition 3.3, eq. 15); the softmax
passes R_i = x_i (R_i - s_i Σ_j R_j) to its scores x, s being its outputs (proposition 3.1, eq. 13), which does not keep the
sum of relevance.

All generation steps of all sentences of a batch go through at once, as one more axis.

Shapes: B sentences, N generation steps, T target and S source tokens, P either, H heads, K width of a head, D width.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from specialized_heads.corpus.vocabulary import PAD
from specialized_heads.heads.relevance.rules import Rule, divide
from specialized_heads.model.attention import MultiHeadAttention, Tape
from specialized_heads.model.transformer import FeedForward, Transformer
from specialized_heads.training.batching import Batch


@dataclass
class Relevance:
    """Relevance of one batch.

    steps: (B, N) true for real generation steps, false for padding.
    heads: (B, N, H) per (attention type, layer): summed over the neurons of each head's output, before W^O.
    totals: (B, N) by name of the level, from the logit down: relevance summed over all neurons; 1 if conserved.
    """

    steps: Tensor
    heads: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    totals: dict[str, Tensor] = field(default_factory=dict)


@torch.inference_mode()
def propagate(model: Transformer, batch: Batch, *, rule: Rule, steps: slice = slice(None)) -> Relevance:
    """Relevance of all heads for the top-1 prediction of each generation step of a batch (reference prefixes).

    Args:
        model: in evaluation mode, without gates.
        batch: teacher-forced sentences.
        rule: how sums are divided.
        steps: the generation steps asked for.
    """
    tape: Tape = {}
    states = model(batch.source, batch.target_in, tape)
    result = Relevance(steps=(batch.target_out != PAD)[:, steps])
    memory = torch.zeros((), device=states.device)  # relevance of the encoder's output, from all decoder layers

    positions = torch.arange(states.shape[1], device=states.device)[steps]
    top = model.softmax_embedding[
        model.logits(states[:, steps]).argmax(-1)
    ]  # (B, N, D): the row of W of the top-1 logit
    shares = states[:, steps] * top
    shares = divide(shares, rule.ratios(shares.sum(-1, keepdim=True), shares.abs().sum(-1, keepdim=True)))
    relevance = states.new_zeros(*shares.shape[:2], *states.shape[1:])  # (B, N, T, D)
    relevance[:, torch.arange(len(positions), device=states.device), positions] = shares

    for layer in reversed(model.decoder):
        relevance = through_feed_forward(layer.feed_forward, tape, relevance, rule)
        relevance, update = through_residual("cross", layer.cross.layer, tape, relevance, rule)
        to_queries, to_keys = through_attention(layer.cross, tape, update, rule, result)
        relevance, memory = relevance + to_queries, memory + to_keys
        relevance, update = through_residual("decoder", layer.attention.layer, tape, relevance, rule)
        relevance = relevance + sum(through_attention(layer.attention, tape, update, rule, result))
        result.totals[f"decoder {layer.attention.layer + 1}"] = total(relevance) + total(memory)
    from_target = total(relevance)
    relevance = memory
    for layer in reversed(model.encoder):
        if relevance.dim():  # a decoder without cross-attention heads sends no relevance here
            relevance = through_feed_forward(layer.feed_forward, tape, relevance, rule)
            relevance, update = through_residual("encoder", layer.attention.layer, tape, relevance, rule)
            relevance = relevance + sum(through_attention(layer.attention, tape, update, rule, result))
        result.totals[f"encoder {layer.attention.layer + 1}"] = from_target + total(relevance)
    return result


def through_residual(kind: str, layer: int, tape: Tape, relevance: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """Divide relevance (B, N, P, D) of a sum between the residual stream and the update added to it."""
    residual, update = tape[kind, layer, "residual"], tape[kind, layer, "update"]
    ratios = rule.ratios(residual + update, residual.abs() + update.abs())
    return divide(residual, ratios)[:, None] * relevance, divide(update, ratios)[:, None] * relevance


def through_linear(x: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor, rule: Rule) -> Tensor:
    """Relevance of the inputs of a matrix product, appendix A.

    Args:
        x: inputs (B, P, I).
        weight: (O, I), as in `x @ weight.T`.
        bias: (O,); counts as one more input where the rule says so.
        relevance: of the outputs (B, N, P, O).

    Returns:
        relevance of the inputs (B, N, P, I).
    """
    z, size = x @ weight.T, x.abs() @ weight.abs().T
    if bias is not None and rule.bias:
        z, size = z + bias, size + bias.abs()
    m, d = rule.ratios(z, size)
    inputs = ((relevance * m[:, None]) @ weight).mul_(x[:, None])
    return inputs if d is None else inputs.addcmul_((relevance * d[:, None]) @ weight.abs(), x.abs()[:, None])


def through_feed_forward(module: FeedForward, tape: Tape, relevance: Tensor, rule: Rule) -> Tensor:
    """From the output of a feed-forward sub-layer and its residual sum to its input (B, N, P, D)."""
    relevance, update = through_residual(module.kind, module.layer, tape, relevance, rule)
    x, hidden = (tape[module.kind, module.layer, name] for name in ("input", "hidden"))
    inner = through_linear(hidden, module.contract.weight, module.contract.bias, update, rule)
    return relevance + through_linear(x, module.expand.weight, module.expand.bias, inner, rule)


def through_attention(
    module: MultiHeadAttention, tape: Tape, relevance: Tensor, rule: Rule, result: Relevance
) -> tuple[Tensor, Tensor]:
    """From an attention update to the inputs of its queries and of its keys and values, noting the heads on the way.

    Returns:
        relevance (B, N, T, D) of the queries' input and (B, N, S, D) of the keys' and values'; a scalar 0 where there is none.
    """
    kind, layer = module.kind, module.layer
    nothing = relevance.new_zeros(())
    if not module.heads:
        result.heads[kind, layer] = relevance.new_zeros(*relevance.shape[:2], 0)
        return nothing, nothing
    context = tape[kind, layer, "context"]  # (B, H, T, K)
    outputs = through_linear(context.transpose(1, 2).flatten(2), module.output, None, relevance, rule)
    outputs = split(outputs, module)  # (B, N, H, T, K)
    result.heads[kind, layer] = outputs.sum((-1, -2))

    weights, values = tape[kind, layer, "weights"], tape[kind, layer, "values"]
    of_weights, of_values = through_product(weights, values, outputs, rule)
    keys_input = tape[kind, layer, "keys_input"]
    if rule.name != "attention":
        return nothing, through_linear(keys_input, module.value, None, join(of_values), rule)
    x = tape[kind, layer, "input"]
    query, key, _ = module.project(x, None if keys_input is x else keys_input)
    query = query / math.sqrt(module.head_width)
    scores = (query @ key.transpose(-1, -2))[:, None]  # where attention is not allowed, weights have no relevance
    of_weights, of_values = of_weights / 2, of_values / 2
    of_scores = scores * (of_weights - weights[:, None] * of_weights.sum(-1, keepdim=True))  # AttnLRP, eq. 13
    of_queries, of_keys = through_product(query, key.transpose(-1, -2), of_scores, rule)
    of_queries, of_keys = of_queries / 2, of_keys.transpose(-1, -2) / 2
    to_keys = through_linear(keys_input, module.key, None, join(of_keys), rule)
    to_keys += through_linear(keys_input, module.value, None, join(of_values), rule)
    return through_linear(x, module.query, None, join(of_queries), rule), to_keys


def through_product(a: Tensor, b: Tensor, relevance: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """Relevance of either factor of a product of two variables, the other one taken as constant.

    Args:
        a, b: factors (B, H, T, I) and (B, H, I, O).
        relevance: of a @ b (B, N, H, T, O).

    Returns:
        relevance of a (B, N, H, T, I) and of b (B, N, H, I, O), each with the sum of the whole.
    """
    m, d = rule.ratios(a @ b, a.abs() @ b.abs())
    parts = [(a, b, m)] if d is None else [(a, b, m), (a.abs(), b.abs(), d)]
    of_a, of_b = 0.0, 0.0
    for left, right, ratio in parts:
        passed = relevance * ratio[:, None]
        if rule.name == "attention":
            of_a = of_a + left[:, None] * (passed @ right.transpose(-1, -2)[:, None])
        of_b = of_b + right[:, None] * (left.transpose(-1, -2)[:, None] @ passed)
    return of_a, of_b


def split(x: Tensor, module: MultiHeadAttention) -> Tensor:
    """(B, N, P, H*K) -> (B, N, H, P, K)"""
    return x.unflatten(-1, (len(module.heads), module.head_width)).transpose(2, 3)


def join(x: Tensor) -> Tensor:
    """(B, N, H, P, K) -> (B, N, P, H*K)"""
    return x.transpose(2, 3).flatten(3)


def total(relevance: Tensor) -> Tensor:
    """Relevance summed over positions and neurons: (B, N, P, D) -> (B, N)."""
    return relevance.sum((-1, -2)) if relevance.dim() else relevance
