"""Relevance: propagation equals loops over single neurons written from the papers, for every rule;
averages; the stage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.heads import relevance
from specialized_heads.heads.propagation import ABSENT, Relevance, Rule, propagate
from specialized_heads.heads.relevance import Average, average_relevance, draw, stability
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, read_json
from specialized_heads.training.batching import Batch, make_batch


@pytest.fixture
def data(store) -> TokenStore:
    """Source lengths 4, 1, 3, target lengths 2, 3, 1: nine generation steps."""
    return store([[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]])


@pytest.fixture
def batch(data: TokenStore) -> Batch:
    return make_batch(data, np.arange(3))


# heads to keep in `tiny_model`
PRUNED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}
RULES = {
    "z_plus": Rule("z_plus"),
    "halves": Rule("alpha_beta", alpha=0.5),
    "alpha 1.5": Rule("alpha_beta", alpha=1.5),
    "epsilon": Rule("epsilon", epsilon=0.05),
    "epsilon 0": Rule("epsilon"),
}
# as MarianMT
PUBLISHED = {"post_norm": True, "attention_bias": True, "activation": "swish", "output_bias": True}


Relevances = np.ndarray | float  # a number where all are alike


def all_steps(model: Transformer, batch: Batch, rule: Rule) -> Relevance:
    """The relevance of every step of a batch, sentence by sentence."""
    rows, positions = batch.real(batch.target_out).nonzero(as_tuple=True)
    [result] = propagate(model, batch, rules=[rule], rows=rows, positions=positions)
    return result


def whole(
    model: Transformer, data: TokenStore, *rules: str, predictions: int = 10**6, seed: int = 1
):
    """The averages over a set by each rule; of the only rule, if there is one."""
    averages = average_relevance(model, data, rules=rules, predictions=predictions, seed=seed)
    return averages if len(rules) > 1 else averages[rules[0]]


class NeuronByNeuron:
    """Relevance of one generation step of one sentence, one neuron at a time, in float64."""

    def __init__(self, model: Transformer, activations: Activations, rule: Rule) -> None:
        self.model, self.rule = model, rule
        self.activations = {key: value[0].detach().numpy() for key, value in activations.items()}
        self.heads: dict[tuple[str, int], list[float]] = {}

    def shares(self, contributions: np.ndarray) -> np.ndarray:
        """The share that each summand of a neuron gets of its relevance."""
        c, rule = contributions, self.rule
        if rule.name == "epsilon":
            sign = 1 if c.sum() >= 0 else -1
            # by the stabiliser; returned by size
            absorbed = rule.epsilon / (abs(c.sum()) + rule.epsilon)
            return c / (c.sum() + sign * rule.epsilon) + absorbed * np.abs(c) / np.abs(c).sum()
        positive, negative = np.where(c > 0, c, 0.0), np.where(c < 0, c, 0.0)
        least = ABSENT * np.abs(c).sum()
        if positive.sum() <= least:
            return negative / np.abs(c).sum() * -1
        if -negative.sum() <= least:
            return positive / (positive if rule.name == "z_plus" else np.abs(c)).sum()
        alpha = rule.alpha if rule.name == "alpha_beta" else 1.0
        return alpha * positive / positive.sum() + (1 - alpha) * negative / negative.sum()

    def product(self, x: np.ndarray, weight: torch.Tensor, outputs: np.ndarray) -> np.ndarray:
        """Relevance of the inputs of x W, at every position."""
        w, inputs = weight.detach().numpy(), np.zeros_like(x)
        for position in range(len(x)):
            for v in range(len(w)):
                summands = [w[v, u] * x[position, u] for u in range(w.shape[1])]
                inputs[position] += self.shares(np.array(summands)) * outputs[position, v]
        return inputs

    def residual(self, kind: str, layer: int, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A sum gives each of its two summands its share."""
        a, b = self.activations[kind, layer, "residual"], self.activations[kind, layer, "update"]
        below, update = np.zeros_like(a), np.zeros_like(a)
        for place in np.ndindex(*a.shape):
            shares = self.shares(np.array([a[place], b[place]]))
            below[place], update[place] = shares * outputs[place]
        return below, update

    def feed_forward(self, kind: str, layer: int, outputs: np.ndarray) -> np.ndarray:
        module = getattr(self.model, kind)[layer].feed_forward
        kind = f"{kind}_feed_forward"
        below, update = self.residual(kind, layer, outputs)
        contract, expand = module.contract, module.expand
        hidden = self.product(self.activations[kind, layer, "hidden"], contract.weight, update)
        return below + self.product(self.activations[kind, layer, "input"], expand.weight, hidden)

    def attention(
        self, module: MultiHeadAttention, update: np.ndarray
    ) -> tuple[Relevances, Relevances]:
        """Relevance of the residual stream, and of the input of keys and values."""
        kind, layer, h, k = module.kind, module.layer, len(module.heads), module.head_width
        if not h:
            self.heads[kind, layer] = []
            # a bias, which takes no share: its relevance stays where it came from
            return update, 0.0
        weights, values, context = (
            self.activations[kind, layer, name] for name in ("weights", "values", "context")
        )
        memory = self.activations[kind, layer, "keys_input"]
        joined = context.transpose(1, 0, 2).reshape(len(update), h * k)
        outputs = self.product(joined, module.output, update)
        self.heads[kind, layer] = outputs.reshape(-1, h, k).sum((0, 2)).tolist()
        of_values = np.zeros((len(memory), h * k))
        for head, t in np.ndindex(h, len(update)):
            allowed = range(t + 1 if kind == "decoder" else len(memory))
            for i in range(head * k, (head + 1) * k):
                summands = [weights[head, t, s] * values[head, s, i - head * k] for s in allowed]
                shares = self.shares(np.array(summands)) * outputs[t, i]
                for s in allowed:
                    of_values[s, i] += shares[s]
        return 0.0, self.product(memory, module.value, of_values)

    def run(self, states: np.ndarray, step: int) -> float:
        """Fill `heads`; return the relevance that arrives at the embeddings."""
        table = self.model.output_embedding.detach().numpy()
        bias = self.model.output_bias
        bias = np.zeros(len(table)) if bias is None else bias.detach().numpy()
        best = int(np.argmax(table @ states[step] + bias))
        decoder = np.zeros_like(states)
        decoder[step] = self.shares(states[step] * table[best])
        memory: Relevances = 0.0
        for n in reversed(range(len(self.model.decoder))):
            layer = self.model.decoder[n]
            decoder = self.feed_forward("decoder", n, decoder)
            decoder, update = self.residual("cross", n, decoder)
            to_queries, to_keys = self.attention(layer.cross, update)
            decoder, memory = decoder + to_queries, memory + to_keys
            decoder, update = self.residual("decoder", n, decoder)
            decoder = decoder + sum(self.attention(layer.attention, update))
        for n in reversed(range(len(self.model.encoder))):
            memory = self.feed_forward("encoder", n, memory)
            memory, update = self.residual("encoder", n, memory)
            memory = memory + sum(self.attention(self.model.encoder[n].attention, update))
        return float(decoder.sum() + memory.sum())


