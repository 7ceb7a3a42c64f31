"""Relevance of a set: the mean over its steps, normalised layer by layer; its conservation and its stability."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.relevance import average
from specialized_heads.heads.relevance.average import Average, average_relevance, stability
from specialized_heads.heads.relevance.propagate import Relevance, propagate
from specialized_heads.heads.relevance.rules import Rule
from specialized_heads.model.architecture import KINDS
from specialized_heads.stage import UserError
from specialized_heads.training.batching import make_batch

PRUNED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}


def leaking(*args, **kwargs) -> Relevance:
    """Relevance, with totals that differ between steps."""
    result = propagate(*args, **kwargs)
    result.totals = {level: total + result.heads["cross", 0][..., 0] for level, total in result.totals.items()}
    return result


@pytest.mark.parametrize("floats", [1, 300, 1_000_000], ids=["step by step", "in pieces", "all at once"])
@pytest.mark.parametrize("rule", ["z_plus", "epsilon"])
def test_relevance_of_a_set_is_the_mean_of_its_steps(tiny_model, data, floats: int, rule: str, monkeypatch) -> None:
    monkeypatch.setattr(average, "BATCH_FLOATS", floats)
    monkeypatch.setattr(average, "propagate", leaking)
    model = tiny_model()
    model.keep_heads(PRUNED)
    result = average_relevance(model, data, rule=rule)
    steps: dict[tuple[str, int], list[np.ndarray]] = {key: [] for key in result.heads}
    deviations: dict[str, list[float]] = {level: [] for level in result.conservation}
    for row in range(3):
        alone = leaking(model, make_batch(data, np.array([row])), rule=Rule.named(rule))
        for key, heads in alone.heads.items():
            normalised = [head / np.abs(head).sum() if len(head) else head for head in heads[0].numpy()]
            assert result.sums[key][row] == pytest.approx(np.sum(normalised, axis=0), rel=1e-3, abs=1e-5)
            steps[key] += normalised
        for level, total in alone.totals.items():
            deviations[level] += (total[0] - 1).abs().tolist()
    for key, mean in result.heads.items():
        assert mean == pytest.approx(np.mean(steps[key], axis=0), rel=1e-3, abs=1e-5)
    assert result.heads["encoder", 1].shape == (0,)
    assert result.steps.tolist() == [3, 4, 2]
    for level, values in deviations.items():
        assert result.conservation[level]["largest"] == pytest.approx(max(values), rel=1e-3)
        assert result.conservation[level]["median"] == pytest.approx(sorted(values)[4], rel=1e-3)


@pytest.mark.parametrize("rule", ["z_plus", "alpha_beta"])
def test_the_heads_of_a_layer_sum_to_1_by_default(tiny_model, data: TokenStore, rule: str) -> None:
    """Signs never differ, so nothing cancels between steps; weight ratios do."""
    sums = [heads.sum() for heads in average_relevance(tiny_model(), data, rule=rule).heads.values()]
    assert sums == pytest.approx([1.0] * 6, abs=1e-4)
    ratios = average_relevance(tiny_model(), data, rule="epsilon").heads.values()
    assert min(heads.sum() for heads in ratios) < 0.9


def test_heads_below_a_decoder_that_ignores_the_source_have_no_relevance(tiny_model, data: TokenStore) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[0, 1]] * 2, "decoder": [[0, 1]] * 2, "cross": [[], []]})
    for rule in ("epsilon", "z_plus"):
        result = average_relevance(model, data, rule=rule)
        assert [result.heads["encoder", layer].tolist() for layer in range(2)] == [[0.0, 0.0]] * 2
        assert [len(result.heads[kind, 1]) for kind in KINDS] == [2, 2, 0]
        assert {kind: len(rows) for kind, rows in stability(result).items()} == {"encoder": 0, "decoder": 2, "cross": 0}


@pytest.mark.parametrize("rule", ["epsilon", "z_plus"])
def test_relevance_that_is_not_finite_is_an_error_that_names_the_rule(tiny_model, data, rule: str, monkeypatch) -> None:
    def broken(*args, **kwargs):
        result = propagate(*args, **kwargs)
        heads = result.heads["cross", 1].clone()
        heads[0, 0, 0] = float("nan")
        result.heads["cross", 1] = heads
        return result

    monkeypatch.setattr(average, "propagate", broken)
    with pytest.raises(UserError, match=f"{rule}: the relevance of cross layer 2 is not finite"):
        average_relevance(tiny_model(), data, rule=rule)


@pytest.fixture
def planted() -> Average:
    """100 sentences of 1 to 9 steps: encoder layer 1 has clear ranks, layer 2 noise alone, layer 3 a single head."""
    random = np.random.default_rng(1)
    steps = random.integers(1, 10, 100)
    noise = random.standard_normal((2, 100, 8))
    clear = np.arange(8)[::-1] + noise[0]
    sums = {("encoder", 0): clear, ("encoder", 1): noise[1] + 100, ("encoder", 2): noise[0, :, :1]}
    sums |= {("cross", 0): np.zeros((100, 8))}  # no relevance reaches it
    sums = {key: values * steps[:, None] for key, values in sums.items()}
    return Average({}, sums, steps, {})


def test_stability_is_judged_within_layers(planted: Average) -> None:
    rows = stability(planted)
    assert rows["decoder"] == rows["cross"] == []
    clear, noise = rows["encoder"]  # pooled over both layers, ρ is 0.9: their levels differ
    assert (clear["layer"], clear["heads"], noise["layer"], noise["heads"]) == (1, 8, 2, 8)
    assert clear["rank_correlation"] > 0.95 and clear["top_head"] == 1.0
    assert abs(noise["rank_correlation"]) < 0.4 and noise["top_head"] < 0.6


def test_stability_is_the_mean_of_random_halves(planted: Average) -> None:
    """With two sentences every split is the same, so both numbers can be checked by hand."""
    two = Average({}, {key: sums[:2] for key, sums in planted.sums.items()}, planted.steps[:2], {})
    rows = stability(two)["encoder"]
    for layer, row in enumerate(rows):
        first, second = two.sums["encoder", layer]
        assert row["rank_correlation"] == pytest.approx(spearmanr(first, second).statistic)
        assert row["top_head"] == float(first.argmax() == second.argmax())
    one = Average({}, {key: sums[:1] for key, sums in planted.sums.items()}, planted.steps[:1], {})
    assert stability(one)["encoder"] == []
