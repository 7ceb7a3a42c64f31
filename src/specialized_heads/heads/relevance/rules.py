"""Rules of relevance propagation: how a neuron divides its relevance among the contributions that it sums.

Relevance passes only sums on its way down: matrix products, weighted sums of values, residual connections. A neuron z = Σ c_u
of relevance R gives its input u

    R_u = (m c_u + d |c_u|) R,    m and d functions of z and of size = Σ |c_u|,    Σ R_u = R,

so every rule costs at most two matrix products, one with the weights and one with their absolute values.

    z_plus      alpha_beta with α = 1: c_u⁺ / Σ c⁺, positive contributions only (Montavon et al. 2017)
    alpha_beta  α c_u⁺ / Σ c⁺ + (1 - α) c_u⁻ / Σ c⁻ (Bach et al. 2015, eq. 60). Both ratios are positive, so with α up to 1 no
                share is negative. Contributions that all have one sign share R among themselves
    epsilon     weight ratios (appendix A): c_u / (z + ε sign z). With ε > 0 the share ε / (|z| + ε) of R would be lost; it goes
                to the inputs in proportion to |c_u|. Shares can be negative, and large where contributions cancel
"""

from dataclasses import dataclass

import torch
from torch import Tensor

TINY = 1e-20  # neurons whose contributions are smaller than this in total get no relevance
ABSENT = 1e-5  # a sign with a smaller share of all contributions counts as absent: float32 cannot tell it from rounding


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
        """The rule of this name as the configuration offers it; alpha_beta as in the paper's code since November 2020."""
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
