"""Rules of relevance: the shares of single neurons, worked out by hand from the formulas in
docs/heads.md."""

import pytest
import torch

from specialized_heads.heads.propagation import Rule, through_linear

NAMED = {name: Rule.named(name) for name in ("z_plus", "alpha_beta", "epsilon")}
MIXED, NEGATIVE, ONE_SIGN = (3.0, 1.0, -2.0), (-3.0, 1.0, 0.0), (-1.0, -3.0, 0.0)


@pytest.mark.parametrize(
    ("rule", "contributions", "shares"),
    [
        (NAMED["z_plus"], MIXED, (3 / 4, 1 / 4, 0)),
        (NAMED["z_plus"], NEGATIVE, (0, 1, 0)),
        (NAMED["z_plus"], ONE_SIGN, (1 / 4, 3 / 4, 0)),
        # ½ · 3/4, ½ · 1/4, ½ · 2/2
        (NAMED["alpha_beta"], MIXED, (3 / 8, 1 / 8, 1 / 2)),
        (NAMED["alpha_beta"], NEGATIVE, (1 / 2, 1 / 2, 0)),
        (NAMED["alpha_beta"], ONE_SIGN, (1 / 4, 3 / 4, 0)),
        # a small contribution is not an absent sign
        (NAMED["alpha_beta"], (999.0, -1.0, 0.0), (1 / 2, 1 / 2, 0)),
        # Bach et al. with α 2, β 1: 2 · 3/4, 2 · 1/4, -1 · 2/2
        (Rule("alpha_beta", alpha=2.0), MIXED, (3 / 2, 1 / 2, -1)),
        # z = 2: c / 2
        (Rule("epsilon"), MIXED, (3 / 2, 1 / 2, -1)),
        # c / 2.1; the share 0.1 / 2.1 returns in the proportions 3/6, 1/6, 2/6
        (NAMED["epsilon"], MIXED, (3.05 / 2.1, (1 + 0.1 / 6) / 2.1, (-2 + 0.1 / 3) / 2.1)),
        # z = -2: c / -2.1; the share 0.1 / 2.1 returns in the proportions 3/4, 1/4
        (NAMED["epsilon"], NEGATIVE, (3.075 / 2.1, -0.975 / 2.1, 0)),
        (NAMED["epsilon"], ONE_SIGN, (1 / 4, 3 / 4, 0)),
    ],
)
def test_shares_of_one_neuron(
    rule: Rule, contributions: tuple[float, ...], shares: tuple[float, ...]
) -> None:
    """Signs of contributions come from the weights, or from the inputs."""
    row = torch.tensor(contributions, dtype=torch.float64)
    assert sum(shares) == pytest.approx(1.0)
    for x, weight in ((torch.full_like(row, 0.5), 2 * row), (row / 4, torch.full_like(row, 4.0))):
        relevance = torch.full((1, 1, 1), 10.0, dtype=torch.float64)
        found = through_linear(x[None, None], weight[None], relevance, rule, torch.tensor([0]))
        assert found.flatten().tolist() == pytest.approx([10 * share for share in shares])
