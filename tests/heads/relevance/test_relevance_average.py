"""Relevance of a set: the mean of its steps, normalised layer by layer, and how far it was conserved."""

from collections.abc import Callable

import numpy as np
import pytest

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.relevance import average
from specialized_heads.heads.relevance.average import average_relevance, relevance
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.sections import Heads
from specialized_heads.stage import UserError
from specialized_heads.training.batching import make_batch

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]]
REMOVED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}
SETTINGS = Heads(relevance_epsilon=0.05, relevance_absorbed="lost")


@pytest.mark.parametrize("floats", [1, 300, 1_000_000], ids=["step by step", "in pieces", "all at once"])
@pytest.mark.parametrize("rule", ["epsilon", "attention", "gradient_input"])
def test_relevance_of_a_set_is_the_mean_of_its_steps(
    tiny_model: Callable[..., Transformer],
    store: Callable[..., TokenStore],
    floats: int,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(average, "BATCH_FLOATS", floats)
    model, data = tiny_model(), store(SOURCES, TARGETS)
    model.keep_heads(REMOVED)
    found = average_relevance(model, data, rule=rule, settings=SETTINGS)
    steps: dict[tuple[str, int], list[np.ndarray]] = {key: [] for key in found.heads}
    deviations: dict[str, list[float]] = {level: [] for level in found.conservation}
    for row in range(3):
        alone = relevance(model, make_batch(data, np.array([row])), rule=rule, settings=SETTINGS)
        for key, heads in alone.heads.items():
            steps[key] += [head / np.abs(head).sum() if len(head) else head for head in heads[0].numpy()]
        for level, total in alone.totals.items():
            deviations[level] += (total[0] - 1).abs().tolist()
    for key, mean in found.heads.items():
        assert mean == pytest.approx(np.mean(steps[key], axis=0), rel=1e-3, abs=1e-5)
        assert np.abs(mean).sum() <= 1 + 1e-6
    assert found.heads["cross", 0].tolist() == pytest.approx([np.mean([np.sign(s[0]) for s in steps["cross", 0]])])
    assert found.heads["encoder", 1].shape == (0,)
    assert found.steps == 9
    for level, values in deviations.items():
        assert found.conservation[level]["largest"] == pytest.approx(max(values), rel=1e-3)
        assert found.conservation[level]["median"] == pytest.approx(sorted(values)[4], rel=1e-3)


def test_each_key_of_the_configuration_reaches_its_rule(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    model, data = tiny_model(), store(SOURCES, TARGETS)
    concerned = {
        "relevance_epsilon": {"epsilon", "attention"},
        "relevance_absorbed": {"epsilon", "attention"},
        "relevance_alpha": {"alpha_beta"},
        "relevance_bias": {"epsilon", "z_plus", "alpha_beta", "attention"},
    }
    other = {
        "relevance_epsilon": 0.3,
        "relevance_absorbed": "returned",
        "relevance_alpha": 2.0,
        "relevance_bias": "share",
    }

    def values(rule: str, **changed: float | str) -> np.ndarray:
        settings = SETTINGS.model_copy(update=changed)
        found = average_relevance(model, data, rule=rule, settings=settings)
        return np.concatenate(list(found.heads.values()))

    for rule in ("epsilon", "z_plus", "alpha_beta", "attention", "gradient_input"):
        before = values(rule)
        for key, value in other.items():
            changed = not np.array_equal(values(rule, **{key: value}), before)
            assert changed == (rule in concerned[key]), (rule, key)


def test_heads_below_a_decoder_that_does_not_look_at_the_source_have_no_relevance(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[0, 1]] * 2, "decoder": [[0, 1]] * 2, "cross": [[], []]})
    for rule in ("epsilon", "gradient_input"):
        found = average_relevance(model, store(SOURCES, TARGETS), rule=rule, settings=SETTINGS)
        assert [found.heads["encoder", layer].tolist() for layer in range(2)] == [[0.0, 0.0]] * 2
        assert [len(found.heads[kind, 1]) for kind in KINDS] == [2, 2, 0]


@pytest.mark.parametrize("rule", ["epsilon", "gradient_input"])
def test_relevance_that_is_no_number_is_an_error_that_names_the_rule(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args, **kwargs):
        result = relevance(*args, **kwargs)
        heads = result.heads["cross", 1].clone()
        heads[0, 0, 0] = float("nan")
        result.heads["cross", 1] = heads
        return result

    monkeypatch.setattr(average, "relevance", broken)
    with pytest.raises(UserError, match=f"{rule}: the relevance of cross layer 2 is not finite"):
        average_relevance(tiny_model(), store(SOURCES, TARGETS), rule=rule, settings=SETTINGS)
