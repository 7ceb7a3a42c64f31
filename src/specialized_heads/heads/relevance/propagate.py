"""Layer-wise relevance propagation through the Transformer (section 4, appendix A; Ding et al. 2017).

Each generation step starts with relevance 1 at its top-1 logit, and each neuron divides its relevance among its inputs by a rule
(`rules.py`). Non-linearities are ignored: LayerNorm, before or after a sub-layer, and activations pass relevance through
unchanged, and attention weights are the constant weights of a sum over values. Biases take no share.

All generation steps of a batch are propagated at once, on an axis of their own, in the precision of the model.

Shapes: B sentences, N generation steps, T target and S source tokens, P either, H heads, K width of a head, D width.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from specialized_heads.heads.relevance.rules import Rule, divide
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.layers import FeedForward
from specialized_heads.model.transformer import Transformer
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
    """Relevance of all heads for the top-1 prediction of each of these generation steps of a batch (reference prefixes)."""
    activations: Activations = {}
    states = model(batch.source, batch.target_in, activations)
    result = Relevance(steps=batch.real(batch.target_out)[:, steps])
    memory = torch.zeros((), device=states.device)  # relevance of the encoder's output, from all decoder layers

    positions = torch.arange(states.shape[1], device=states.device)[steps]
    # Contributions to the top-1 logit, (B, N, D).
    shares = states[:, steps] * model.output_embedding[model.logits(states[:, steps]).argmax(-1)]
    shares = divide(shares, rule.ratios(shares.sum(-1, keepdim=True), shares.abs().sum(-1, keepdim=True)))
    relevance = states.new_zeros(*shares.shape[:2], *states.shape[1:])  # (B, N, T, D)
    relevance[:, torch.arange(len(positions), device=states.device), positions] = shares

    for layer in reversed(model.decoder):
        relevance = through_feed_forward(layer.feed_forward, activations, relevance, rule)
        relevance, update = through_residual("cross", layer.cross.layer, activations, relevance, rule)
        to_queries, to_keys = through_attention(layer.cross, activations, update, rule, result)
        relevance, memory = relevance + to_queries, memory + to_keys
        relevance, update = through_residual("decoder", layer.attention.layer, activations, relevance, rule)
        relevance = relevance + sum(through_attention(layer.attention, activations, update, rule, result))
        result.totals[f"decoder {layer.attention.layer + 1}"] = total(relevance) + total(memory)
    from_target = total(relevance)
    relevance = memory
    for layer in reversed(model.encoder):
        if relevance.dim():  # a decoder without cross-attention heads sends no relevance here
            relevance = through_feed_forward(layer.feed_forward, activations, relevance, rule)
            relevance, update = through_residual("encoder", layer.attention.layer, activations, relevance, rule)
            relevance = relevance + sum(through_attention(layer.attention, activations, update, rule, result))
        result.totals[f"encoder {layer.attention.layer + 1}"] = from_target + total(relevance)
    return result


def through_residual(
    kind: str, layer: int, activations: Activations, relevance: Tensor, rule: Rule
) -> tuple[Tensor, Tensor]:
    """Divide the relevance (B, N, P, D) of a residual sum between the residual stream and the update."""
    residual, update = activations[kind, layer, "residual"], activations[kind, layer, "update"]
    ratios = rule.ratios(residual + update, residual.abs() + update.abs())
    return divide(residual, ratios)[:, None] * relevance, divide(update, ratios)[:, None] * relevance


def through_linear(x: Tensor, weight: Tensor, relevance: Tensor, rule: Rule) -> Tensor:
    """Relevance of the inputs of a matrix product, appendix A.

    Args:
        x: inputs (B, P, I).
        weight: (O, I), as in `x @ weight.T`.
        relevance: of the outputs (B, N, P, O).

    Returns:
        relevance of the inputs (B, N, P, I).
    """
    m, d = rule.ratios(x @ weight.T, x.abs() @ weight.abs().T)
    # Behind a ReLU, positive weights have all that z_plus divides.
    if d is not None and x.min() >= 0 and torch.equal(m, d):
        return ((relevance * (m + d)[:, None]) @ weight.clamp(min=0)).mul_(x[:, None])
    inputs = ((relevance * m[:, None]) @ weight).mul_(x[:, None])
    return inputs if d is None else inputs.addcmul_((relevance * d[:, None]) @ weight.abs(), x.abs()[:, None])


def through_feed_forward(module: FeedForward, activations: Activations, relevance: Tensor, rule: Rule) -> Tensor:
    """From the output of a feed-forward sub-layer and its residual sum to its input (B, N, P, D)."""
    relevance, update = through_residual(module.name, module.layer, activations, relevance, rule)
    x, hidden = (activations[module.name, module.layer, name] for name in ("input", "hidden"))
    inner = through_linear(hidden, module.contract.weight, update, rule)
    return relevance + through_linear(x, module.expand.weight, inner, rule)


def through_attention(
    module: MultiHeadAttention, activations: Activations, relevance: Tensor, rule: Rule, result: Relevance
) -> tuple[Tensor, Tensor]:
    """From an attention update to the inputs of queries and of keys and values; stores the relevance of heads in `result`.

    Returns:
        relevance (B, N, T, D) of the queries' input and (B, N, S, D) of the keys' and values' input; a scalar 0 for none.
    """
    kind, layer = module.kind, module.layer
    nothing = relevance.new_zeros(())
    if not module.heads:
        result.heads[kind, layer] = relevance.new_zeros(*relevance.shape[:2], 0)
        return relevance, nothing  # of the output bias, if there is one: biases take no share
    context = activations[kind, layer, "context"].transpose(1, 2).flatten(2)  # (B, H, T, K) -> (B, T, H*K)
    outputs = through_linear(context, module.output, relevance, rule)
    outputs = outputs.unflatten(-1, (len(module.heads), -1)).transpose(2, 3)  # (B, N, T, H*K) -> (B, N, H, T, K)
    result.heads[kind, layer] = outputs.sum((-1, -2))
    weights, values = activations[kind, layer, "weights"], activations[kind, layer, "values"]
    values = through_sum(weights, values, outputs, rule).transpose(2, 3).flatten(3)  # (B, N, H, S, K) -> (B, N, S, H*K)
    return nothing, through_linear(activations[kind, layer, "keys_input"], module.value, values, rule)


def through_sum(weights: Tensor, values: Tensor, relevance: Tensor, rule: Rule) -> Tensor:
    """Relevance of the values (B, N, H, S, K) of a sum with constant weights.

    Args:
        weights: (B, H, T, S), none negative.
        values: (B, H, S, K).
        relevance: of weights @ values (B, N, H, T, K).
    """
    m, d = rule.ratios(weights @ values, weights @ values.abs())
    back = weights.transpose(-1, -2)[:, None]
    inputs = (back @ (relevance * m[:, None])).mul_(values[:, None])
    return inputs if d is None else inputs.addcmul_(back @ (relevance * d[:, None]), values.abs()[:, None])


def total(relevance: Tensor) -> Tensor:
    """Relevance summed over positions and neurons: (B, N, P, D) -> (B, N)."""
    return relevance.sum((-1, -2)) if relevance.dim() else relevance
