"""Figure 6: the closed form of the Hard Concrete distribution against its definition."""

import numpy as np
import pytest

from specialized_heads.report.voita import figure6


@pytest.mark.parametrize("log_alpha", figure6.LOG_ALPHAS)
def test_density_and_point_masses_are_those_of_drawn_gates(log_alpha):
    u = np.random.default_rng(0).uniform(size=400_000)
    s = 1 / (1 + np.exp(-(np.log(u) - np.log1p(-u) + log_alpha) / 0.33))
    gates = np.clip(1.2 * s - 0.1, 0, 1)
    closed, open_ = figure6.point_masses(log_alpha)
    assert closed == pytest.approx((gates == 0).mean(), abs=0.003)
    assert open_ == pytest.approx((gates == 1).mean(), abs=0.003)
    g = np.linspace(0.2, 0.4, 201)
    between = np.trapezoid(figure6.stretched_density(g, log_alpha), g)
    assert between == pytest.approx(((gates > 0.2) & (gates < 0.4)).mean(), abs=0.003)
    curve = figure6.numbers().query("curve == 'Hard Concrete' and quantity == 'density' and log_alpha == @log_alpha")
    assert closed + open_ + np.trapezoid(curve["y"], curve["x"]) == pytest.approx(1, abs=1e-4)
