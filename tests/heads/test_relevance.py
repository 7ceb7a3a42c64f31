"""Relevance of a set: the mean over its steps, normalised layer by layer; its conservation and its
stability; the stage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.heads import relevance
from specialized_heads.heads.propagation import Relevance, Rule, propagate
from specialized_heads.heads.relevance import Average, average_relevance, draw, stability
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, read_json
from specialized_heads.training.batching import make_batch

# heads to keep in `tiny_model`
PRUNED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}


def whole(
    model: Transformer, data: TokenStore, *rules: str, predictions: int = 10**6, seed: int = 1
):
    """The averages over a set by each rule; of the only rule, if there is one."""
    averages = average_relevance(model, data, rules=rules, predictions=predictions, seed=seed)
    return averages if len(rules) > 1 else averages[rules[0]]


@pytest.fixture
def many(store) -> TokenStore:
    """60 sentences of 1 to 12 tokens on either side."""
    random, sides = np.random.default_rng(1), ([], [])
    for side in sides:
        side += [random.integers(4, 20, random.integers(1, 13)).tolist() for _ in range(60)]
    return store(*sides)


def leaking(*args, **kwargs) -> list[Relevance]:
    """Relevance, with totals that differ between steps."""
    results = propagate(*args, **kwargs)
    for result in results:
        head = result.heads["cross", 0][:, 0]
        result.totals = {level: total + head for level, total in result.totals.items()}
    return results


@pytest.mark.parametrize(
    "floats", [1, 1_000, 1_000_000], ids=["step by step", "in pieces", "all at once"]
)
@pytest.mark.parametrize("number", [10**6, 50], ids=["all steps", "drawn steps"])
@pytest.mark.parametrize("tags", [(), (4,)], ids=["no tag", "a forced first token"])
def test_relevance_of_a_set_is_the_mean_of_its_predictions(
    tiny_model, many, floats: int, number: int, tags: tuple[int, ...], monkeypatch
) -> None:
    """Batches of steps of many sentences, cut after the last one drawn, against one sentence at a
    time, by every rule."""
    monkeypatch.setattr(relevance, "BATCH_FLOATS", floats)
    monkeypatch.setattr(relevance, "propagate", leaking)
    model, names = tiny_model(), ["z_plus", "alpha_beta", "epsilon"]
    model.keep_heads(PRUNED)
    data = many.select(np.arange(20))
    # the first target tokens are tags then
    data = replace(data, tokens=replace(data.tokens, target_tags=tags))
    sentence, position = draw(data.target_lengths - len(tags) + 1, number=number, seed=1)
    averages, alone = whole(model, data, *names, predictions=number), []
    for row in range(20):
        positions = torch.from_numpy(position[sentence == row] + len(tags))
        where = {"rows": torch.zeros_like(positions), "positions": positions}
        batch = make_batch(data, np.array([row]))
        alone.append(leaking(model, batch, rules=list(map(Rule.named, names)), **where))
    for (rule, result), parts in zip(averages.items(), zip(*alone), strict=True):
        steps = np.bincount(sentence, minlength=20)
        assert result.steps.tolist() == steps.tolist(), rule
        for key, mean in result.heads.items():
            heads = [part.heads[key].numpy() for part in parts]
            sums = np.stack([(each / np.abs(each).sum(1, keepdims=True)).sum(0) for each in heads])
            assert result.sums[key] == pytest.approx(sums, rel=1e-3, abs=1e-5)
            assert mean == pytest.approx(sums.sum(0) / steps.sum(), rel=1e-3, abs=1e-5)
            # Of N sentences with n steps and the sum s: √(Σ (s - n mean)² · N / (N - 1)) / Σ n.
            off, among = result.sums[key] - steps[:, None] * mean, np.count_nonzero(steps)
            error = np.sqrt((off**2).sum(0) * among / (among - 1)) / steps.sum()
            assert result.errors[key] == pytest.approx(error)
        assert result.heads["encoder", 1].shape == (0,)
        for level, found in result.conservation.items():
            values = sorted(torch.cat([(part.totals[level] - 1).abs() for part in parts]).tolist())
            expected = {"median": values[(len(values) - 1) // 2], "largest": values[-1]}
            assert found == pytest.approx(expected, rel=1e-3)


def test_heads_below_a_decoder_that_ignores_the_source_have_no_relevance(tiny_model, data) -> None:
    model = tiny_model()
    model.keep_heads({"encoder": [[0, 1]] * 2, "decoder": [[0, 1]] * 2, "cross": [[], []]})
    for rule in ("epsilon", "z_plus"):
        result = whole(model, data, rule)
        assert [result.heads["encoder", layer].tolist() for layer in range(2)] == [[0.0, 0.0]] * 2
        assert [len(result.heads[kind, 1]) for kind in KINDS] == [2, 2, 0]
        expected = {"encoder": 0, "decoder": 2, "cross": 0}
        assert {kind: len(rows) for kind, rows in stability(result).items()} == expected


def test_relevance_that_is_not_finite_is_an_error_that_names_the_rule(
    tiny_model, data, monkeypatch
) -> None:
    def broken(*args, **kwargs):
        results = propagate(*args, **kwargs)
        heads = results[0].heads["cross", 1].clone()
        heads[0, 0] = float("nan")
        results[0].heads["cross", 1] = heads
        return results

    monkeypatch.setattr(relevance, "propagate", broken)
    with pytest.raises(UserError, match="epsilon: the relevance of cross layer 2 is not finite"):
        whole(tiny_model(), data, "epsilon")


def test_drawn_steps_are_spread_over_sentences_and_positions(many: TokenStore) -> None:
    steps = many.target_lengths + 1
    sentence, position = draw(steps, number=150, seed=1)
    assert len({*zip(sentence, position, strict=True)}) == 150
    assert (position < steps[sentence]).all()
    expected = 150 * steps / steps.sum()
    assert np.abs(np.bincount(sentence, minlength=60) - expected).max() < 1
    again, other = draw(steps, number=150, seed=1)[1], draw(steps, number=150, seed=2)[1]
    assert position.tolist() == again.tolist() != other.tolist()
    # Over many draws each step comes equally often.
    hits = np.zeros((60, steps.max()))
    for seed in range(1000):
        hits[draw(steps, number=150, seed=seed)] += 1
    shares = hits[np.arange(steps.max()) < steps[:, None]] / 1000
    # four standard errors
    assert shares == pytest.approx(np.full(steps.sum(), 150 / steps.sum()), abs=0.07)
    assert [part.tolist() for part in draw(np.array([1, 2]), number=3, seed=1)] == [
        [0, 1, 1],
        [0, 0, 1],
    ]


def test_the_error_is_the_spread_over_other_sentences(tiny_model, store) -> None:
    random, model = np.random.default_rng(2), tiny_model()
    means, errors = [], []
    for seed in range(60):
        text = (
            [random.integers(4, 20, random.integers(1, 9)).tolist() for _ in range(40)]
            for _ in range(2)
        )
        result = whole(model, store(*text), "z_plus", predictions=60, seed=seed)
        means.append(result.heads["encoder", 0][0])
        errors.append(result.errors["encoder", 0][0])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.3)


def test_a_single_sentence_has_no_error(tiny_model, data: TokenStore) -> None:
    assert np.isnan(whole(tiny_model(), data.select([0]), "z_plus").errors["encoder", 0]).all()


@pytest.fixture
def planted() -> Average:
    """100 sentences of 1 to 9 steps: encoder layer 1 has clear ranks, layer 2 noise alone, layer 3
    a single head."""
    random = np.random.default_rng(1)
    steps = random.integers(1, 10, 100)
    noise = random.standard_normal((2, 100, 8))
    clear = np.arange(8)[::-1] + noise[0]
    sums = {("encoder", 0): clear, ("encoder", 1): noise[1] + 100, ("encoder", 2): noise[0, :, :1]}
    sums |= {("cross", 0): np.zeros((100, 8))}  # no relevance reaches it
    sums = {key: values * steps[:, None] for key, values in sums.items()}
    return Average({}, {}, sums, steps, {})


def test_stability_is_judged_within_layers(planted: Average) -> None:
    rows = stability(planted)
    assert rows["decoder"] == rows["cross"] == []
    clear, noise = rows["encoder"]
    assert (clear["layer"], noise["layer"]) == (1, 2)
    assert clear["top_head"] == 1.0 and noise["top_head"] < 0.6


def test_stability_is_the_mean_of_random_halves(planted: Average) -> None:
    """With two sentences every split is the same, so the share can be checked by hand."""
    two = Average(
        {}, {}, {key: sums[:2] for key, sums in planted.sums.items()}, planted.steps[:2], {}
    )
    for layer, row in enumerate(stability(two)["encoder"]):
        first, second = two.sums["encoder", layer]
        assert row["top_head"] == float(first.argmax() == second.argmax())


@pytest.mark.parametrize("predictions", [1, 3, 8])
def test_halves_without_predictions_do_not_count(predictions: int) -> None:
    steps = np.zeros(100, int)
    steps[:predictions] = 1
    sums = {("encoder", 0): np.array([0.0, 0.0, 1.0]) * steps[:, None]}
    rows = stability(Average({}, {}, sums, steps, {}))["encoder"]
    assert [row["top_head"] for row in rows] == [1.0] * (predictions > 1)


# The stage: one row per head, one column per rule; conservation and stability in the report.


@pytest.mark.parametrize("kept", [PRUNED, {kind: [[], []] for kind in KINDS}])
def test_the_table_has_every_head_and_every_rule(
    tiny_model, token_file, call, tmp_path: Path, kept: dict
) -> None:
    model, rules = tiny_model(), ["z_plus", "epsilon", "alpha_beta"]
    model.keep_heads(kept)
    weights, output, described = (
        tmp_path / name for name in ("model.safetensors", "table.parquet", "report.json")
    )
    dev = token_file("dev", [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]])
    save(model, weights, training={})
    settings = {"rules": rules, "predictions": 7, "seed": 3, "device": "cpu"}
    call(relevance, settings=settings, model=weights, dev=dev, output=output, report=described)
    table, report = pq.read_table(output), read_json(described)
    columns = [name for rule in rules for name in (rule, f"{rule}_error")]
    assert table.column_names == ["type", "layer", "head", *columns]
    numbers = [
        (a.kind, a.layer + 1, head + 1) for a in model.attentions(*KINDS) for head in a.heads
    ]
    assert [(row["type"], row["layer"], row["head"]) for row in table.to_pylist()] == numbers
    average = whole(model, load_tokens(dev), "alpha_beta", predictions=7, seed=3)
    for column, values in (("alpha_beta", average.heads), ("alpha_beta_error", average.errors)):
        assert table[column].to_pylist() == [value for heads in values.values() for value in heads]
    assert (report["sentences"], report["steps"]) == (3, 7)
    assert list(report["conservation"]) == list(report["stability"]) == rules
    assert report["conservation"]["alpha_beta"] == average.conservation
    assert report["stability"]["alpha_beta"] == stability(average)
