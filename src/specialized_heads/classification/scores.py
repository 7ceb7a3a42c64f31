"""Stages: the scores of a model (`score`), without some of its heads (`ablation`), and of a bag of
words (`baselines`); sentences per second with and without half of the heads (`speed`).

A model is scored on the test set and on the second one, and compared with its baseline. Heads are
removed as `pruning.ablation` does for translation. The baselines are the most frequent label and a
logistic regression over the counts of subwords, of each segment separately, with the L2 penalty
whose score on the development set is highest.

A score is a percentage: accuracy, F1 of the second label, or 100 times Matthews' correlation. All
follow from the counts of pairs (label, prediction), so a resample costs one product of matrices.
p-values and intervals of differences are those of `evaluation`, by paired bootstrap.

Speed is measured for several batch sizes (Michel et al. 2019, table 4). The least important half of
the heads is removed from the weights. Both models take turns; the median and the range over the
rounds are written. The rule reserves all cores, so that no other job of the pipeline runs at the
same time, but computes in one thread. On a CPU it counts the time that this thread computes, which
other programs on the machine affect little.
"""

import copy
import math
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack
from scipy.special import log_softmax, softmax

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.evaluation import resamples, significance
from specialized_heads.model.bert import Bert
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.devices import matmul_precision
from specialized_heads.pruning.ablation import (
    NOTHING,
    Removal,
    Row,
    ablate,
    fingerprint,
    mask,
    ranking,
)
from specialized_heads.tables import read_table, write_table
from specialized_heads.training.batching import in_order, make_batch
from specialized_heads.training.state import claim

TOKENS = 4000  # of a batch, padding included
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEPS = 60  # of L-BFGS


class Score(NamedTuple):
    """A score with the 95% interval over resamples of sentences, and the p-value and interval of
    its difference from another."""

    score: float
    score_low: float
    score_high: float
    delta: float
    delta_low: float
    delta_high: float
    p_value: float


# Of an ablation.
NUMBERS = "score score_low score_high score_full delta delta_low delta_high p_value".split()
SCORES = dict.fromkeys(NUMBERS, pa.float64()) | {"sentences": pa.int64(), "metric": pa.string()}


@torch.inference_mode()
def predict(model: Bert, store: TokenStore, removals: Sequence[Removal] = (NOTHING,)) -> np.ndarray:
    """The label of each sentence under each removal of heads, int64 (removals, sentences).

    Below the first layer of a removal, states are those of the whole model, which are computed once
    for all.
    """
    labels = np.zeros((len(removals), len(store)), np.int64)
    last = len(model.encoder) - 1
    first = [min((layer - 1 for _, layer, _ in removal), default=last) for removal in removals]
    for sentences in in_order(store, tokens=TOKENS):
        x, attn_mask = model.embed(make_batch(store, sentences).to(model.device).source)
        inputs = [x]  # of each layer of the whole model
        for layer in model.encoder[: max(first)]:
            inputs.append(layer(inputs[-1], attn_mask))
        for row, (removal, start) in enumerate(zip(removals, first, strict=True)):
            mask(model, [removal])
            likely = model.classify(inputs[start], attn_mask, start=start).argmax(-1)
            labels[row, sentences] = likely.cpu().numpy()
            mask(model, [NOTHING])
    return labels


def labels_of(store: TokenStore) -> np.ndarray:
    return np.asarray(store.target, np.int64)


def scores(counts: np.ndarray, metric: str) -> np.ndarray:
    """Scores (N,) from counts (N, L, L) of sentences by label and prediction."""
    total = counts.sum((1, 2)).astype(float)
    right = np.trace(counts, axis1=1, axis2=2).astype(float)
    if metric == "accuracy":
        return 100 * right / total
    if metric == "f1":
        # Labels and predictions of the second label.
        both = (counts[:, 1].sum(1) + counts[:, :, 1].sum(1)).astype(float)
        right = 2.0 * counts[:, 1, 1]
        return 100 * np.divide(right, both, out=np.zeros_like(total), where=both > 0)
    # Gorodkin (2004): Matthews' correlation for any number of labels; 0 where one side is constant.
    of_label, of_prediction = counts.sum(2).astype(float), counts.sum(1).astype(float)
    covariance = right * total - (of_label * of_prediction).sum(1)
    spread = np.sqrt((total**2 - (of_prediction**2).sum(1)) * (total**2 - (of_label**2).sum(1)))
    return 100 * np.divide(covariance, spread, out=np.zeros_like(total), where=spread > 0)


def score_of(labels: np.ndarray, predictions: np.ndarray, *, metric: str, kinds: int) -> float:
    counts = _cells(labels, predictions, kinds).sum(0).reshape(1, kinds, kinds)
    return float(scores(counts, metric)[0])


