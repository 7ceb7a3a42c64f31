"""Relevance propagation equals loops over single neurons written from the papers, for every rule, and is conserved."""

import dataclasses

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.relevance.propagate import propagate
from specialized_heads.heads.relevance.rules import ABSENT, Rule
from specialized_heads.model.architecture import KINDS, Architecture
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.training.batching import Batch, make_batch

PAPER = Rule("epsilon", epsilon=0.0)
LOST = Rule("epsilon", epsilon=0.05)
RETURNED = Rule("epsilon", epsilon=0.05, returned=True)
RULES = {
    "paper": PAPER,
    "lost": LOST,
    "returned": RETURNED,
    "z_plus": Rule("z_plus"),
    "alpha_beta": Rule("alpha_beta", alpha=1.5),
    "attention": Rule("attention", epsilon=0.05),
    "attention returned": Rule("attention", epsilon=0.05, returned=True),
    "lost, biases": dataclasses.replace(LOST, bias=True),
    "returned, biases": dataclasses.replace(RETURNED, bias=True),
    "alpha_beta, biases": Rule("alpha_beta", alpha=2.0, bias=True),
}
PUBLISHED = {"post_norm": True, "attention_bias": True, "activation": "swish", "output_bias": True}  # as MarianMT
CONSERVING = ("returned", "z_plus", "alpha_beta")


