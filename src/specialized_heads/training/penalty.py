"""Sparsity penalty on the gates during pruning: a given λ, or a controller of λ that reaches a number of heads.

With a given λ the gates decide how many heads stay, and small changes of λ can close all gates or none. docs/deviations.md
describes the controller. Its integral term is the multiplier of a Lagrangian (Wang et al. 2020, "Structured Pruning of Large
Language Models"); a negative λ opens gates again. Open heads are counted by the gates at their median noise, u = 1/2: this is
close to the number of log α > 0, the rule of the final decision, whereas the sum of P(open) exceeds it until log α of the
closed gates is far below 0. The controller only comes close to the number of heads; `fix_largest` keeps exactly that many.
"""

from dataclasses import dataclass

import torch

from specialized_heads.model.gates import HardConcrete, sample

REACHED = 0.05  # share of the updates after which the target is the number of heads
DECIDED = 0.3  # share of the updates after which gates become constants
# Gains of the controller in nats, for an error of all heads; the integral gain for an error that lasts the whole run.
PROPORTIONAL, INTEGRAL = 0.07, 2.0


@dataclass
class Lambda:
    """A constant λ."""

    lam: float

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Leave λ as it is, after update number `update`."""


@dataclass
class HeadCountController:
    """Sets λ so that the number of open heads follows the target.

    `lam` and `integral` are its state, which a resumed run restores.
    """

    heads: int
    updates: int  # of the whole run
    lam: float = 0.0
    integral: float = 0.0

    @property
    def decision(self) -> int:
        """The update after which the gates are fixed; λ is 0 from then on."""
        return max(1, int(DECIDED * self.updates))

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set λ of the next update, or fix the gates, after update number `update`."""
        if update >= self.decision:
            self.lam = 0.0
            if update == self.decision:
                fix_largest(gates, self.heads)
            return
        log_alpha = torch.cat([gate.log_alpha.detach() for gate in gates])
        share = min(1.0, update / (REACHED * self.updates))
        target = len(log_alpha) + share * (self.heads - len(log_alpha))
        median = sample(log_alpha, torch.full_like(log_alpha, 0.5))
        error = (float(median.sum()) - target) / len(log_alpha)
        self.integral += error / self.updates
        self.lam = PROPORTIONAL * error + INTEGRAL * self.integral


# Their attributes are plain numbers, which are saved with the state of a run.
Penalty = Lambda | HeadCountController


def fix_largest(gates: list[HardConcrete], count: int) -> None:
    """Fix the `count` gates with the largest log α at 1, the first ones where values are equal, and all others at 0."""
    log_alpha = torch.cat([gate.log_alpha.detach() for gate in gates])
    order = torch.sort(log_alpha, descending=True, stable=True).indices
    chosen = torch.zeros(len(log_alpha), dtype=torch.bool, device=log_alpha.device)
    chosen[order[:count]] = True
    for gate, decisions in zip(gates, chosen.split([len(gate.log_alpha) for gate in gates]), strict=True):
        gate.fix(decisions)
