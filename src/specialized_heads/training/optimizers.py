"""The learning rate at each update, and which optimiser trains which parameters (appendix B.3):
Adam, or Muon beside it.

Muon (Jordan et al. 2024) is SGD with momentum whose update matrix is orthogonalised. Where all
weights have gradients, its updates are those of `torch.optim.Muon` without weight decay. Products
run in the precision of the other matrix products, because bf16 is fifty times slower than float32
on a processor without instructions for it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from specialized_heads.experiment.sections import Training

MOMENTUM = 0.95
STEPS = 5  # of the Newton-Schulz iteration
# Of its polynomial; five steps take singular values into about [0.7, 1.2].
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def learning_rate(update: int, plan: Training, *, width: int) -> float:
    """Learning rate of an update, counted from 1.

    "inverse_sqrt": factor · d^-½ · min(t^-½, t · warmup^-1.5), with d the width; the paper omits
    d^-½, its code has it (factor 4, warmup 16000, d 512: peak 1.40e-3). "linear": rises to the
    factor at `warmup`, then falls to zero after the last of `updates`.
    """
    factor, warmup, updates = plan.learning_rate, plan.warmup, plan.updates
    if plan.schedule == "inverse_sqrt":
        return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    return factor * min(update / warmup, (updates + 1 - update) / max(updates + 1 - warmup, 1))


def make_optimizers(
    weights: dict[str, Tensor],
    plan: Training,
    *,
    gate_learning_rate: float,
    peak: float,
    precision: torch.dtype,
    map: Callable[..., Iterable[None]],
) -> list[torch.optim.Optimizer]:
    """The paper's Adam for all parameters; or Muon for the matrices of the layers and Adam for the
    others, always for log α.

    `peak`: highest learning rate of the schedule, which the `relative` of each group scales.
    `precision`, `map`: see `Muon`.
    """
    matrices, others, log_alphas = [], [], []
    for name, weight in weights.items():
        if name.endswith("gate.log_alpha"):
            log_alphas.append(weight)
        elif plan.optimizer == "muon" and is_layer_matrix(name, weight):
            matrices.append(weight)
        else:
            others.append(weight)
    groups = [(others, 1.0), (log_alphas, gate_learning_rate / peak)]
    groups = [{"params": params, "relative": relative} for params, relative in groups if params]
    optimizers: list[torch.optim.Optimizer] = []
    if groups:
        optimizers.append(torch.optim.Adam(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True))
    if matrices:
        group = {"params": matrices, "relative": plan.muon_learning_rate / peak}
        optimizers.append(Muon([group], lr=0.0, precision=precision, map=map))
    return optimizers


def is_layer_matrix(name: str, parameter: Tensor) -> bool:
    """Whether a parameter is a weight matrix of an encoder or decoder layer: not an embedding,
    LayerNorm or bias."""
    return name.startswith(("encoder.", "decoder.")) and parameter.dim() == 2


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum; `lr` is the spectral norm of the update of a square matrix."""

    def __init__(
        self,
        matrices: Iterable[Tensor] | Iterable[dict[str, Any]],
        *,
        lr: float,
        precision: torch.dtype = torch.float32,
        map: Callable[..., Iterable[None]] = map,
    ) -> None:
        """`matrices`: weights, none of them empty; `precision` of the products; `map` applies a
        function to each of them."""
        super().__init__(matrices, {"lr": lr})
        self.precision, self.map = precision, map

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            list(self.map(partial(self._update, rate=group["lr"]), group["params"]))

    @torch.no_grad()  # holds for the calling thread only
    def _update(self, weight: Tensor, rate: float) -> None:
        """Update one matrix from the rows and columns that have a gradient.

        The others, as of a head whose gate is closed, are as if absent: to orthogonalise what is
        left of their momentum would move them as far as the rest, in a direction that is mostly
        noise.
        """
        rows, columns = (weight.grad.abs().amax(dim) != 0 for dim in (1, 0))
        if not self.state[weight]:
            self.state[weight]["momentum"] = torch.zeros_like(weight)
        momentum = self.state[weight]["momentum"]
        if weight.is_cuda:
            self._update_masked(weight, momentum, rows, columns, rate)
        elif rows.all() and columns.all():
            self._update_whole(weight, momentum, weight.grad, rate)
        elif rows.any():
            place = rows.nonzero(), columns.nonzero()[:, 0]  # (rows, 1) and (columns,)
            part, part_momentum = weight[place], momentum[place]  # copies
            self._update_whole(part, part_momentum, weight.grad[place], rate)
            weight[place], momentum[place] = part, part_momentum

    def _update_whole(
        self, weight: Tensor, momentum: Tensor, gradient: Tensor, rate: float
    ) -> None:
        """Update a matrix (R, C) and its momentum from a gradient without zero rows and columns."""
        momentum.lerp_(gradient, 1 - MOMENTUM)
        ahead = gradient.lerp(momentum, MOMENTUM)  # Nesterov's look-ahead gradient
        direction = orthogonalise(ahead.to(self.precision))
        # Tall matrices take larger steps: each output changes as much as in a square matrix.
        weight.add_(direction, alpha=-rate * max(1.0, gradient.shape[0] / gradient.shape[1]) ** 0.5)

    def _update_masked(
        self, weight: Tensor, momentum: Tensor, rows: Tensor, columns: Tensor, rate: float
    ) -> None:
        """Update a matrix where absent rows (R,) and columns (C,) are zeros: a GPU need not tell
        the host how many there are."""
        present = rows[:, None] & columns
        average = momentum.lerp(weight.grad, 1 - MOMENTUM)
        momentum.copy_(torch.where(present, average, momentum))
        ahead = weight.grad.lerp(average, MOMENTUM) * present
        direction = orthogonalise(ahead.to(self.precision))
        step = rate * (rows.sum() / columns.sum().clamp(min=1)).clamp(min=1.0) ** 0.5
        weight.sub_(step * direction)


def orthogonalise(matrix: Tensor) -> Tensor:
    """Move the singular values of a matrix (R, C) close to 1, by Newton-Schulz iteration."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.mT if tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
