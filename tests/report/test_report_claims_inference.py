"""Inference of claims on heads: the baseline is the unit, intervals and tests hold and reject as
often as they say."""

import numpy as np
import pandas as pd
import pytest
from claim_tables import values
from scipy.stats import sem, spearmanr, t

from specialized_heads.report.claims import inference
from specialized_heads.report.claims.evidence import NotTestable


def test_the_interval_is_students_over_baselines() -> None:
    found = pd.Series({1: 0.12, 2: 0.30, 3: 0.36})
    measured = inference.mean_of(found, within=(0.2, 0.3))
    half = t.ppf(0.975, 2) * sem(found)
    assert values(measured) == pytest.approx((0.26, 0.26 - half, 0.26 + half))
    assert half > 0.3 and measured.baselines == 3
    # Three values may agree by chance: the interval holds the one within the baselines.
    alike = inference.mean_of(pd.Series([0.0, 0.0, 0.0]), within=(0.0, 0.18))
    assert values(alike) == (0.0, 0.0, 0.18)
    assert values(inference.mean_of(found, within=(-2, 0.3)))[1:] == pytest.approx(
        (-2, 0.26 + half)
    )
    clipped = inference.mean_of(found, bounds=inference.SHARES)
    assert clipped.low == 0.0 and clipped.high == pytest.approx(0.26 + half)
    # Two baselines have no interval of their own worth the name: it is the one within them.
    assert values(inference.mean_of(found[:2], within=(0.2, 0.3))) == pytest.approx(
        (0.21, 0.2, 0.3)
    )


def test_a_slope_given_another_column_is_that_of_a_regression() -> None:
    """Least squares with a constant per layer and the ranks of confidence gives the same
    coefficients."""
    random = np.random.default_rng(1)
    heads = pd.DataFrame(
        {
            "seed": 1,
            "type": "encoder",
            "layer": np.repeat([1, 2, 3], 8),
            "x": random.integers(0, 2, 24),
        }
    )
    heads = heads.assign(z=random.random(24), y=random.random(24) + heads["x"])
    ranks = inference.ranked(heads["z"], heads[["layer"]])
    found, _ = inference.associated(heads, [heads["x"], heads["y"], ranks], inference.slope_of)
    constants = (heads["layer"].to_numpy()[:, None] == [1, 2, 3]).astype(float)
    design = np.column_stack([heads["x"], ranks, constants])
    assert found[1] == pytest.approx(np.linalg.lstsq(design, heads["y"], rcond=None)[0][0])
    # The partial correlation is that of the residuals.
    rest = [
        v - design[:, 1:] @ np.linalg.lstsq(design[:, 1:], v, rcond=None)[0]
        for v in (heads["x"], heads["y"])
    ]
    found, ends = inference.associated(
        heads, [heads["x"], heads["y"], ranks], inference.correlation_of
    )
    assert found[1] == pytest.approx(np.corrcoef(*rest)[0, 1])
    assert ends[0] < found[1] < ends[1]


def test_a_correlation_within_one_layer_is_spearmans() -> None:
    random = np.random.default_rng(2)
    heads = pd.DataFrame(
        {"seed": 1, "type": "encoder", "layer": 1, "x": random.random(9), "y": random.random(9)}
    )
    ranks = [inference.ranked(heads[name], heads[["layer"]]) for name in ("x", "y")]
    found, _ = inference.associated(heads, ranks, inference.correlation_of)
    assert found[1] == pytest.approx(spearmanr(heads["x"], heads["y"]).statistic)


@pytest.mark.parametrize(("baselines", "layers"), [(1, 6), (1, 18), (3, 6)])
def test_resampled_layers_hold_the_true_correlation_as_often_as_they_say(
    baselines: int, layers: int, monkeypatch
) -> None:
    """Heads of a layer are normal with the correlation 0.2 or 0.9."""
    monkeypatch.setattr(inference, "RESAMPLES", 2000)
    random, number = np.random.default_rng(4), baselines * layers
    heads = pd.DataFrame({"layer": np.repeat(np.arange(number), 8), "type": "encoder"})
    heads["seed"] = heads["layer"] // layers
    # Spearman's correlation of 8 normal pairs, on average (Moran 1948).
    true = np.mean([6 / (9 * np.pi) * (np.arcsin(r) + 6 * np.arcsin(r / 2)) for r in (0.2, 0.9)])
    inside, found = 0, []
    for _ in range(300):
        r = np.repeat(random.choice([0.2, 0.9], number), 8)
        x, noise = random.normal(size=(2, 8 * number))
        both = (pd.Series(values) for values in (x, r * x + np.sqrt(1 - r**2) * noise))
        ranks = [inference.ranked(values, heads[["layer"]]) for values in both]
        values, (low, high) = inference.associated(heads, ranks, inference.correlation_of)
        found.append(values.mean())
        inside += low <= true <= high
    assert np.mean(found) == pytest.approx(true, abs=0.04)
    assert 0.90 <= inside / 300 <= 0.98


