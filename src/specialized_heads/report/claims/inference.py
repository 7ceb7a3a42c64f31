"""Inference from few baselines with many heads each: means over baselines, comparisons within
layers.

The heads of a baseline are not independent, so the unit is the baseline: a statistic is computed
for each, and the interval is Student's over baselines, but at least as wide as the one within them:
three values may agree by chance. With fewer than three baselines it is the one within them, and no
claim is more than partly reproduced.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isnan, nan

import numpy as np
import pandas as pd
from scipy.stats import binomtest, mannwhitneyu, norm, sem, t

from specialized_heads.report.claims.evidence import LEAST_BASELINES, Measured, NotTestable, require
from specialized_heads.report.style import minus

AREAS = np.linspace(0.0, 1.0, 2001)  # at which Newcombe's interval is evaluated
PERMUTATIONS = 2000
RESAMPLES = 4000
SEED = 12345
SMALL = 1e-9  # sums of squares of what does not vary

Interval = tuple[float, float]
# bounds: of shares and areas, of their differences and of correlations
SHARES, DIFFERENCES = (0.0, 1.0), (-1.0, 1.0)
Statistic = Callable[[pd.DataFrame], float]


def proportion(count: int, total: int, *, of: str, note: str = "", baselines: int = 1) -> Measured:
    """A share with Wilson's 95% interval."""
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return Measured(count / total, interval.low, interval.high, total, of, note, baselines)


def mean_of(
    values: pd.Series,
    *,
    within: Interval = (nan, nan),
    bounds: Interval = (-inf, inf),
    n: int | None = None,
    of: str = "",
    note: str = "",
    owners: int = 0,
) -> Measured:
    """The mean of one value per baseline, with Student's interval, widened to hold the interval
    `within`; with fewer than three of them, with the latter, widened to hold the mean.

    `bounds`: the range of possible values, to which the interval is clipped. `owners`: heads with
    the function that it is about; the note says so if there is only one.
    """
    values, (low, high) = values.astype(float), within
    mean = float(values.mean())
    if not isnan(low):
        low, high = min(low, mean), max(high, mean)
    if len(values) >= LEAST_BASELINES:
        half = t.ppf(0.975, len(values) - 1) * sem(values)
        low, high = np.fmin(low, mean - half), np.fmax(high, mean + half)  # ignore NaN
        low, high = float(max(bounds[0], low)), float(min(bounds[1], high))
    remarks = ["rests on one head"] * (owners == 1)
    remarks += ["no interval from so few baselines"] * isnan(low)
    note = note_of(note, *remarks)
    if n is None:
        n, of = len(values), "baselines"
    return Measured(mean, low, high, n, of, note, len(values))


def share(found: pd.Series, seeds: pd.Series, *, of: str, note: str = "") -> Measured:
    """The share of what is found in a baseline; within them, with Wilson's interval over all."""
    within = proportion(int(found.sum()), len(found), of=of)
    shares = found.astype(float).groupby(seeds).mean()
    ends = within.low, within.high
    return mean_of(shares, within=ends, n=len(found), of=of, note=note, bounds=SHARES)


def by_baseline(heads: pd.DataFrame, statistic: Statistic) -> pd.Series:
    """The statistic of the heads of each baseline, by seed, where it is defined.

    Raises:
        NotTestable: it is defined for none.
    """
    values, reason = {}, ""
    for seed, same in heads.groupby("seed"):
        try:
            values[seed] = statistic(same)
        except NotTestable as error:
            reason = str(error)
    require(values, reason)
    return pd.Series(values)


def each(values: pd.Series, form: Callable[[float], str]) -> str:
    """The values of the baselines, for a note."""
    return ", ".join(form(value) for value in values)


def note_of(*parts: str) -> str:
    """One note of those that say something."""
    return "; ".join(filter(None, parts))


def by_seed(values: pd.Series, form: Callable[[float], str]) -> str:
    """A note with the values of the baselines; empty for one, which is its own mean."""
    return f"by seed {each(values, form)}" if len(values) > 1 else ""


# Heads with and without a function, compared within layers.


def area(x: pd.Series, labelled: pd.Series, strata: pd.DataFrame) -> float:
    """The probability that a labelled head has a higher x than another head of its stratum, ties
    counting one half.

    This is the area under the ROC curve, pooled over strata: heads with the same values of these
    columns.

    Raises:
        NotTestable: no stratum has heads of both kinds.
    """
    wins, pairs = 0.0, 0
    for ours, others in _sides(x, labelled, strata):
        wins += mannwhitneyu(ours, others).statistic
        pairs += len(ours) * len(others)
    return wins / pairs


