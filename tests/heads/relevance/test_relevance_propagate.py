"""Relevance propagation against loops over single neurons written from the papers, for every rule, and its conservation."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads.relevance.propagate import propagate
from specialized_heads.heads.relevance.rules import Rule
from specialized_heads.model import attention
from specialized_heads.model.attention import MultiHeadAttention, Tape
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.training.batching import make_batch

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]]
REMOVED = {"encoder": [[1], []], "decoder": [[], [0, 1]], "cross": [[0], [0, 1]]}
LOST = Rule("epsilon", epsilon=0.05)
RETURNED = Rule("epsilon", epsilon=0.05, returned=True)
RULES = {
    "tiny epsilon": Rule("epsilon", epsilon=1e-6),
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
CONSERVING = ("returned", "z_plus", "alpha_beta")


class NeuronByNeuron:
    """Relevance of one generation step of one sentence, one neuron at a time, in float64."""

    def __init__(self, model: Transformer, tape: Tape, rule: Rule) -> None:
        self.model, self.rule = model, rule
        self.tape = {key: value[0].numpy() for key, value in tape.items()}
        self.heads: dict[tuple[str, int], list[float]] = {}

    def shares(self, contributions: np.ndarray) -> np.ndarray:
        """The share that each summand of a neuron gets of its relevance."""
        c, rule = contributions, self.rule
        if rule.name in ("epsilon", "attention"):
            sign = 1 if c.sum() >= 0 else -1
            shares = c / (c.sum() + sign * rule.epsilon)
            if rule.returned:  # what is missing to the ratio without ε, by size
                absorbed = rule.epsilon / (abs(c.sum()) + rule.epsilon)
                shares = shares + absorbed * np.abs(c) / np.abs(c).sum()
            return shares
        positive, negative = np.where(c > 0, c, 0.0), np.where(c < 0, c, 0.0)
        if not positive.any():
            return negative / negative.sum()
        if not negative.any():
            return positive / positive.sum()
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
        a, b = self.tape[kind, layer, "residual"], self.tape[kind, layer, "update"]
        below, update = np.zeros_like(a), np.zeros_like(a)
        for place in np.ndindex(*a.shape):
            below[place], update[place] = self.shares(np.array([a[place], b[place]])) * outputs[place]
        return below, update

    def feed_forward(self, kind: str, layer: int, outputs: np.ndarray) -> np.ndarray:
        module = getattr(self.model, kind)[layer].feed_forward
        kind = f"{kind}_feed_forward"
        below, update = self.residual(kind, layer, outputs)
        contract, expand = module.contract, module.expand
        hidden = self.product(self.tape[kind, layer, "hidden"], contract.weight, update, contract.bias)
        return below + self.product(self.tape[kind, layer, "input"], expand.weight, hidden, expand.bias)

    def attention(
        self, module: MultiHeadAttention, update: np.ndarray
    ) -> tuple[np.ndarray | float, np.ndarray | float]:
        """Relevance of the input of queries, and of that of keys and values."""
        kind, layer, h, k = module.kind, module.layer, len(module.heads), module.head_width
        if not h:
            self.heads[kind, layer] = []
            return 0.0, 0.0
        weights, values, context = (self.tape[kind, layer, name] for name in ("weights", "values", "context"))
        x, memory = self.tape[kind, layer, "input"], self.tape[kind, layer, "keys_input"]
        joined = context.transpose(1, 0, 2).reshape(len(update), h * k)
        outputs = self.product(joined, module.output, update, None)
        self.heads[kind, layer] = [float(outputs[:, head * k : (head + 1) * k].sum()) for head in range(h)]
        q, key = x @ module.query.detach().numpy().T, memory @ module.key.detach().numpy().T
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
            for (
                s
            ) in allowed:  # half went to the weights; through the softmax to the scores, half of which go to each side
                summands = np.array([q[t, i] * key[s, i] / k**0.5 for i in range(head * k, (head + 1) * k)])
                of_score = summands.sum() * (of_weights[s] - weights[head, t, s] * of_weights.sum()) / 2
                for i, share in enumerate(self.shares(summands) * of_score / 2, start=head * k):
                    of_queries[t, i] += share
                    of_keys[s, i] += share
        if self.rule.name != "attention":
            return 0.0, self.product(memory, module.value, of_values, None)
        to_keys = self.product(memory, module.value, of_values / 2, None)
        to_keys += self.product(memory, module.key, of_keys, None)
        return self.product(x, module.query, of_queries, None), to_keys

    def run(self, states: np.ndarray, step: int) -> float:
        """Fill `heads`; return all relevance that has arrived at the embeddings."""
        table = self.model.softmax_embedding.detach().numpy()
        top = table[int(np.argmax(table @ states[step]))]
        decoder = np.zeros_like(states)
        decoder[step] = self.shares(states[step] * top)
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


@pytest.mark.parametrize("removed", [{}, REMOVED], ids=["all heads", "pruned"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_head_and_step_equals_the_loops(
    tiny_model: Callable[..., Transformer],
    store: Callable[..., TokenStore],
    removed: dict,
    rule: Rule,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "softmax", lambda scores: torch.softmax(scores, -1))  # so that all is float64
    model = tiny_model().double()
    model.keep_heads(removed)
    for number in (0, 1):  # the second sentence has a single source token
        batch = make_batch(store(SOURCES, TARGETS), np.array([number]))
        found = propagate(model, batch, rule=rule)
        assert found.heads.keys() == {(kind, layer) for kind in KINDS for layer in range(2)}
        tape: Tape = {}
        with torch.inference_mode():
            states = model(batch.source, batch.target_in, tape)[0].numpy()
        for step in range(batch.target_in.shape[1]):
            expected = NeuronByNeuron(model, tape, rule)
            left = expected.run(states, step)
            assert float(found.totals["encoder 1"][0, step]) == pytest.approx(left, rel=1e-6, abs=1e-7)
            for key, heads in expected.heads.items():
                assert found.heads[key][0, step].tolist() == pytest.approx(heads, rel=1e-5, abs=1e-7), key


@pytest.mark.parametrize("removed", [{}, REMOVED, {"cross": [[], []]}, {kind: [[], []] for kind in KINDS}])
@pytest.mark.parametrize("rule", CONSERVING)
def test_relevance_is_conserved_from_level_to_level(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore], removed: dict, rule: str
) -> None:
    model = tiny_model()
    model.keep_heads(removed)
    found = propagate(model, make_batch(store(SOURCES, TARGETS), np.arange(3)), rule=RULES[rule])
    assert list(found.totals) == ["decoder 2", "decoder 1", "encoder 2", "encoder 1"]
    assert found.steps.sum() == sum(map(len, TARGETS)) + 3
    for level, total in found.totals.items():
        assert float((total[found.steps] - 1).abs().max()) < 1e-4, level


def test_what_is_not_returned_and_what_biases_take_leaves_the_network(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    model, batch = tiny_model(), make_batch(store(SOURCES, TARGETS), np.arange(3))

    def kept(rule: Rule) -> torch.Tensor:
        found = propagate(model, batch, rule=rule)
        return torch.stack(list(found.totals.values()))[:, found.steps]

    assert (kept(LOST) - 1).abs().min() > 1e-3
    assert (kept(RULES["returned, biases"]) - 1).abs().min() > 1e-3
    for module in (layer.feed_forward for layer in (*model.encoder, *model.decoder)):
        module.expand.bias.data.zero_()
        module.contract.bias.data.zero_()
    assert (kept(RULES["returned, biases"]) - 1).abs().max() < 1e-4


def test_positive_contributions_alone_give_positive_relevance(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore]
) -> None:
    found = propagate(tiny_model(), make_batch(store(SOURCES, TARGETS), np.arange(3)), rule=RULES["z_plus"])
    for heads in found.heads.values():
        assert float(heads[found.steps].min()) > -1e-6


@pytest.mark.parametrize("rule", ["lost", "returned", "alpha_beta", "attention"])
def test_companions_in_the_batch_and_the_choice_of_steps_change_nothing(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore], rule: str
) -> None:
    model, data = tiny_model(), store(SOURCES, TARGETS)
    together = propagate(model, make_batch(data, np.arange(3)), rule=RULES[rule])
    for row, target in enumerate(TARGETS):
        alone = propagate(model, make_batch(data, np.array([row])), rule=RULES[rule], steps=slice(1, None))
        steps = len(target) + 1
        assert together.steps[row].tolist() == [step < steps for step in range(4)]
        assert alone.steps.shape == (1, steps - 1)
        for key, heads in alone.heads.items():
            assert torch.allclose(together.heads[key][row, 1:steps], heads[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rule", ["returned", "z_plus", "alpha_beta", "attention"])
def test_a_head_that_adds_nothing_has_no_relevance(
    tiny_model: Callable[..., Transformer], store: Callable[..., TokenStore], rule: str
) -> None:
    model = tiny_model()
    model.attentions("encoder")[0].output.data[:, :4] = 0.0
    model.attentions("cross")[1].value.data[4:] = 0.0
    found = propagate(model, make_batch(store(SOURCES, TARGETS), np.arange(3)), rule=RULES[rule])
    of_encoder, of_cross = found.heads["encoder", 0][found.steps], found.heads["cross", 1][found.steps]
    assert of_encoder[:, 0].abs().max() == 0.0
    assert of_cross[:, 1].abs().max() == 0.0
    assert of_encoder[:, 1].abs().max() > 0.01
    assert of_cross[:, 0].abs().max() > 0.01
