"""Muon (Jordan et al. 2024): SGD with momentum whose update matrix is orthogonalised.

Gives the updates of `torch.optim.Muon` without weight decay, in any version of PyTorch. Matrices of one shape are orthogonalised
in one batch. Products run in the precision of the other matrix products, because bf16 is fifty times slower than float32 on
a processor without instructions for it.
"""

from collections import defaultdict
from collections.abc import Iterable
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
    ) -> None:
        """
        Args:
            matrices: two-dimensional weights, none of them empty, or parameter groups of these.
            lr: learning rate.
            precision: of the products in the orthogonalisation.
        """
        super().__init__(matrices, {"lr": lr})
        self.precision = precision

    @torch.no_grad()
    def step(self) -> None:
        """Update every matrix from its gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for weight in group["params"]:
                by_shape[weight.shape].append(weight)
            for (rows, columns), weights in by_shape.items():
                directions = orthogonalise(torch.stack([self._momentum(w) for w in weights]).to(self.precision))
                # Tall matrices take larger steps, so that each of their outputs changes as much as in a square matrix.
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for weight, direction in zip(weights, directions, strict=True):
                    weight.add_(direction, alpha=-rate)

    def _momentum(self, weight: Tensor) -> Tensor:
        """Update the momentum of a weight and return Nesterov's look-ahead gradient."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        average = state["momentum"].lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(average, MOMENTUM)


def orthogonalise(matrices: Tensor) -> Tensor:
    """Move the singular values of each matrix (N, R, C) close to 1, by Newton-Schulz iteration."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