def compare(
    labels: np.ndarray, predictions: np.ndarray, reference: np.ndarray, *, metric: str, kinds: int
) -> Score:
    """Score predictions against labels, and compare them with a reference, all (sentences,);
    `kinds`: number of labels."""
    times = resamples(len(labels)).astype(np.float32)
    found = []
    for each in (predictions, reference):
        counts = (times @ _cells(labels, each, kinds)).reshape(-1, kinds, kinds)
        found.append((score_of(labels, each, metric=metric, kinds=kinds), scores(counts, metric)))
    (score, sampled), (full, sampled_full) = found
    p_value, *change = significance(sampled - sampled_full, score - full, sentences=len(labels))
    low, high = map(float, np.quantile(sampled, (0.025, 0.975)))
    return Score(score, low, high, score - full, *change, p_value)


def _cells(labels: np.ndarray, predictions: np.ndarray, kinds: int) -> np.ndarray:
    """One row per sentence with a 1 in the cell of its label and prediction: (sentences, L · L)."""
    cells = np.zeros((len(labels), kinds * kinds), np.float32)
    cells[np.arange(len(labels)), labels * kinds + predictions] = 1
    return cells


class ScoreSettings(stage.Section):
    metric: str
    device: str
    precision: str = "fp32"  # of matrix products


@stage.command("model", "baseline", "test", "output", optional=("second",), settings=ScoreSettings)
def score(files: stage.Files, settings: ScoreSettings) -> None:
    model, baseline = (
        load_on(path, settings.device, settings.precision) for path in (files.model, files.baseline)
    )
    written: dict[str, object] = {"metric": settings.metric}
    how = {"metric": settings.metric, "kinds": model.architecture.labels}
    for name, path in (("test", files.test), ("second", files.second)):
        if path is None:
            continue
        store = load_tokens(path)
        found = compare(labels_of(store), *predict(model, store), *predict(baseline, store), **how)
        written[name] = found._asdict() | {"sentences": len(store)}
        stage.log.info("%s: %s %.2f", name, settings.metric, found.score)
    stage.write_json(files.output, written)


class AblationSettings(ScoreSettings):
    alone: bool = False  # also with each head alone in its layer


@stage.command(
    "model", "tokens", "output", "state", optional=("importance",), settings=AblationSettings
)
def ablation(files: stage.Files, settings: AblationSettings) -> None:
    # Before it may wait for a GPU that an earlier process holds, which then stops.
    claim(files.state)
    model = load_on(files.model, settings.device, settings.precision)
    store = load_tokens(files.tokens)
    how = {"metric": settings.metric, "kinds": model.architecture.labels}

    def scored(under: dict[Removal, list[int]]) -> dict[Removal, Row]:
        labels, whole = labels_of(store), np.array(under[NOTHING])
        found = {
            removal: compare(labels, np.array(made), whole, **how)._asdict()
            for removal, made in under.items()
        }
        common = {"score_full": found[NOTHING]["score"], "sentences": len(store)}
        common["metric"] = settings.metric
        return {removal: row | common for removal, row in found.items()}

    precision = matmul_precision(settings.precision, model.device)
    computed = {"device": model.device.type, "precision": precision, "torch": torch.__version__}
    read = (files.model, files.model.with_suffix(".json"), files.tokens)
    ablate(
        files,
        model.architecture,
        lambda group: predict(model, store, group).tolist(),
        scored,
        fingerprint=fingerprint(*read, settings=computed, code=("classification", "training")),
        columns=SCORES,
        alone=settings.alone,
    )


def counts(store: TokenStore, *, size: int) -> csr_matrix:
    """Counts of each subword in each segment, and a constant 1: (sentences, 2 · size + 1)."""
    rows = np.repeat(np.arange(len(store)), store.source_lengths)
    after = np.cumsum(store.source == store.tokens.eos)
    before = np.concatenate([[0], after])[store.source_offsets[:-1]]  # in earlier sentences
    columns = store.source + size * np.minimum(after - before[rows], 1)
    subwords = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(store), 2 * size))
    return hstack([subwords, np.ones((len(store), 1))], format="csr")


def fit(features: csr_matrix, labels: np.ndarray, *, kinds: int, penalty: float) -> np.ndarray:
    """Weights (features, L) of a logistic regression; the last row, of the constant, has no
    penalty."""
    shape, of_label = (features.shape[1], kinds), np.eye(kinds)[labels]
    transposed = features.T.tocsr()
    penalties = np.full((shape[0], 1), penalty)
    penalties[-1] = 0.0

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights = values.reshape(shape)
        logits = features @ weights
        gradient = transposed @ (softmax(logits, 1) - of_label) / len(labels)
        gradient = gradient + 2 * penalties * weights
        value = -(of_label * log_softmax(logits, 1)).sum() / len(labels)
        return value + (penalties * weights**2).sum(), gradient.ravel()

    how = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": STEPS}}
    found = minimize(loss, np.zeros(shape).ravel(), **how)
    return found.x.reshape(shape)


