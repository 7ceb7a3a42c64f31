"""Gradient × input at the heads' outputs: how fast the top-1 logit grows as a head's output is scaled up, over the logit.

The derivative goes through softmax, LayerNorm and ReLU as they are, so nothing is conserved from level to level. `totals` holds
the sum of x · ∂logit/∂x over the level, relative to the logit.
"""

import torch

from specialized_heads.heads.relevance.propagate import Relevance
from specialized_heads.model.attention import Activations
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch


def gradient_input(model: Transformer, batch: Batch, *, steps: slice = slice(None)) -> Relevance:
    """Gradient × input of all heads for the top-1 prediction of each generation step of a batch (reference prefixes).

    Each step has its own copy of the sentence, so one backward pass yields the gradients of all steps.

    Args:
        model: in evaluation mode, without gates.
        batch: teacher-forced sentences.
        steps: the generation steps to explain.
    """
    real = batch.real(batch.target_out)[:, steps]
    b, n = real.shape
    result = Relevance(steps=real)
    activations: Activations = {}
    with torch.enable_grad():
        memory, attn_mask = model.encode(batch.source.repeat_interleave(n, 0), activations)
        states = model.decode(batch.target_in.repeat_interleave(n, 0), memory, attn_mask, activations)  # (B * N, T, D)
        positions = torch.arange(states.shape[1], device=states.device)[steps].repeat(b)
        logits = model.logits(states[torch.arange(b * n, device=states.device), positions]).amax(-1)  # (B * N,)
        inputs = {(a.kind, a.layer): activations[a.kind, a.layer, "context"] for a in model.attentions() if a.heads}
        inputs |= {
            f"encoder {layer + 1}": activations["encoder", layer, "residual"] for layer in range(len(model.encoder))
        }
        inputs |= {"decoder 1": activations["decoder", 0, "residual"], "memory": memory}
        gradients = torch.autograd.grad(logits.sum(), list(inputs.values()), allow_unused=True)
    scale = logits.detach().view(b, n)
    sums = {
        key: (x.detach() * gradient).sum((-1, -2)).unflatten(0, (b, n))
        for (key, x), gradient in zip(inputs.items(), gradients, strict=True)
        if gradient is not None
    }
    for a in model.attentions():
        key = a.kind, a.layer
        result.heads[key] = sums[key] / scale[..., None] if key in sums else scale.new_zeros(b, n, len(a.heads))
    result.totals["decoder 1"] = (sums["decoder 1"] + sums.get("memory", 0.0)) / scale
    for layer in reversed(range(len(model.encoder))):
        level = f"encoder {layer + 1}"
        result.totals[level] = (sums["decoder 1"] + sums.get(level, 0.0)) / scale
    return result
