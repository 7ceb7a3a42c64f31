"""Labels that a model predicts, their score, and the differences of scores by paired bootstrap.

A score is a percentage: accuracy, F1 of the second label, or 100 times Matthews' correlation. All follow from the counts of pairs
(label, prediction), so a resample costs one product of matrices. p-values and intervals are those of `evaluation.significance`.
"""

from typing import NamedTuple

import numpy as np
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.evaluation.significance import resamples, significance
from specialized_heads.model.bert import Bert
from specialized_heads.training.batching import in_order, make_batch

TOKENS = 4000  # of a batch, padding included


class Score(NamedTuple):
    """A score with the 95% interval over resamples of sentences, and the p-value and interval of its difference from another."""

    score: float
    score_low: float
    score_high: float
    delta: float
    delta_low: float
    delta_high: float
    p_value: float


@torch.inference_mode()
def predict(model: Bert, store: TokenStore) -> np.ndarray:
    """The label of each sentence of a set, int64 (sentences,)."""
    labels = np.zeros(len(store), np.int64)
    for sentences in in_order(store, tokens=TOKENS):
        batch = make_batch(store, sentences).to(model.device)
        labels[sentences] = model.classify(*model.embed(batch.source)).argmax(-1).cpu().numpy()
    return labels


def labels_of(store: TokenStore) -> np.ndarray:
    """The true labels of a set."""
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
        return 100 * np.divide(2.0 * counts[:, 1, 1], both, out=np.zeros_like(total), where=both > 0)
    # Gorodkin (2004): Matthews' correlation for any number of labels; 0 where one side is constant.
    of_label, of_prediction = counts.sum(2).astype(float), counts.sum(1).astype(float)
    covariance = right * total - (of_label * of_prediction).sum(1)
    spread = np.sqrt((total**2 - (of_prediction**2).sum(1)) * (total**2 - (of_label**2).sum(1)))
    return 100 * np.divide(covariance, spread, out=np.zeros_like(total), where=spread > 0)


def score_of(labels: np.ndarray, predictions: np.ndarray, *, metric: str, kinds: int) -> float:
    """The score of predictions (sentences,); see `compare`."""
    return float(scores(_cells(labels, predictions, kinds).sum(0).reshape(1, kinds, kinds), metric)[0])


def compare(labels: np.ndarray, predictions: np.ndarray, reference: np.ndarray, *, metric: str, kinds: int) -> Score:
    """Score predictions against labels, and compare them with a reference, all (sentences,); `kinds`: number of labels."""
    times = resamples(len(labels)).astype(np.float32)
    ours, theirs = (_cells(labels, each, kinds) for each in (predictions, reference))
    score, full = (score_of(labels, each, metric=metric, kinds=kinds) for each in (predictions, reference))
    sampled, sampled_full = (scores((times @ cells).reshape(-1, kinds, kinds), metric) for cells in (ours, theirs))
    p_value, *change = significance(sampled - sampled_full, score - full, sentences=len(labels))
    return Score(score, *map(float, np.quantile(sampled, (0.025, 0.975))), score - full, *change, p_value)


def _cells(labels: np.ndarray, predictions: np.ndarray, kinds: int) -> np.ndarray:
    """One row per sentence with a 1 in the cell of its label and prediction, float32 (sentences, L · L)."""
    cells = np.zeros((len(labels), kinds * kinds), np.float32)
    cells[np.arange(len(labels)), labels * kinds + predictions] = 1
    return cells