class BaselinesSettings(stage.Section):
    metric: str
    labels: int


@stage.command("train", "dev", "test", "output", optional=("second",), settings=BaselinesSettings)
def baselines(files: stage.Files, settings: BaselinesSettings) -> None:
    names = [name for name in ("train", "dev", "test", "second") if getattr(files, name)]
    stores = {name: load_tokens(getattr(files, name)) for name in names}
    size = int(max(store.source.max() for store in stores.values())) + 1
    features = {name: counts(store, size=size) for name, store in stores.items()}
    labels = {name: labels_of(store) for name, store in stores.items()}
    majority = int(np.bincount(labels["train"]).argmax())

    def predicted(weights: np.ndarray, name: str) -> np.ndarray:
        return (features[name] @ weights).argmax(1)

    models = [
        fit(features["train"], labels["train"], kinds=settings.labels, penalty=penalty)
        for penalty in PENALTIES
    ]
    how = {"metric": settings.metric, "kinds": settings.labels}
    best = max(models, key=lambda model: score_of(labels["dev"], predicted(model, "dev"), **how))
    examples = {name: len(stores[name]) for name in names}
    written: dict[str, object] = {"metric": settings.metric, "examples": examples}
    for name in names[2:]:
        constant = np.full(len(labels[name]), majority)
        bag = compare(labels[name], predicted(best, name), constant, **how)
        same = compare(labels[name], constant, constant, **how)
        written[name] = {"majority": same.score, "bag_of_words": bag._asdict()}
        stage.log.info("%s: majority %.1f, bag of words %.1f", name, same.score, bag.score)
    stage.write_json(files.output, written)


ROUNDS = 7
SENTENCES = 256  # per round
REMOVED = 0.5  # share of the heads
# By sentences per batch: heads left and in total; sentences per second and the gain over all heads
# in the same round, each with the lowest and highest of the rounds.
SPEEDS = ("speed", "speed_low", "speed_high", "gain", "gain_low", "gain_high")
SPEED_SCHEMA = pa.schema(
    dict.fromkeys(("sentences", "heads", "total"), pa.int64())
    | dict.fromkeys(SPEEDS, pa.float64())
    | {"parameters": pa.int64(), "device": pa.string()}
)


class SpeedSettings(stage.Section):
    batches: list[int]  # sentences per batch
    device: str


def clock(device: torch.device) -> float:
    """Time in seconds: of this thread on a CPU; of the clock on a GPU, once its work is done."""
    if device.type == "cpu":
        return time.thread_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.inference_mode()
def seconds(model: Bert, store: TokenStore, batches: list[np.ndarray]) -> float:
    """Seconds to classify these batches."""
    inputs = [make_batch(store, batch).source.to(model.device) for batch in batches]
    model.logits(model(inputs[0]))  # the first call compiles kernels
    started = clock(model.device)
    for ids in inputs:
        model.logits(model(ids))
    return clock(model.device) - started


@stage.command("model", "importance", "tokens", "output", settings=SpeedSettings)
def speed(files: stage.Files, settings: SpeedSettings) -> None:
    torch.set_num_threads(1)
    model, store = load_on(files.model, settings.device), load_tokens(files.tokens)
    order = ranking(read_table(files.importance).to_pandas(), "all")
    pruned = copy.deepcopy(model)
    pruned.remove_heads(set(order[: math.floor(REMOVED * len(order))]))
    on_cpu = model.device.type == "cpu"
    name = "CPU, 1 thread" if on_cpu else torch.cuda.get_device_name(model.device)
    rows = []
    for size in settings.batches:
        # Whole batches only; a small set is repeated.
        batches = list(np.resize(np.arange(len(store)), (max(1, SENTENCES // size), size)))
        times = [[seconds(each, store, batches) for each in (model, pruned)] for _ in range(ROUNDS)]
        gains = [whole / part - 1 for whole, part in times]
        for place, each in enumerate((model, pruned)):
            speeds = [size * len(batches) / pair[place] for pair in times]
            heads = sum(map(len, each.architecture.encoder))
            row = {"sentences": size, "heads": heads, "total": len(order), "device": name}
            row["parameters"] = sum(parameter.numel() for parameter in each.parameters())
            for column, values in {"speed": speeds, "gain": gains if place else ()}.items():
                if values:
                    row |= {column: median(values), f"{column}_low": min(values)}
                    row[f"{column}_high"] = max(values)
            rows.append(row)
    write_table(files.output, pa.Table.from_pylist(rows, schema=SPEED_SCHEMA))
    stage.log.info("%d batch sizes", len(settings.batches))


stage.no_stage(__name__)