def test_permutations_find_what_confidence_does_not_explain() -> None:
    layer = pd.Series(np.repeat(np.arange(6), 8))
    strata, confidence = pd.DataFrame({"layer": layer}), pd.Series(np.tile(np.arange(8.0), 6))
    function = (confidence >= 6).astype(float)
    explained = confidence / 10
    more = explained + 0.4 * pd.Series(np.tile([0, 0, 0, 0, 0, 0, 1, 1], 6))
    noise = pd.Series(np.random.default_rng(0).normal(0, 0.05, 48))
    for sign in (1, -1):
        assert inference.permutation_p(function, sign * (more + noise), confidence, strata) < 0.01
    assert inference.permutation_p(function, explained + noise, confidence, strata) > 0.05


def test_permutations_reject_what_confidence_explains_as_often_as_they_say(monkeypatch) -> None:
    """Confident heads have the function and the larger values, and one layer most of both."""
    monkeypatch.setattr(inference, "PERMUTATIONS", 200)
    random, layer = np.random.default_rng(5), np.repeat(np.arange(6), 8)
    strata, rejected = pd.DataFrame({"layer": layer}), 0
    for _ in range(500):
        confidence, x, y = (pd.Series(values) for values in random.normal(size=(3, 48)))
        function = (confidence + x > np.where(layer == 0, 0, 2)).astype(float)
        values = confidence + y * np.where(layer == 0, 3, 1) + layer
        rejected += inference.permutation_p(function, values, confidence, strata) <= 0.05
    assert 0.03 <= rejected / 500 <= 0.07


def test_the_slope_within_strata() -> None:
    frame = pd.DataFrame(
        {"seed": [1] * 4 + [2] * 4, "x": [0, 0, 1, 1] * 2, "y": [0, 0, 1, 0, 1, 0, 1, 1]}
    )
    pooled = inference.slope(frame["x"], frame["y"], frame[["seed"]])
    # Mantel-Haenszel: both strata have a difference of 1/2. Variance: 1 · 3/4 / 3 in each, over (1
    # + 1)².
    half = 1.959964 * (0.5**0.5) / 2
    assert pooled[:3] == pytest.approx((0.5, 0.5 - half, 1.0), abs=1e-6)  # clipped
    assert pooled[3] == pytest.approx(0.1573, abs=1e-4)  # of z = √2
    # What differs between strata alone does not count.
    shifted = inference.slope(frame["x"], frame["y"] + 10 * frame["seed"], frame[["seed"]])
    assert shifted == pytest.approx(pooled)
    with pytest.raises(NotTestable, match="do not differ"):
        inference.slope(frame["seed"], frame["y"], frame[["seed"]])


def test_the_interval_of_an_area_is_newcombes_over_its_strata() -> None:
    strata = pd.DataFrame({"layer": [1] * 5 + [2] * 6 + [3] * 2})
    labelled = pd.Series([True, True, False, False, False] + [True, False] * 3 + [False] * 2)
    x = pd.Series(np.random.default_rng(1).random(13))
    found = inference.area_interval(x, labelled, strata)
    area = inference.area(x, labelled, strata)
    assert found == inference.newcombe(area, [(2, 3), (3, 3)]) and found[0] < area < found[1]


def test_the_measured_order_is_one_of_the_permutations(monkeypatch) -> None:
    """So that no p-value is zero."""
    monkeypatch.setattr(inference, "PERMUTATIONS", 99)
    strata = pd.DataFrame({"layer": np.repeat(np.arange(6), 8)})
    x, given = (pd.Series(np.tile(values, 6)) for values in (np.arange(8.0), [0.0, 1.0] * 4))
    assert inference.permutation_p(x, x, given, strata) == pytest.approx(1 / 100)
