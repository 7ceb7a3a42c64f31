"""Gradient × input at the heads' outputs: how fast the top-1 logit grows as a head's output is scaled up, over the logit.

No propagation rule takes part: the derivative goes through softmax, LayerNorm and ReLU as they are. So nothing is conserved
from one level to the next; what x · ∂logit/∂x sums to at a level, over the logit, is reported in the same place.
"""

import torch

from specialized_heads.corpus.vocabulary import PAD
from specialized_heads.heads.relevance.propagate import Relevance
from specialized_heads.model.attention import Tape
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch


def gradient_input(model: Transformer, batch: Batch, *, steps: slice = slice(None)) -> Relevance:
    """Gradient × input of all heads for the top-1 prediction of each generation step of a batch (reference prefixes).

    Each step has a copy of its sentence to itself, so that one backward pass yields the gradients of all steps.

    Args:
        model: in evaluation mode, without gates.
        batch: teacher-forced sentences.
        steps: the generation steps asked for.
    """
    real = (batch.target_out != PAD)[:, steps]
    b, n = real.shape
    result = Relevance(steps=real)
    tape: Tape = {}
    with torch.enable_grad():
        memory, bias = model.encode(batch.source.repeat_interleave(n, 0), tape)
        states = model.decode(batch.target_in.repeat_interleave(n, 0), memory, bias, tape)  # (B * N, T, D)
        positions = torch.arange(states.shape[1], device=states.device)[steps].repeat(b)
        logits = model.logits(states[torch.arange(b * n, device=states.device), positions]).amax(-1)  # (B * N,)
        inputs = {
            key: tape[*key, "context"]
            for key in ((a.kind, a.layer) for a in model.attentions())
            if (*key, "context") in tape
        }
        levels = {f"encoder {layer + 1}": tape["encoder", layer, "residual"] for layer in range(len(model.encoder))}
        levels |= {"decoder 1": tape["decoder", 0, "residual"], "memory": memory}
        wanted = inputs | levels
        gradients = torch.autograd.grad(logits.sum(), list(wanted.values()), allow_unused=True)
    scale = logits.detach().view(b, n)
    parts = {
        key: (x.detach() * g).unflatten(0, (b, n)) if g is not None else x.new_zeros(b, n, *x.shape[1:])
        for (key, x), g in zip(wanted.items(), gradients, strict=True)
    }
    for attention in model.attentions():
        key = attention.kind, attention.layer
        of_heads = parts[key].sum((-1, -2)) if key in parts else scale.new_zeros(b, n, 0)
        result.heads[key] = of_heads / scale[..., None]
    sums = {level: parts[level].sum((-1, -2)) / scale for level in levels}
    result.totals["decoder 1"] = sums["decoder 1"] + sums["memory"]
    for layer in reversed(range(len(model.encoder))):
        result.totals[f"encoder {layer + 1}"] = sums["decoder 1"] + sums[f"encoder {layer + 1}"]
    return result
