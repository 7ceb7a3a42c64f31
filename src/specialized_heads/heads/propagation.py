"""Layer-wise relevance propagation through the Transformer (section 4, appendix A; Ding et al.
2017).

Each generation step starts with relevance 1 at its top-1 logit, and each neuron divides its
relevance among the contributions that it sums: matrix products, weighted sums of values, residual
connections. A neuron z = Σ c_u of relevance R gives its input u

    R_u = (m c_u + d |c_u|) R,    m and d functions of z and of size = Σ |c_u|,    Σ R_u = R,

so every rule costs at most two matrix products, one with the weights and one with their absolute
values.

    z_plus      alpha_beta with α = 1: c_u⁺ / Σ c⁺, positive contributions only
                (Montavon et al. 2017)
    alpha_beta  α c_u⁺ / Σ c⁺ + (1 - α) c_u⁻ / Σ c⁻ (Bach et al. 2015, eq. 60). Both ratios are
                positive, so with α up to 1 no share is negative. Contributions that all have one
                sign share R among themselves
    epsilon     weight ratios (appendix A): c_u / (z + ε sign z). With ε > 0 the share ε / (|z| + ε)
                of R would be lost; it goes to the inputs in proportion to |c_u|. Shares can be
                negative, and large where contributions cancel

Non-linearities are ignored: LayerNorm, before or after a sub-layer, and activations pass relevance
through unchanged, and attention weights are the constant weights of a sum over values. Biases take
no share.

Steps of many sentences are propagated at once, on an axis of their own, in the precision of the
model. What a sentence computes and how it divides relevance is the same for all of its steps.

Shapes: B sentences, N generation steps, T target and S source tokens, P either, H heads, K width of
a head, D width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.transformer import FeedForward, Transformer
from specialized_heads.training.batching import Batch

TINY = 1e-20  # neurons whose contributions are smaller than this in total get no relevance
# A sign with a smaller share of all contributions counts as absent: float32 cannot tell it from
# rounding.
ABSENT = 1e-5


@dataclass(frozen=True)
class Rule:
    """A rule and its parameters.

    name: "z_plus", "alpha_beta" or "epsilon".
    alpha: weight of positive contributions in "alpha_beta".
    epsilon: stabiliser of "epsilon"; 0: none.
    """

    name: str
    alpha: float = 1.0
    epsilon: float = 0.0

    @classmethod
    def named(cls, name: str) -> "Rule":
        """The rule of this name as the configuration offers it; alpha_beta as in the paper's code
        since November 2020."""
        return cls(name, alpha=0.5 if name == "alpha_beta" else 1.0, epsilon=0.1)

    def ratios(self, z: Tensor, size: Tensor) -> tuple[Tensor, Tensor | None]:
        """m and d for neurons z; d is None where it is zero."""
        if self.name == "epsilon":
            sign = torch.where(z < 0, -1.0, 1.0).to(z.dtype)  # zero counts as positive
            m = 1 / (z + max(self.epsilon, TINY) * sign)
            return m, self.epsilon * sign * m / (size + TINY) if self.epsilon else None
        if self.name == "z_plus":  # as below with α = 1, in fewer operations
            twice = size + z  # 2 Σ c⁺
            negative = twice <= 2 * ABSENT * size  # no contribution is positive
            d = twice.where(~negative, 2 * size).add_(TINY).reciprocal_()
            return d.where(~negative, -d), d
        positive, negative = (size + z) / 2, (size - z) / 2  # Σ c⁺ and -Σ c⁻
        p = self.alpha / (positive + TINY)  # R_u / R per unit of c⁺
        q = (1 - self.alpha) / (negative + TINY)  # and per unit of |c⁻|
        one_sign = torch.minimum(positive, negative) <= ABSENT * size
        p = torch.where(one_sign, (positive > negative) / (size + TINY), p)
        q = torch.where(one_sign, (positive <= negative) / (size + TINY), q)
        return (p - q) / 2, (p + q) / 2


def divide(x: Tensor, ratios: tuple[Tensor, Tensor | None]) -> Tensor:
    """The share m c + d |c| of contributions c, one per neuron."""
    m, d = ratios
    return x * m if d is None else x * m + x.abs() * d


@dataclass
class Relevance:
    """Relevance of N generation steps by one rule.

    heads: (N, H) per (attention type, layer): summed over the neurons of each head's output, before
    W^O.
    totals: (N,) by name of the level, from the logit down: relevance summed over all neurons; 1 if
    conserved.
    """

    heads: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    totals: dict[str, Tensor] = field(default_factory=dict)


@torch.inference_mode()
def propagate(
    model: Transformer, batch: Batch, *, rules: Sequence[Rule], rows: Tensor, positions: Tensor
) -> list[Relevance]:
    """Relevance of all heads for the top-1 predictions of N generation steps, by each rule.

    Args:
        rows: the sentence of each step, as its row in the batch (N,).
        positions: the last token of the reference that each step sees, from 0 for the start token
        (N,).
    """
    activations: Activations = {}
    states = model(batch.source, batch.target_in, activations)
    seen = states[rows, positions]
    # Contributions to the top-1 logit, (N, D).
    logit = seen * model.output_embedding[model.logits(seen).argmax(-1)]
    z, size = logit.sum(-1, keepdim=True), logit.abs().sum(-1, keepdim=True)
    found = []
    for rule in rules:
        relevance = states.new_zeros(len(rows), *states.shape[1:])  # (N, T, D)
        shares = divide(logit, rule.ratios(z, size))
        relevance[torch.arange(len(rows), device=states.device), positions] = shares
        found.append(to_embeddings(model, activations, relevance, rule, rows))
    return found


def to_embeddings(
    model: Transformer, activations: Activations, relevance: Tensor, rule: Rule, rows: Tensor
) -> Relevance:
    """From the decoder's output (N, T, D) down to the embeddings."""
    result, how = Relevance(), (rule, rows)
    # Relevance of the encoder's output, from all decoder layers.
    memory = torch.zeros((), device=relevance.device)
    for layer in reversed(model.decoder):
        number = layer.layer
        relevance = through_feed_forward(layer.feed_forward, activations, relevance, *how)
        relevance, update = through_residual("cross", number, activations, relevance, *how)
        to_queries, to_keys = through_attention(layer.cross, activations, update, *how, result)
        relevance, memory = relevance + to_queries, memory + to_keys
        relevance, update = through_residual("decoder", number, activations, relevance, *how)
        below = through_attention(layer.attention, activations, update, *how, result)
        relevance = relevance + sum(below)
        result.totals[f"decoder {number + 1}"] = total(relevance) + total(memory)
    from_target = total(relevance)
    relevance = memory
    for layer in reversed(model.encoder):
        number, heads = layer.layer, len(layer.attention.heads)
        if relevance.dim():  # a decoder without cross-attention heads sends no relevance here
            relevance = through_feed_forward(layer.feed_forward, activations, relevance, *how)
            relevance, update = through_residual("encoder", number, activations, relevance, *how)
            below = through_attention(layer.attention, activations, update, *how, result)
            relevance = relevance + sum(below)
        else:
            result.heads["encoder", number] = relevance.new_zeros(len(rows), heads)
        result.totals[f"encoder {number + 1}"] = from_target + total(relevance)
    return result


