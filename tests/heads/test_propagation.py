"""Propagation: shares of single neurons are those worked out by hand from the formulas in
docs/heads.md; whole models equal loops over single neurons written from the papers, for every
rule."""

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.propagation import ABSENT, Relevance, Rule, propagate, through_linear
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch, make_batch

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


# Whole models.

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


@pytest.fixture
def batch(data: TokenStore) -> Batch:
    return make_batch(data, np.arange(3))


def all_steps(model: Transformer, batch: Batch, rule: Rule) -> Relevance:
    """The relevance of every step of a batch, sentence by sentence."""
    rows, positions = batch.real(batch.target_out).nonzero(as_tuple=True)
    [result] = propagate(model, batch, rules=[rule], rows=rows, positions=positions)
    return result


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