def area_interval(x: pd.Series, labelled: pd.Series, strata: pd.DataFrame) -> Interval:
    """Newcombe's 95% interval of `area`: with one or two labelled heads in a stratum, a bootstrap
    would be far too narrow."""
    return newcombe(
        area(x, labelled, strata), [(len(m), len(n)) for m, n in _sides(x, labelled, strata)]
    )


def _sides(
    x: pd.Series, labelled: pd.Series, strata: pd.DataFrame
) -> list[tuple[pd.Series, pd.Series]]:
    """The values of labelled and other heads in each stratum that has both."""
    groups = x.groupby(_columns(strata))
    sides = [(same[labelled[same.index]], same[~labelled[same.index]]) for _, same in groups]
    sides = [(ours, others) for ours, others in sides if len(ours) and len(others)]
    require(sides, "no layer of the baseline has both heads with a function and heads without")
    return sides


def newcombe(area: float, sides: list[tuple[int, int]]) -> Interval:
    """The 95% interval of an area under the ROC curve (Newcombe 2006, Statistics in Medicine 25,
    method 5).

    It holds the areas θ from which `area`, measured over all strata, is at most 1.96 standard
    deviations away, by Hanley and McNeil's variance at θ with the mean of the two sample sizes in
    its last term. Strata share one θ and are weighted by their numbers of pairs. Both ends are NaN
    where one side has a single head in all strata. `sides`: labelled and other heads of each.
    """
    if min(map(sum, zip(*sides))) < 2:
        return nan, nan
    pairs = sum(m * n for m, n in sides)
    variance = np.zeros_like(AREAS)
    for m, n in sides:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - AREAS) / (2 - AREAS) + AREAS / (1 + AREAS))
        variance += m * n / pairs**2 * AREAS * (1 - AREAS) * spread
    inside = AREAS[np.abs(AREAS - area) <= norm.ppf(0.975) * np.sqrt(variance) + AREAS[1] / 2]
    return float(inside[0]), float(inside[-1])


def slope(x: pd.Series, y: pd.Series, strata: pd.DataFrame) -> tuple[float, float, float, float]:
    """The slope of y on x, both one value per head, within strata: heads with the same values of
    these columns.

    It is pooled over strata: Σ Sxy / Σ Sxx with sums of squares about the mean of each stratum. For
    x of 0 and 1 it is the Mantel-Haenszel difference of the two means. Its variance under the null
    hypothesis, that y is exchangeable among the heads of a stratum, is known exactly: Σ Sxx·Syy/(n
    − 1) over (Σ Sxx)² (Mantel 1963). The interval is the normal approximation with this variance,
    so that it excludes 0 where the test rejects it at 5%. It is clipped to [−1, 1], the range of
    differences of shares.

    Returns:
        the slope, its 95% interval, and the two-sided p-value.

    Raises:
        NotTestable: x or y does not vary within any stratum.
    """
    x, y = centred(x, strata), centred(y, strata)
    sums = pd.DataFrame({"xy": x * y, "xx": x**2, "yy": y**2, "n": 1.0})
    sums = sums.groupby(_columns(strata)).sum()
    covariance, spread = sums["xy"].sum(), sums["xx"].sum()
    deviation = np.sqrt((sums["xx"] * sums["yy"] / (sums["n"] - 1).clip(lower=1)).sum())
    require(deviation >= 1e-12, "the heads compared do not differ")
    value, half = covariance / spread, norm.ppf(0.975) * deviation / spread
    return (
        value,
        max(-1.0, value - half),
        min(1.0, value + half),
        2 * norm.sf(abs(covariance) / deviation),
    )


# Associations within layers, from sums of products: pooled over layers, and resampled by layer.


def centred(values: pd.Series, strata: pd.DataFrame) -> pd.Series:
    """The values minus the mean of their stratum."""
    values = values.astype(float)
    return values - values.groupby(_columns(strata)).transform("mean")


def ranked(values: pd.Series, strata: pd.DataFrame) -> pd.Series:
    """Ranks within strata, from 1 for the smallest."""
    return values.groupby(_columns(strata)).rank()


def _columns(strata: pd.DataFrame) -> list[pd.Series]:
    return [strata[column] for column in strata]


def products(columns: Sequence[pd.Series], strata: pd.DataFrame) -> np.ndarray:
    """Sums of products of the columns (k), each minus the mean of its stratum: (strata, k, k)."""
    table = pd.DataFrame({n: centred(values, strata) for n, values in enumerate(columns)})
    groups = [same.to_numpy() for _, same in table.groupby(_columns(strata))]
    return np.stack([values.T @ values for values in groups])


