"""Muon (Jordan et al. 2024): SGD with momentum whose update matrix is orthogonalised.

Where all weights have gradients, the updates are those of `torch.optim.Muon` without weight decay, in any version of PyTorch.
Products run in the precision of the other matrix products, because bf16 is fifty times slower than float32 on a processor without
instructions for it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
STEPS = 5  # of the Newton-Schulz iteration
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of its polynomial; five steps take singular values into about [0.7, 1.2]


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
        """`matrices`: weights, none of them empty; `precision` of the products; `map` applies a function to each of them."""
        super().__init__(matrices, {"lr": lr})
        self.precision, self.map = precision, map

    @torch.no_grad()
    def step(self) -> None:
        """Update every matrix from its gradient."""
        for group in self.param_groups:
            list(self.map(partial(self._update, rate=group["lr"]), group["params"]))

    @torch.no_grad()  # holds for the calling thread only
    def _update(self, weight: Tensor, rate: float) -> None:
        """Update one matrix from the rows and columns that have a gradient."""
        # Rows and columns without a gradient, as of a head whose gate is closed, are as if absent: to orthogonalise what is left
        # of their momentum would move them as far as the others, in a direction that is mostly noise.
        rows, columns = (weight.grad.abs().amax(dim) != 0 for dim in (1, 0))
        if weight.is_cuda:
            self._update_masked(weight, rows, columns, rate)
            return
        if not rows.any():
            return
        place = ... if rows.all() and columns.all() else (rows.nonzero(), columns.nonzero()[:, 0])
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        gradient = weight.grad[place]
        average = state["momentum"][place].lerp_(gradient, 1 - MOMENTUM)
        # Of Nesterov's look-ahead gradient.
        direction = orthogonalise(gradient.lerp(average, MOMENTUM).to(self.precision))
        # Tall matrices take larger steps, so that each of their outputs changes as much as in a square matrix.
        step = rate * max(1.0, gradient.shape[0] / gradient.shape[1]) ** 0.5
        moved = weight[place].add_(direction, alpha=-step)
        if place is not ...:  # where the parts are copies
            state["momentum"][place], weight[place] = average, moved

    def _update_masked(self, weight: Tensor, rows: Tensor, columns: Tensor, rate: float) -> None:
        """As `_update`, but absent rows (R,) and columns (C,) are zeros: a GPU need not tell the host how many there are."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        present = rows[:, None] & columns
        average = state["momentum"].lerp(weight.grad, 1 - MOMENTUM)
        state["momentum"].copy_(torch.where(present, average, state["momentum"]))
        direction = orthogonalise((weight.grad.lerp(average, MOMENTUM) * present).to(self.precision))
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
