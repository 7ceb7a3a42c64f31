"""What presses on the gates during pruning: a λ that is given, or one that is steered to a number of heads.

λ says what a head costs and leaves it to the gates how many stay; small changes of λ close all gates or none. A number of
heads says what is wanted, and λ follows from it: the heads open now are compared with a target that falls from all of
them to that number, and λ is a proportional-integral controller's answer to the difference. Its integral is the
multiplier of a Lagrangian (as in Wang et al. 2020, "Structured Pruning of Large Language Models"). A negative λ opens
gates again. The heads open now are counted by the gates at their median noise, u = 1/2: that is nearly the number of
log α > 0, by which gates are decided; the sum of P(open) is far above it until closed gates are far below 0.

Gates are then not what a user asked for yet, only near. After `DECIDED` of the updates the heads with the largest log α
are chosen, exactly as many as asked for; their gates become 1 and all others 0, and what is left of the updates trains the
weights of this very configuration. Nothing is rounded at the end.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from specialized_heads.model.gates import HardConcrete, sample

REACHED = 0.45  # share of the updates after which the target is the number of heads
DECIDED = 0.65  # share of the updates after which gates become constants
# λ in nats, for an error of all heads: at once, and for an error that lasts for as many updates as the whole run has.
PROPORTIONAL, INTEGRAL = 0.07, 0.4


@dataclass
class Lambda:
    """A given λ, from the first update on or growing linearly from zero."""

    value: float
    warmup: int  # updates until λ is whole; 0: from the start
    weight: float = field(init=False)

    def __post_init__(self) -> None:
        self.advance(0, [])

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set λ of the next update."""
        self.weight = self.value * min(1.0, (update + 1) / max(self.warmup, 1))


@dataclass
class Steering:
    """A λ that leads the gates to a number of heads, and the decision for exactly so many.

    `weight` and `integral` are its state: with them a run goes on as if it had never been broken off.
    """

    heads: int
    updates: int  # of the whole run
    weight: float = 0.0
    integral: float = 0.0

    @property
    def decision(self) -> int:
        """The update after which the gates become constants."""
        return max(1, int(DECIDED * self.updates))

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set λ of the next update; after update `decision` fix the gates."""
        log_alpha = torch.cat([gate.log_alpha.detach() for gate in gates])
        if update == self.decision:
            chosen = largest(log_alpha, self.heads)
            for gate, own in zip(gates, chosen.split([len(gate.log_alpha) for gate in gates]), strict=True):
                gate.fix(own)
        if update >= self.decision:
            self.weight = 0.0
            return
        share = min(1.0, update / (REACHED * self.updates))
        target = len(log_alpha) + share * (self.heads - len(log_alpha))
        median = sample(log_alpha, torch.full_like(log_alpha, 0.5))
        error = (float(median.sum()) - target) / len(log_alpha)
        self.integral += error / self.updates
        self.weight = PROPORTIONAL * error + INTEGRAL * self.integral


def largest(log_alpha: Tensor, count: int) -> Tensor:
    """The `count` largest values as booleans, the first ones where values are equal."""
    order = torch.sort(log_alpha, descending=True, stable=True).indices
    chosen = torch.zeros(len(log_alpha), dtype=torch.bool, device=log_alpha.device)
    chosen[order[:count]] = True
    return chosen
