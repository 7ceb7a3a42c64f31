"""Layer-wise relevance propagation through the Transformer (section 4, appendix A; Ding et al. 2017).

Each generation step starts with relevance 1 at its top-1 logit, and each neuron divides its relevance among its inputs by a rule
(`rules.py`). Non-linearities are ignored: LayerNorm, before or after a sub-layer, and activations pass relevance through
unchanged, and attention weights are the constant weights of a sum over values. Only the rule "attention" (AttnLRP, Achtibat et
al. 2024) splits a product of two variables evenly: between values and weights, and behind the softmax between queries and keys
(proposition 3.3, eq. 15). The softmax s passes R_i = x_i (R_i - s_i Σ_j R_j) to its scores x (proposition 3.1, eq. 13), which
does not conserve relevance.

All generation steps of a batch are propagated at once, on an axis of their own, in the precision of the model.

Shapes: B sentences, N generation steps, T target and S source tokens, P either, H heads, K width of a head, D width.
"""

import math
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
    """Relevance of all heads for the top-1 prediction of each generation step of a batch (reference prefixes).

    Args:
        model: in evaluation mode, without gates.
        batch: teacher-forced sentences.
        rule: how neurons divide their relevance.
        steps: the generation steps to explain.
    """
    activations: Activations = {}
    states = model(batch.source, batch.target_in, activations)
    result = Relevance(steps=batch.real(batch.target_out)[:, steps])
    memory = torch.zeros((), device=states.device)  # relevance of the encoder's output, from all decoder layers

    positions = torch.arange(states.shape[1], device=states.device)[steps]
    # The row of W of the top-1 logit, (B, N, D).
    best = model.logits(states[:, steps]).argmax(-1)
    top = model.output_embedding[best]
    shares = states[:, steps] * top
    logit, size = shares.sum(-1, keepdim=True), shares.abs().sum(-1, keepdim=True)
    if model.output_bias is not None and rule.bias:
        bias = model.output_bias[best][..., None]
        logit, size = logit + bias, size + bias.abs()
    shares = divide(shares, rule.ratios(logit, size))
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


def through_linear(x: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor, rule: Rule) -> Tensor:
    """Relevance of the inputs of a matrix product, appendix A.

    Args:
        x: inputs (B, P, I).
        weight: (O, I), as in `x @ weight.T`.
        bias: (O,); one more input if the rule gives biases a share.
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


def through_feed_forward(module: FeedForward, activations: Activations, relevance: Tensor, rule: Rule) -> Tensor:
    """From the output of a feed-forward sub-layer and its residual sum to its input (B, N, P, D)."""
    relevance, update = through_residual(module.name, module.layer, activations, relevance, rule)
    x, hidden = (activations[module.name, module.layer, name] for name in ("input", "hidden"))
    inner = through_linear(hidden, module.contract.weight, module.contract.bias, update, rule)
    return relevance + through_linear(x, module.expand.weight, module.expand.bias, inner, rule)


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
        # The update is the output bias: where biases take no share, its relevance stays in the residual stream.
        return nothing if module.output_bias is None or rule.bias else relevance, nothing
    context = activations[kind, layer, "context"]  # (B, H, T, K)
    outputs = through_linear(context.transpose(1, 2).flatten(2), module.output, module.output_bias, relevance, rule)
    outputs = split(outputs, module)  # (B, N, H, T, K)
    result.heads[kind, layer] = outputs.sum((-1, -2))

    weights, values = activations[kind, layer, "weights"], activations[kind, layer, "values"]
    of_weights, of_values = through_product(weights, values, outputs, rule)
    keys_input = activations[kind, layer, "keys_input"]
    if rule.name != "attention":
        return nothing, through_linear(keys_input, module.value, module.value_bias, join(of_values), rule)
    x = activations[kind, layer, "input"]
    query, key, _ = module.project(x, None if keys_input is x else keys_input)
    query = query / math.sqrt(module.head_width)
    scores = (query @ key.transpose(-1, -2))[:, None]  # where attention is not allowed, weights have no relevance
    # Weights and values share equally; fixed weights depend on no input.
    share = relevance.new_tensor([0.0 if module.is_fixed(head) else 0.5 for head in module.heads])[:, None, None]
    of_weights, of_values = of_weights * share, of_values * (1 - share)
    of_scores = scores * (of_weights - weights[:, None] * of_weights.sum(-1, keepdim=True))  # AttnLRP, eq. 13
    of_queries, of_keys = through_product(query, key.transpose(-1, -2), of_scores, rule)
    of_queries, of_keys = of_queries / 2, of_keys.transpose(-1, -2) / 2
    to_keys = through_linear(keys_input, module.key, module.key_bias, join(of_keys), rule)
    to_keys += through_linear(keys_input, module.value, module.value_bias, join(of_values), rule)
    return through_linear(x, module.query, module.query_bias, join(of_queries), rule), to_keys


def through_product(a: Tensor, b: Tensor, relevance: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """Relevance of each factor of a product of two variables, with the other factor taken as constant.

    Args:
        a, b: factors (B, H, T, I) and (B, H, I, O).
        relevance: of a @ b (B, N, H, T, O).

    Returns:
        relevance of a (B, N, H, T, I) and of b (B, N, H, I, O), each summing to the whole.
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