def through_residual(
    kind: str, layer: int, activations: Activations, relevance: Tensor, rule: Rule, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Divide the relevance (N, P, D) of a residual sum between the stream and the update."""
    residual, update = activations[kind, layer, "residual"], activations[kind, layer, "update"]
    ratios = rule.ratios(residual + update, residual.abs() + update.abs())
    below, aside = (of_steps(divide(x, ratios), rows).mul_(relevance) for x in (residual, update))
    return below, aside


def through_linear(
    x: Tensor, weight: Tensor, relevance: Tensor, rule: Rule, rows: Tensor
) -> Tensor:
    """Relevance of the inputs of a matrix product, appendix A.

    Args:
        x: inputs (B, P, I).
        weight: (O, I), as in `x @ weight.T`.
        relevance: of the outputs (N, P, O).

    Returns:
        relevance of the inputs (N, P, I).
    """
    m, d = rule.ratios(x @ weight.T, x.abs() @ weight.abs().T)
    # Behind a ReLU, positive weights have all that z_plus divides. To ask a GPU would take longer
    # than the product saved.
    if d is not None and not x.is_cuda and x.min() >= 0 and torch.equal(m, d):
        return (of_steps(m + d, rows).mul_(relevance) @ weight.clamp(min=0)).mul_(of_steps(x, rows))
    inputs = (of_steps(m, rows).mul_(relevance) @ weight).mul_(of_steps(x, rows))
    if d is None:
        return inputs
    sizes = of_steps(d, rows).mul_(relevance) @ weight.abs()
    return inputs.addcmul_(sizes, of_steps(x.abs(), rows))


def through_feed_forward(
    module: FeedForward, activations: Activations, relevance: Tensor, rule: Rule, rows: Tensor
) -> Tensor:
    """From the output of a feed-forward sub-layer and its residual sum to its input (N, P, D)."""
    place = (module.name, module.layer)
    relevance, update = through_residual(*place, activations, relevance, rule, rows)
    x, hidden = (activations[*place, name] for name in ("input", "hidden"))
    inner = through_linear(hidden, module.contract.weight, update, rule, rows)
    return relevance + through_linear(x, module.expand.weight, inner, rule, rows)


def through_attention(
    module: MultiHeadAttention,
    activations: Activations,
    relevance: Tensor,
    rule: Rule,
    rows: Tensor,
    result: Relevance,
) -> tuple[Tensor, Tensor]:
    """From an attention update to the inputs of queries and of keys and values; stores the
    relevance of heads in `result`.

    Returns:
        relevance (N, T, D) of the queries' input and (N, S, D) of the keys' and values' input; a
        scalar 0 for none.
    """
    kind, layer = module.kind, module.layer
    nothing = relevance.new_zeros(())
    if not module.heads:
        result.heads[kind, layer] = relevance.new_zeros(len(rows), 0)
        return relevance, nothing  # of the output bias, if there is one: biases take no share
    # (B, H, T, K) -> (B, T, H*K)
    context = activations[kind, layer, "context"].transpose(1, 2).flatten(2)
    outputs = through_linear(context, module.output, relevance, rule, rows)
    # (N, T, H*K) -> (N, H, T, K)
    outputs = outputs.unflatten(-1, (len(module.heads), -1)).transpose(1, 2)
    result.heads[kind, layer] = outputs.sum((-1, -2))
    weights, values = activations[kind, layer, "weights"], activations[kind, layer, "values"]
    # (N, H, S, K) -> (N, S, H*K)
    values = through_sum(weights, values, outputs, rule, rows).transpose(1, 2).flatten(2)
    keys = activations[kind, layer, "keys_input"]
    return nothing, through_linear(keys, module.value, values, rule, rows)


def through_sum(
    weights: Tensor, values: Tensor, relevance: Tensor, rule: Rule, rows: Tensor
) -> Tensor:
    """Relevance of the values (N, H, S, K) of a sum with constant weights.

    Args:
        weights: (B, H, T, S), none negative.
        values: (B, H, S, K).
        relevance: of weights @ values (N, H, T, K).
    """
    m, d = rule.ratios(weights @ values, weights @ values.abs())
    back = of_steps(weights, rows).transpose(-1, -2)
    inputs = (back @ of_steps(m, rows).mul_(relevance)).mul_(of_steps(values, rows))
    if d is None:
        return inputs
    sizes = back @ of_steps(d, rows).mul_(relevance)
    return inputs.addcmul_(sizes, of_steps(values.abs(), rows))


def of_steps(x: Tensor, rows: Tensor) -> Tensor:
    """What each step finds in its sentence, in new memory: (B, ...) -> (N, ...)."""
    return x.index_select(0, rows)


def total(relevance: Tensor) -> Tensor:
    """Relevance summed over positions and neurons: (N, P, D) -> (N,)."""
    return relevance.sum((-1, -2)) if relevance.dim() else relevance
