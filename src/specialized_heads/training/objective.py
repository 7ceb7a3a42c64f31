"""What a model is trained for: cross-entropy and, during pruning, the sparsity penalty λ·L_C on its
gates (section 6.1).

Cross-entropies are sums in nats, in float32; `units` counts what they are divided by: target
tokens, sentences or masked tokens. A store holds the input of a classifier or of a masked language
model on its source side, [CLS] included; the end of sentence that every batch adds is [SEP]. The
target side of a classifier's store holds the label.

The penalty has a given λ, or one controlled to reach a number of heads, since small changes of λ
can close all gates or none.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.model.attention import Activations
from specialized_heads.model.bert import Bert, BertArchitecture
from specialized_heads.model.functional import cross_entropy
from specialized_heads.model.gates import HardConcrete, sample
from specialized_heads.model.packing import Packing
from specialized_heads.model.transformer import Network, Transformer
from specialized_heads.training.batching import Batch, in_order, make_batch

MASKED = 0.15  # share of the tokens to predict (Devlin et al. 2019)
REPLACED, KEPT = 0.8, 0.9  # [MASK] below the first; a random token from there to the second
REACHED = 0.05  # share of the updates after which the target is the number of heads
DECIDED = 0.3  # share of the updates after which gates become constants
# Gains of the controller in nats, for an error of all heads; the integral gain for an error that
# lasts the whole run.
PROPORTIONAL, INTEGRAL = 0.07, 2.0


class Translation:
    """Cross-entropy of the target tokens, end of sentence included."""

    unit = "target tokens"  # what losses are divided by

    def units(self, store: TokenStore, sentences: np.ndarray) -> int:
        return int((store.target_lengths[sentences] + 1).sum())

    def batch(self, store: TokenStore, sentences: np.ndarray, *, seed: int) -> Batch:
        """These sentences, padded; `seed`: of what is drawn anew each time."""
        return make_batch(store, sentences)

    def loss(
        self,
        model: Transformer,
        batch: Batch,
        *,
        label_smoothing: float,
        activations: Activations | None = None,
    ) -> Tensor:
        if activations is None and model.packs():
            targets = Packing(batch.real(batch.target_out))
            states = model(batch.source, batch.target_in, targets=targets)
            labels = targets.pack(batch.target_out, filler=batch.tokens.pad)
        else:
            states = model(batch.source, batch.target_in, activations).flatten(0, 1)
            labels = batch.target_out.flatten()
        return cross_entropy(
            states,
            model.output_embedding,
            labels,
            bias=model.output_bias,
            smoothing=label_smoothing,
            ignore=batch.tokens.pad,
        )


class Classification:
    unit = "sentences"

    def units(self, store: TokenStore, sentences: np.ndarray) -> int:
        return len(sentences)

    def batch(self, store: TokenStore, sentences: np.ndarray, *, seed: int) -> Batch:
        return make_batch(store, sentences)

    def loss(
        self, model: Bert, batch: Batch, *, label_smoothing: float, activations=None
    ) -> Tensor:
        logits = model.logits(model(batch.source, activations=activations))
        labels = batch.target_out[:, 0]
        return F.cross_entropy(logits, labels, reduction="sum", label_smoothing=label_smoothing)


class MaskedLanguageModel:
    """Cross-entropy of masked tokens, drawn anew each epoch (Liu et al. 2019)."""

    unit = "masked tokens"

    def __init__(self, architecture: BertArchitecture) -> None:
        self.a = architecture

    def units(self, store: TokenStore, sentences: np.ndarray) -> int:
        return int(masked_tokens(store.source_lengths[sentences] - 1).sum())

    def batch(self, store: TokenStore, sentences: np.ndarray, *, seed: int) -> Batch:
        batch = make_batch(store, sentences)
        random, ids = np.random.default_rng(seed), batch.source.numpy()
        keys = random.random(ids.shape)
        keys[(ids == self.a.pad) | (ids == self.a.separator)] = np.inf
        keys[:, 0] = np.inf  # [CLS]
        number = masked_tokens(store.source_lengths[sentences] - 1)
        chosen = keys.argsort(1).argsort(1) < number[:, None]
        action = random.random(ids.shape)
        drawn = random.integers(self.a.vocabulary, size=ids.shape)
        # No words: they would change what is a sentence.
        structure = (drawn == self.a.pad) | (drawn == self.a.separator)
        drawn = np.where((action < REPLACED) | structure, self.a.mask, drawn)
        source = np.where(chosen & (action < KEPT), drawn, ids)
        labels = np.where(chosen, ids, self.a.pad)
        source, labels = torch.from_numpy(source), torch.from_numpy(labels)
        return Batch(source, batch.target_in, labels, batch.tokens)

    def loss(
        self, model: Bert, batch: Batch, *, label_smoothing: float, activations=None
    ) -> Tensor:
        states = model(batch.source, activations=activations)
        places = batch.target_out != self.a.pad
        return cross_entropy(
            model.before_output(states[places]),
            model.word_embedding,
            batch.target_out[places],
            bias=model.output_bias,
            smoothing=label_smoothing,
            ignore=-1,
        )


def masked_tokens(lengths: np.ndarray) -> np.ndarray:
    """How many tokens are masked in sentences of these lengths, [CLS] and [SEP] excluded: at least
    one, if there is one."""
    return np.minimum(np.maximum(np.round(MASKED * lengths), 1), lengths).astype(np.int64)


def objective_of(model: Network) -> Translation | Classification | MaskedLanguageModel:
    if not isinstance(model, Bert):
        return Translation()
    a = model.architecture
    return Classification() if a.labels else MaskedLanguageModel(a)


@torch.inference_mode()
def evaluate(model: Network, store: TokenStore) -> float:
    """Loss per unit on a held-out set, without dropout, label smoothing or penalty; gates are
    rounded to 0 or 1."""
    objective, device = objective_of(model), model.device
    was_training = model.training
    model.eval()
    total, units = 0.0, 0
    for sentences in in_order(store, tokens=4000):
        batch = objective.batch(store, sentences, seed=int(sentences[0])).to(device)
        total += float(objective.loss(model, batch, label_smoothing=0.0))
        units += objective.units(store, sentences)
    model.train(was_training)
    return total / units


@dataclass
class ConstantLambda:
    """A constant λ."""

    lam: float

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        pass


@dataclass
class HeadCountController:
    """Sets λ so that the number of open heads follows a target; `lam` and `integral` are its state.

    See docs/deviations.md. Its integral term is the multiplier of a Lagrangian (Wang et al. 2020,
    "Structured Pruning of Large Language Models"); a negative λ opens gates again. Open heads are
    counted by the gates at their median noise, u = 1/2: this is close to the number of log α > 0,
    the rule of the final decision, whereas the sum of P(open) exceeds it until log α of the closed
    gates is far below 0. It only comes close to the number of heads; `fix_largest` keeps exactly
    that many.
    """

    heads: int
    updates: int  # of the whole run
    lam: float = 0.0
    integral: float = 0.0

    @property
    def decision(self) -> int:
        """The update after which the gates are fixed; λ is 0 from then on."""
        return max(1, int(DECIDED * self.updates))

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set λ of the next update, or fix the gates, after update number `update`."""
        if update >= self.decision:
            self.lam = 0.0
            if update == self.decision:
                fix_largest(gates, self.heads)
            return
        log_alpha = torch.cat([gate.log_alpha.detach() for gate in gates])
        share = min(1.0, update / (REACHED * self.updates))
        target = len(log_alpha) + share * (self.heads - len(log_alpha))
        median = sample(log_alpha, torch.full_like(log_alpha, 0.5))
        error = (float(median.sum()) - target) / len(log_alpha)
        self.integral += error / self.updates
        self.lam = PROPORTIONAL * error + INTEGRAL * self.integral


# Their attributes are plain numbers, which are saved with the state of a run.
Penalty = ConstantLambda | HeadCountController


def fix_largest(gates: list[HardConcrete], count: int) -> None:
    """Fix the `count` gates with the largest log α at 1, the first ones where values are equal, and
    all others at 0."""
    log_alpha = torch.cat([gate.log_alpha.detach() for gate in gates])
    order = torch.sort(log_alpha, descending=True, stable=True).indices
    chosen = torch.zeros(len(log_alpha), dtype=torch.bool, device=log_alpha.device)
    chosen[order[:count]] = True
    sizes = [len(gate.log_alpha) for gate in gates]
    for gate, decisions in zip(gates, chosen.split(sizes), strict=True):
        gate.fix(decisions)