class NeuronByNeuron:
    """Relevance of one generation step of one sentence, one neuron at a time, in float64."""

    def __init__(self, model: Transformer, activations: Activations, rule: Rule) -> None:
        self.model, self.rule = model, rule
        self.activations = {key: value[0].detach().numpy() for key, value in activations.items()}
        self.heads: dict[tuple[str, int], list[float]] = {}

    def shares(self, contributions: np.ndarray) -> np.ndarray:
        """The share that each summand of a neuron gets of its relevance."""
        c, rule = contributions, self.rule
        if rule.name in ("epsilon", "attention"):
            sign = 1 if c.sum() >= 0 else -1
            shares = c / (c.sum() + sign * rule.epsilon)
            if rule.returned:  # what the stabiliser takes, by size
                absorbed = rule.epsilon / (abs(c.sum()) + rule.epsilon)
                shares = shares + absorbed * np.abs(c) / np.abs(c).sum()
            return shares
        positive, negative = np.where(c > 0, c, 0.0), np.where(c < 0, c, 0.0)
        least = ABSENT * np.abs(c).sum()
        if positive.sum() <= least:
            return negative / np.abs(c).sum() * -1
        if -negative.sum() <= least:
            return positive / np.abs(c).sum()
        alpha = rule.alpha if rule.name == "alpha_beta" else 1.0
        return alpha * positive / positive.sum() - (alpha - 1) * negative / negative.sum()

    def product(
        self, x: np.ndarray, weight: torch.Tensor, outputs: np.ndarray, bias: torch.Tensor | None
    ) -> np.ndarray:
        """Relevance of the inputs of x W + b, at every position."""
        w, inputs = weight.detach().numpy(), np.zeros_like(x)
        for position in range(len(x)):
            for v in range(len(w)):
                summands = [w[v, u] * x[position, u] for u in range(w.shape[1])]
                if bias is not None and self.rule.bias:
                    summands.append(float(bias.detach()[v]))
                shares = self.shares(np.array(summands))
                inputs[position] += shares[: w.shape[1]] * outputs[position, v]
        return inputs

    def residual(self, kind: str, layer: int, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A sum gives each of its two summands its share."""
        a, b = self.activations[kind, layer, "residual"], self.activations[kind, layer, "update"]
        below, update = np.zeros_like(a), np.zeros_like(a)
        for place in np.ndindex(*a.shape):
            below[place], update[place] = self.shares(np.array([a[place], b[place]])) * outputs[place]
        return below, update

    def feed_forward(self, kind: str, layer: int, outputs: np.ndarray) -> np.ndarray:
        module = getattr(self.model, kind)[layer].feed_forward
        kind = f"{kind}_feed_forward"
        below, update = self.residual(kind, layer, outputs)
        contract, expand = module.contract, module.expand
        hidden = self.product(self.activations[kind, layer, "hidden"], contract.weight, update, contract.bias)
        return below + self.product(self.activations[kind, layer, "input"], expand.weight, hidden, expand.bias)

    def attention(
        self, module: MultiHeadAttention, update: np.ndarray
    ) -> tuple[np.ndarray | float, np.ndarray | float]:
        """Relevance of the input of queries, and of that of keys and values."""
        kind, layer, h, k = module.kind, module.layer, len(module.heads), module.head_width
        if not h:
            self.heads[kind, layer] = []
            # The update is a bias, which takes no share unless the rule says so: its relevance stays where it came from.
            return 0.0 if module.output_bias is None or self.rule.bias else update, 0.0
        weights, values, context = (self.activations[kind, layer, name] for name in ("weights", "values", "context"))
        x, memory = self.activations[kind, layer, "input"], self.activations[kind, layer, "keys_input"]
        joined = context.transpose(1, 0, 2).reshape(len(update), h * k)
        outputs = self.product(joined, module.output, update, module.output_bias)
        self.heads[kind, layer] = [float(outputs[:, head * k : (head + 1) * k].sum()) for head in range(h)]
        q, key = x @ module.query.detach().numpy().T, memory @ module.key.detach().numpy().T
        if module.query_bias is not None:
            q, key = q + module.query_bias.detach().numpy(), key + module.key_bias.detach().numpy()
        of_values, of_queries, of_keys = np.zeros_like(key), np.zeros_like(q), np.zeros_like(key)
        for head, t in np.ndindex(h, len(update)):
            allowed = range(t + 1 if kind == "decoder" else len(memory))
            of_weights = np.zeros(len(memory))
            for i in range(head * k, (head + 1) * k):
                summands = [weights[head, t, s] * values[head, s, i - head * k] for s in allowed]
                shares = self.shares(np.array(summands)) * outputs[t, i]
                for s in allowed:
                    of_values[s, i] += shares[s]
                    of_weights[s] += shares[s]
            if self.rule.name != "attention":
                continue
            # Half went to the weights; through the softmax to the scores, half of which go to each side.
            for s in allowed:
                summands = np.array([q[t, i] * key[s, i] / k**0.5 for i in range(head * k, (head + 1) * k)])
                of_score = summands.sum() * (of_weights[s] - weights[head, t, s] * of_weights.sum()) / 2
                for i, share in enumerate(self.shares(summands) * of_score / 2, start=head * k):
                    of_queries[t, i] += share
                    of_keys[s, i] += share
        if self.rule.name != "attention":
            return 0.0, self.product(memory, module.value, of_values, module.value_bias)
        to_keys = self.product(memory, module.value, of_values / 2, module.value_bias)
        to_keys += self.product(memory, module.key, of_keys, module.key_bias)
        return self.product(x, module.query, of_queries, module.query_bias), to_keys

    def run(self, states: np.ndarray, step: int) -> float:
        """Fill `heads`; return the relevance that arrives at the embeddings."""
        table = self.model.output_embedding.detach().numpy()
        bias = np.zeros(len(table)) if self.model.output_bias is None else self.model.output_bias.detach().numpy()
        best = int(np.argmax(table @ states[step] + bias))
        summands = states[step] * table[best]
        decoder = np.zeros_like(states)
        decoder[step] = self.shares(np.append(summands, bias[best]) if self.rule.bias else summands)[: len(summands)]
        memory: np.ndarray | float = 0.0
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
def test_every_head_and_step_equals_the_loops(
    tiny_model, data: TokenStore, kept: dict, rule: Rule, options: dict
) -> None:
    model = tiny_model(**options).double()
    model.keep_heads(kept)
    for number in (0, 1):  # the second sentence has a single source token
        batch = make_batch(data, np.array([number]))
        result = propagate(model, batch, rule=rule)
        assert result.heads.keys() == {(kind, layer) for kind in KINDS for layer in range(2)}
        activations: Activations = {}
        with torch.inference_mode():
            states = model(batch.source, batch.target_in, activations)[0].numpy()
        for step in range(batch.target_in.shape[1]):
            expected = NeuronByNeuron(model, activations, rule)
            left = expected.run(states, step)
            assert float(result.totals["encoder 1"][0, step]) == pytest.approx(left, rel=1e-9)
            for key, heads in expected.heads.items():
                assert result.heads[key][0, step].tolist() == pytest.approx(heads, rel=1e-8, abs=1e-9), key


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_paper_s_rule_conserves_relevance_and_only_rounding_hides_it(tiny_model, batch: Batch, seed: int) -> None:
    def deviation(model: Transformer, rule: Rule) -> float:
        result = propagate(model, batch, rule=rule)
        return max(float((total[result.steps] - 1).abs().max()) for total in result.totals.values())

    assert deviation(tiny_model(seed=seed).double(), PAPER) < 1e-9
    assert deviation(tiny_model(seed=seed), PAPER) > 1e-6  # rounding in float32
    assert deviation(tiny_model(seed=seed).double(), Rule("epsilon", epsilon=1e-6)) > 1e-6  # lost to the stabiliser


@pytest.mark.parametrize("kept", [{}, {"cross": [[], []]}, {kind: [[], []] for kind in KINDS}])
@pytest.mark.parametrize("rule", ["returned", "z_plus", "alpha_beta"])
@pytest.mark.parametrize("options", [{}, PUBLISHED], ids=["paper", "published"])
def test_relevance_is_conserved_from_level_to_level(
    tiny_model, batch: Batch, kept: dict, rule: str, options: dict
) -> None:
    model = tiny_model(**options).double() if options else tiny_model()
    model.keep_heads(kept)
    result = propagate(model, batch, rule=RULES[rule])
    assert list(result.totals) == ["decoder 2", "decoder 1", "encoder 2", "encoder 1"]
    assert result.steps.sum() == 9
    for level, total in result.totals.items():
        assert float((total[result.steps] - 1).abs().max()) < 1e-4, level


def test_a_lost_share_and_the_share_of_biases_leave_the_network(tiny_model, batch: Batch) -> None:
    model = tiny_model()

    def deviations(rule: Rule) -> torch.Tensor:
        result = propagate(model, batch, rule=rule)
        return (torch.stack(list(result.totals.values()))[:, result.steps] - 1).abs()

    assert deviations(LOST).min() > 1e-3
    assert deviations(RULES["returned, biases"]).min() > 1e-3
    for module in (layer.feed_forward for layer in (*model.encoder, *model.decoder)):
        module.expand.bias.data.zero_()
        module.contract.bias.data.zero_()
    assert deviations(RULES["returned, biases"]).max() < 1e-4


@pytest.mark.parametrize("rule", ["lost", "returned", "alpha_beta", "attention"])
def test_neither_other_sentences_in_the_batch_nor_the_choice_of_steps_matter(
    tiny_model, data: TokenStore, batch: Batch, rule: str
) -> None:
    model = tiny_model()
    together = propagate(model, batch, rule=RULES[rule])
    for row, steps in enumerate(data.target_lengths + 1):
        alone = propagate(model, make_batch(data, np.array([row])), rule=RULES[rule], steps=slice(1, None))
        assert together.steps[row].tolist() == [step < steps for step in range(4)]
        assert alone.steps.shape == (1, steps - 1)
        for key, heads in alone.heads.items():
            assert torch.allclose(together.heads[key][row, 1:steps], heads[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rule", ["returned", "z_plus", "alpha_beta", "attention"])
def test_a_head_that_contributes_nothing_has_no_relevance(tiny_model, batch: Batch, rule: str) -> None:
    model = tiny_model()
    model.attentions("encoder")[0].output.data[:, :4] = 0.0
    model.attentions("cross")[1].value.data[4:] = 0.0
    result = propagate(model, batch, rule=RULES[rule])
    of_encoder, of_cross = result.heads["encoder", 0][result.steps], result.heads["cross", 1][result.steps]
    assert of_encoder[:, 0].abs().max() == 0.0
    assert of_cross[:, 1].abs().max() == 0.0
    assert of_encoder[:, 1].abs().max() > 0.01
    assert of_cross[:, 0].abs().max() > 0.01


def test_what_a_fixed_pattern_does_not_depend_on_has_no_relevance(batch: Batch) -> None:
    sizes = {"source_vocabulary": 20, "target_vocabulary": 20, "width": 16, "feed_forward": 12}
    model = Transformer(Architecture.full(layers=2, heads=8, fixed_patterns=True, **sizes), dropout=0.0).eval()
    initialise(model, seed=1)
    before = propagate(model, batch, rule=RULES["attention"])
    second = model.attentions("encoder")[1]
    second.query.data[: 7 * second.head_width] *= -3.0  # of the seven fixed heads, which do not use it
    after = propagate(model, batch, rule=RULES["attention"])
    assert torch.allclose(before.heads["encoder", 0], after.heads["encoder", 0], atol=1e-7)
    second.query.data[7 * second.head_width :] *= -3.0
    changed = propagate(model, batch, rule=RULES["attention"])
    assert not torch.allclose(before.heads["encoder", 0], changed.heads["encoder", 0], atol=1e-4)
