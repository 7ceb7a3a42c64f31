"""A difference within strata: does y grow with x among heads of the same seed, or of the same layer and seed?

The slope of y on x is pooled over strata: Σ Sxy / Σ Sxx with sums of squares about the mean of each stratum. For x of 0 and 1
it is the Mantel-Haenszel difference of the two means, for ranks Spearman's correlation. Its variance under the null hypothesis,
that y is exchangeable among the heads of a stratum, is known exactly: Σ Sxx·Syy/(n − 1) over (Σ Sxx)² (Mantel 1963); the
interval is the normal approximation with this variance, so that it excludes 0 where the test rejects it at 5%. It is clipped
to [−1, 1], the range of shares, correlations and changes of a share per layer.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from specialized_heads.report.claims.evidence import NotTestable


class Slope(NamedTuple):
    """A pooled slope with its 95% interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p_value: float


def slope(x: pd.Series, y: pd.Series, strata: pd.DataFrame) -> Slope:
    """The slope of y on x within strata.

    Args:
        x, y: one value per head.
        strata: columns whose values together name the stratum of each head.

    Raises:
        NotTestable: x or y does not vary within any stratum.
    """
    frame = pd.DataFrame({"x": x.astype(float), "y": y.astype(float)})
    groups = [strata[column] for column in strata]
    x, y = (frame[name] - frame.groupby(groups)[name].transform("mean") for name in ("x", "y"))
    sums = pd.DataFrame({"xy": x * y, "xx": x**2, "yy": y**2, "n": 1.0}).groupby(groups).sum()
    spread = sums["xx"].sum()
    deviation = np.sqrt((sums["xx"] * sums["yy"] / (sums["n"] - 1).clip(lower=1)).sum())
    if deviation < 1e-12:
        raise NotTestable("the heads compared do not differ")
    value, half = sums["xy"].sum() / spread, norm.ppf(0.975) * deviation / spread
    return Slope(value, max(-1.0, value - half), min(1.0, value + half), 2 * norm.sf(abs(sums["xy"].sum()) / deviation))
