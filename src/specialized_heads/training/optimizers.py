"""Which optimiser trains which parameters, and the learning rate at each update (appendix B.3)."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from specialized_heads.training.muon import Muon
from specialized_heads.training.plan import Plan


def make_optimizers(
    weights: dict[str, Tensor],
    log_alphas: list[Tensor],
    plan: Plan,
    *,
    peak: float,
    precision: str,
    map: Callable[..., Iterable[None]],
) -> list[torch.optim.Optimizer]:
    """The paper's Adam for all parameters; or Muon for the matrices of the layers and Adam for the others, always for log α.

    `peak`: highest learning rate of the schedule, which the `relative` of each group scales.
    """
    by_muon = {name for name in weights if plan.optimizer == "muon" and is_layer_matrix(name, weights[name])}
    others = [weight for name, weight in weights.items() if name not in by_muon]
    groups = [(others, 1.0), (log_alphas, plan.gate_learning_rate / peak)]
    groups = [{"params": params, "relative": relative} for params, relative in groups if params]
    optimizers: list[torch.optim.Optimizer] = []
    if groups:
        optimizers.append(torch.optim.Adam(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True))
    if by_muon:
        matrices = [weight for name, weight in weights.items() if name in by_muon]
        group = {"params": matrices, "relative": plan.muon_learning_rate / peak}
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        optimizers.append(Muon([group], lr=0.0, precision=dtype, map=map))
    return optimizers


def is_layer_matrix(name: str, parameter: Tensor) -> bool:
    """Whether a parameter is a weight matrix of an encoder or decoder layer: not an embedding, LayerNorm or bias."""
    return name.startswith(("encoder.", "decoder.")) and parameter.dim() == 2


def learning_rate(update: int, plan: Plan, *, width: int) -> float:
    """Learning rate of an update, counted from 1.

    "inverse_sqrt": factor · d^-½ · min(t^-½, t · warmup^-1.5), with d the width; the paper omits d^-½, its code has it (factor 4,
    warmup 16000, d 512: peak 1.40e-3). "linear": rises to the factor at `warmup`, then falls to zero after the last of `updates`.
    """
    factor, warmup, updates = plan.learning_rate, plan.warmup, plan.updates
    if plan.schedule == "inverse_sqrt":
        return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    return factor * min(update / warmup, (updates + 1 - update) / max(updates + 1 - warmup, 1))
