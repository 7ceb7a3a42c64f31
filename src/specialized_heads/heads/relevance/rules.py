"""Rules of relevance propagation: how a neuron divides its relevance among the contributions that it sums.

Relevance passes only sums on its way down: matrix products, weighted sums of values, residual connections. A neuron z = Σ c_u
of relevance R gives its input u

    R_u = (m c_u + d |c_u|) R,    m and d functions of z and of size = Σ |c_u|,

so every rule costs at most two matrix products, one with the weights and one with their absolute values.

    epsilon     m = 1 / (z + ε sign z), d = 0: weight ratios; with ε = 0, no stabiliser, the paper's rule (appendix A).
                The share ε / (|z| + ε) of R is lost, or returned to the inputs in proportion to |c_u|: then
                d = sign(z) m ε / size, and Σ R_u = R
    z_plus      alpha_beta with α = 1: positive contributions only (Montavon et al. 2017)
    alpha_beta  α c_u⁺ / Σ c⁺ - (α - 1) c_u⁻ / Σ c⁻ (Bach et al. 2015, eq. 60). Contributions of one sign share R among
                themselves, so that Σ R_u = R there too
    attention   epsilon for sums; attention weights get relevance as well (AttnLRP, Achtibat et al. 2024; `propagate.py`)
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from specialized_heads.config.sections import Heads

TINY = 1e-20  # neurons whose contributions are smaller than this in total get no relevance
ABSENT = 1e-5  # a sign with a smaller share of all contributions counts as absent: float32 cannot tell it from rounding


@dataclass(frozen=True)
class Rule:
    """A rule and its parameters.

    name: "epsilon", "z_plus", "alpha_beta" or "attention".
    epsilon: stabiliser of "epsilon" and "attention"; 0: none.
    returned: whether the stabiliser's share goes back to the inputs.
    alpha: weight of positive contributions in "alpha_beta".
    bias: whether a bias takes its share, which then leaves the network; else the inputs share all relevance.
    """

    name: str
    epsilon: float = 0.0
    returned: bool = False
    alpha: float = 1.0
    bias: bool = False

    @classmethod
    def named(cls, name: str, settings: Heads) -> "Rule":
        """The rule of this name with the parameters of the configuration."""
        return cls(
            name=name,
            epsilon=settings.relevance_epsilon,
            returned=settings.relevance_absorbed == "returned",
            alpha=settings.relevance_alpha if name == "alpha_beta" else 1.0,
            bias=settings.relevance_bias == "share",
        )

    def ratios(self, z: Tensor, size: Tensor) -> tuple[Tensor, Tensor | None]:
        """m and d for neurons z; d is None where it is zero."""
        if self.name in ("epsilon", "attention"):
            sign = torch.where(z < 0, -1.0, 1.0).to(z.dtype)  # zero counts as positive
            m = 1 / (z + max(self.epsilon, TINY) * sign)
            return m, self.epsilon * sign * m / (size + TINY) if self.returned and self.epsilon else None
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