def slope_of(sums: np.ndarray) -> np.ndarray:
    """The slope of the second column on the first, given a third one if there is one, from sums of
    products (..., k, k); NaN where the first does not vary."""
    sums = _given(sums)
    return _ratio(sums[..., 0, 1], sums[..., 0, 0])


def correlation_of(sums: np.ndarray) -> np.ndarray:
    """The correlation of the first two columns, given a third one if there is one, from sums of
    products (..., k, k); NaN where one does not vary."""
    sums = _given(sums)
    spread = np.where(sums > SMALL, sums, 0.0)
    return _ratio(sums[..., 0, 1], np.sqrt(spread[..., 0, 0] * spread[..., 1, 1]))


def _given(sums: np.ndarray) -> np.ndarray:
    """The sums of products of the first two columns of what the third one does not explain,
    linearly."""
    left = sums[..., :2, :2]
    if sums.shape[-1] < 3:
        return left
    other = np.fmax(sums[..., 2, 2], SMALL)[..., None, None]
    return left - sums[..., :2, 2:] * sums[..., 2:, :2] / other


def _ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.divide(x, y, out=np.full_like(x, nan), where=y > SMALL)


def associated(
    heads: pd.DataFrame, columns: Sequence[pd.Series], statistic: Callable[[np.ndarray], np.ndarray]
) -> tuple[pd.Series, Interval]:
    """A statistic of columns (one value per head) within the layers of each baseline, and an
    interval within the baselines.

    The interval is that of percentiles over resampled layers of each baseline. Few layers make it
    too narrow, so that its level is that of Student's t, and wider (Hesterberg 2015, The American
    Statistician 69, section 3.5).

    Returns:
        the statistic by seed, where it is defined; the 95% interval of its mean.

    Raises:
        NotTestable: it is defined for no baseline.
    """
    values, drawn, layers = {}, [], 0
    random = np.random.default_rng(SEED)
    for seed, same in heads.groupby("seed"):
        sums = products([column[same.index] for column in columns], same[["type", "layer"]])
        value = float(statistic(sums.sum(0)))
        if isnan(value):
            continue
        values[seed], layers = value, layers + len(sums)
        chosen = random.integers(len(sums), size=(RESAMPLES, len(sums)))
        drawn.append(statistic(sums[chosen].sum(1)))
    require(values, "the heads compared do not differ")
    free = layers - len(values)
    if free == 0:  # a single layer each
        return pd.Series(values), (nan, nan)
    tail = norm.cdf(-np.sqrt(layers / free) * t.ppf(0.975, free))
    low, high = np.nanquantile(np.mean(drawn, axis=0), (tail, 1 - tail))
    return pd.Series(values), (float(low), float(high))


def rank_correlation(heads: pd.DataFrame, x: pd.Series, y: pd.Series) -> tuple[pd.Series, Interval]:
    """Spearman's correlation of two values of each head within the layers of each baseline, as
    `associated` returns a statistic."""
    strata = heads[["seed", "type", "layer"]]
    return associated(heads, [ranked(x, strata), ranked(y, strata)], correlation_of)


def permutation_p(x: pd.Series, y: pd.Series, given: pd.Series, strata: pd.DataFrame) -> float:
    """Two-sided p-value of an association within strata, given another column.

    What the other column does not explain of y is permuted within strata (Freedman and Lane 1983).
    """
    left, rest = (_unexplained(values, given, strata) for values in (x, y))
    random, position = np.random.default_rng(SEED), pd.Series(range(len(x)))
    places = [
        same.to_numpy()
        for _, same in position.groupby([strata[column].to_numpy() for column in strata])
    ]
    values, weights = rest.to_numpy(), left.to_numpy()
    measured, extreme = abs(values @ weights), 0
    for _ in range(PERMUTATIONS):
        drawn = values.copy()
        for place in places:
            drawn[place] = values[random.permutation(place)]
        extreme += abs(drawn @ weights) >= measured - 1e-12
    return (extreme + 1) / (PERMUTATIONS + 1)


def _unexplained(values: pd.Series, given: pd.Series, strata: pd.DataFrame) -> pd.Series:
    values, other = centred(values, strata), centred(given, strata)
    return values - other * (values @ other) / max(float(other @ other), SMALL)


def same_sign(values: Iterable[float]) -> str:
    """How many of the baselines agree with the sign of their mean, for a note."""
    signs = np.sign(list(values))
    agreeing = int((signs == np.sign(np.mean(list(values)))).sum())
    return f"same sign in {agreeing} of {len(signs)} baseline{'s' * (len(signs) != 1)}"


def p_text(p_value: float) -> str:
    return minus(f"p {p_value:.2g}")
