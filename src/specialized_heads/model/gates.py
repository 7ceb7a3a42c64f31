"""Hard Concrete gates on attention heads (section 6.1; Louizos et al. 2018).

A gate g multiplies the output of a head. One value is drawn per head and update, not per example,
so the model must work with whole heads missing. At test time the gate is a decision: 1 if g = 1 is
more likely than g = 0, else 0.
"""

import math

import torch
from torch import Tensor, nn

BETA = 0.33  # temperature of the Concrete distribution
LOW, HIGH = -0.1, 1.1  # stretch; clipping then puts probability mass on exactly 0 and 1
EPSILON = 1e-6  # keeps u away from 0 and 1, where its logit is infinite


class HardConcrete(nn.Module):
    """One gate per head of an attention sub-layer; the parameters log α (H,) stay in float32."""

    def __init__(self, heads: int, *, log_alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((heads,), log_alpha))
        # Constant value of each fixed gate; NaN: not fixed.
        self.register_buffer("fixed", torch.full((heads,), torch.nan))
        # The noise drawn last; u = 1/2 gives the median gate.
        self.register_buffer("noise", torch.full((heads,), 0.5), persistent=False)

    def fix(self, decisions: Tensor) -> None:
        """Turn each gate into a constant: 1 where `decisions` (H,) is true, else 0."""
        self.fixed.copy_(decisions)

    def decisions(self) -> Tensor:
        """Which heads stay (H,): the fixed value if there is one, else the rule `hard`."""
        return torch.where(self.fixed.isnan(), hard(self.log_alpha.detach()), self.fixed == 1)

    def open_probability(self) -> Tensor:
        """P(g ≠ 0) of each gate (H,): 0 or 1 once it is fixed."""
        return torch.where(self.fixed.isnan(), probability_open(self.log_alpha), self.fixed)

    def forward(self) -> Tensor:
        """Gates (H,): in training mode in [0, 1], from the noise drawn last; in evaluation mode the
        decisions, 0 or 1."""
        if self.training:
            return torch.where(self.fixed.isnan(), sample(self.log_alpha, self.noise), self.fixed)
        return self.decisions().float()


def draw(gates: list[HardConcrete], generator: torch.Generator) -> None:
    """Draw u ~ U(ε, 1-ε) for every head, to be used by all forward passes until the next draw.

    Random numbers come from the CPU, so that every device has the same, and go to a GPU in one
    piece.
    """
    sizes = [len(gate.noise) for gate in gates]
    u = EPSILON + (1 - 2 * EPSILON) * torch.rand(sum(sizes), generator=generator)
    device = gates[0].noise.device
    if device.type == "cuda":
        u = u.pin_memory().to(device, non_blocking=True)
    for gate, noise in zip(gates, u.split(sizes), strict=True):
        gate.noise.copy_(noise)


class Mask(nn.Module):
    """Constant gates, to ablate heads without removing them.

    The values are shared by all sentences (H,), or differ by sentence (B, H), which evaluates many
    masks in one pass.
    """

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values, persistent=False)

    def forward(self) -> Tensor:
        return self.values

    @property
    def by_sentence(self) -> bool:
        return self.values.dim() == 2

    def select(self, sentences: Tensor) -> None:
        """Keep the rows of these sentences of the batch if the values differ by sentence."""
        if self.by_sentence:
            self.values = self.values[sentences]


def sample(log_alpha: Tensor, u: Tensor) -> Tensor:
    """Hard Concrete gates from uniform noise u of the same shape, differentiable in log α."""
    return _stretched((torch.log(u) - torch.log1p(-u) + log_alpha) / BETA)


def probability_open(log_alpha: Tensor) -> Tensor:
    """P(g ≠ 0), elementwise; its sum over the gated heads is the penalty L_C (section 6.1)."""
    return torch.sigmoid(log_alpha - BETA * math.log(-LOW / HIGH))


def expected_open(gates: list[HardConcrete]) -> Tensor:
    """Expected number of open heads, L_C (section 6.1)."""
    return torch.stack([gate.open_probability().sum() for gate in gates]).sum()


def hard(log_alpha: Tensor) -> Tensor:
    """Decision at test time, as booleans: open iff log α > 0, that is, P(g=1) > P(g=0)."""
    return log_alpha > 0


def soft(log_alpha: Tensor) -> Tensor:
    """Gate without noise, in [0, 1]: the test-time gate of Louizos et al. (2018)."""
    return _stretched(log_alpha)


def _stretched(logit: Tensor) -> Tensor:
    """clip(1.2 σ(logit) - 0.1, 0, 1)."""
    return torch.clamp(torch.sigmoid(logit) * (HIGH - LOW) + LOW, 0.0, 1.0)