@pytest.mark.parametrize("options", [{}, PUBLISHED], ids=["paper", "published"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("kept", [{}, PRUNED], ids=["all heads", "pruned"])
def test_every_head_and_step_equals_the_loops(tiny_model, data, kept, rule, options) -> None:
    model = tiny_model(**options).double()
    model.keep_heads(kept)
    for number in (0, 1):  # the second sentence has a single source token
        batch = make_batch(data, np.array([number]))
        result = all_steps(model, batch, rule)
        assert result.heads.keys() == {(kind, layer) for kind in KINDS for layer in range(2)}
        activations: Activations = {}
        with torch.inference_mode():
            states = model(batch.source, batch.target_in, activations)[0].numpy()
        for step in range(batch.target_in.shape[1]):
            expected = NeuronByNeuron(model, activations, rule)
            left = expected.run(states, step)
            assert float(result.totals["encoder 1"][step]) == pytest.approx(left, rel=1e-9)
            for key, heads in expected.heads.items():
                assert result.heads[key][step].tolist() == pytest.approx(
                    heads, rel=1e-8, abs=1e-9
                ), key


@pytest.mark.parametrize("kept", [{}, {"cross": [[], []]}, {kind: [[], []] for kind in KINDS}])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("options", [{}, PUBLISHED], ids=["paper", "published"])
def test_relevance_is_conserved_from_level_to_level(tiny_model, batch, kept, rule, options) -> None:
    model = tiny_model(**options).double()
    model.keep_heads(kept)
    result = all_steps(model, batch, RULES[rule])
    assert list(result.totals) == ["decoder 2", "decoder 1", "encoder 2", "encoder 1"]
    for level, total in result.totals.items():
        assert total.shape == (9,)
        assert float((total - 1).abs().max()) < 1e-5, level  # rounding


@pytest.mark.parametrize("rule", ["z_plus", "halves", "epsilon"])
def test_a_head_that_contributes_nothing_has_no_relevance(tiny_model, batch, rule) -> None:
    model = tiny_model()
    model.attentions("encoder")[0].output.data[:, :4] = 0.0
    model.attentions("cross")[1].value.data[4:] = 0.0
    result = all_steps(model, batch, RULES[rule])
    of_encoder, of_cross = result.heads["encoder", 0], result.heads["cross", 1]
    assert of_encoder[:, 0].abs().max() == 0.0
    assert of_cross[:, 1].abs().max() == 0.0
    assert of_encoder[:, 1].abs().max() > 0.01
    assert of_cross[:, 0].abs().max() > 0.01


# Relevance of a set: the mean over its steps, normalised layer by layer; its conservation and its
# stability.


def leaking(*args, **kwargs) -> list[Relevance]:
    """Relevance, with totals that differ between steps."""
    results = propagate(*args, **kwargs)
    for result in results:
        head = result.heads["cross", 0][:, 0]
        result.totals = {level: total + head for level, total in result.totals.items()}
    return results


@pytest.mark.parametrize(
    "floats", [1, 300, 1_000_000], ids=["step by step", "in pieces", "all at once"]
)
@pytest.mark.parametrize("rule", ["z_plus", "alpha_beta", "epsilon"])
@pytest.mark.parametrize("tags", [(), (4,)], ids=["no tag", "a forced first token"])
def test_relevance_of_a_set_is_the_mean_of_its_predictions(
    tiny_model, data, floats: int, rule: str, tags: tuple[int, ...], monkeypatch
) -> None:
    monkeypatch.setattr(relevance, "BATCH_FLOATS", floats)
    monkeypatch.setattr(relevance, "propagate", leaking)
    model = tiny_model()
    model.keep_heads(PRUNED)
    # the first target tokens are tags then
    data = replace(data, tokens=replace(data.tokens, target_tags=tags))
    result = whole(model, data, rule)
    steps: dict[tuple[str, int], list[np.ndarray]] = {key: [] for key in result.heads}
    deviations: dict[str, list[float]] = {level: [] for level in result.conservation}
    for row in range(3):
        batch = make_batch(data, np.array([row]))
        last = batch.target_in.shape[1]
        where = {"rows": torch.zeros(last, dtype=torch.long), "positions": torch.arange(last)}
        [alone] = leaking(model, batch, rules=[Rule.named(rule)], **where)
        for key, heads in alone.heads.items():
            heads = heads[len(tags) :].numpy()
            normalised = [head / np.abs(head).sum() if len(head) else head for head in heads]
            total = np.sum(normalised, axis=0)
            assert result.sums[key][row] == pytest.approx(total, rel=1e-3, abs=1e-5)
            steps[key] += normalised
        for level, total in alone.totals.items():
            deviations[level] += (total[len(tags) :] - 1).abs().tolist()
    for key, mean in result.heads.items():
        assert mean == pytest.approx(np.mean(steps[key], axis=0), rel=1e-3, abs=1e-5)
        # Of sentences with n steps and the sum s: √(Σ (s - n mean)² · N / (N - 1)) / Σ n.
        off = result.sums[key] - result.steps[:, None] * mean
        error = np.sqrt((off**2).sum(0) * 3 / 2) / result.steps.sum()
        assert result.errors[key] == pytest.approx(error)
    assert result.heads["encoder", 1].shape == (0,)
    assert result.steps.tolist() == [3 - len(tags), 4 - len(tags), 2 - len(tags)]
    for level, values in deviations.items():
        expected = {"median": sorted(values)[(len(values) - 1) // 2], "largest": max(values)}
        assert result.conservation[level] == pytest.approx(expected, rel=1e-3)


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


@pytest.fixture
def many(store) -> TokenStore:
    """60 sentences of 1 to 12 tokens on either side."""
    random, sides = np.random.default_rng(1), ([], [])
    for side in sides:
        side += [random.integers(4, 20, random.integers(1, 13)).tolist() for _ in range(60)]
    return store(*sides)


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


@pytest.mark.parametrize(
    "floats", [1, 1_000, 1_000_000], ids=["step by step", "in pieces", "all at once"]
)
def test_drawn_steps_have_the_relevance_that_they_have_alone(
    tiny_model, many, floats: int, monkeypatch
) -> None:
    """Batches of steps of many sentences, cut after the last one drawn, against one sentence at a
    time, by every rule."""
    monkeypatch.setattr(relevance, "BATCH_FLOATS", floats)
    model, rules = tiny_model(), ["z_plus", "alpha_beta", "epsilon"]
    averages = whole(model, many, *rules, predictions=150)
    sentence, position = draw(many.target_lengths + 1, number=150, seed=1)
    for rule, result in averages.items():
        sums = {key: np.zeros_like(value) for key, value in result.sums.items()}
        for row in range(60):
            alone = all_steps(model, make_batch(many, np.array([row])), Rule.named(rule))
            for key, heads in alone.heads.items():
                shares = (heads / heads.abs().sum(1, keepdim=True)).numpy()
                sums[key][row] = shares[position[sentence == row]].sum(0)
        for key, expected in sums.items():
            assert result.sums[key] == pytest.approx(expected, rel=1e-3, abs=1e-5)
        assert result.steps.tolist() == np.bincount(sentence, minlength=60).tolist()


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
