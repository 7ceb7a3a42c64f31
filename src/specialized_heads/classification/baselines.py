"""Stage: what a task asks of a model: the scores of the most frequent label and of a bag of words.

The bag of words is a logistic regression over the counts of subwords, of each segment separately, with the L2 penalty whose score
on the development set is highest.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack
from scipy.special import log_softmax, softmax

from specialized_heads import stage
from specialized_heads.classification.metrics import compare, labels_of, score_of
from specialized_heads.corpus.tokens import TokenStore, load_tokens

PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEPS = 60  # of L-BFGS


class Settings(stage.Section):
    metric: str
    labels: int


def counts(store: TokenStore, *, size: int) -> csr_matrix:
    """How often each subword occurs in each segment of each sentence, and a constant 1: (sentences, 2 · size + 1)."""
    rows = np.repeat(np.arange(len(store)), store.source_lengths)
    after = np.cumsum(store.source == store.tokens.eos)
    before = np.concatenate([[0], after])[store.source_offsets[:-1]]  # separators in earlier sentences
    columns = store.source + size * np.minimum(after - before[rows], 1)
    subwords = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(store), 2 * size))
    return hstack([subwords, np.ones((len(store), 1))], format="csr")


def fit(features: csr_matrix, labels: np.ndarray, *, kinds: int, penalty: float) -> np.ndarray:
    """Weights (features, L) of a logistic regression; the last row, of the constant, has no penalty."""
    shape, of_label, transposed = (features.shape[1], kinds), np.eye(kinds)[labels], features.T.tocsr()
    penalties = np.full((shape[0], 1), penalty)
    penalties[-1] = 0.0

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights = values.reshape(shape)
        logits = features @ weights
        gradient = transposed @ (softmax(logits, 1) - of_label) / len(labels) + 2 * penalties * weights
        value = -(of_label * log_softmax(logits, 1)).sum() / len(labels) + (penalties * weights**2).sum()
        return value, gradient.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return found.x.reshape(shape)


@stage.command("train", "dev", "test", "output", optional=("second",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    names = [name for name in ("train", "dev", "test", "second") if getattr(files, name)]
    stores = {name: load_tokens(getattr(files, name)) for name in names}
    size = int(max(store.source.max() for store in stores.values())) + 1
    features = {name: counts(store, size=size) for name, store in stores.items()}
    labels = {name: labels_of(store) for name, store in stores.items()}
    majority = int(np.bincount(labels["train"]).argmax())

    def predicted(weights: np.ndarray, name: str) -> np.ndarray:
        return (features[name] @ weights).argmax(1)

    models = [fit(features["train"], labels["train"], kinds=settings.labels, penalty=penalty) for penalty in PENALTIES]
    how = {"metric": settings.metric, "kinds": settings.labels}
    best = max(models, key=lambda model: score_of(labels["dev"], predicted(model, "dev"), **how))
    written: dict[str, object] = {"metric": settings.metric, "examples": {name: len(stores[name]) for name in names}}
    for name in names[2:]:
        constant = np.full(len(labels[name]), majority)
        bag = compare(labels[name], predicted(best, name), constant, **how)
        same = compare(labels[name], constant, constant, **how)
        written[name] = {"majority": same.score, "bag_of_words": bag._asdict()}
        stage.log.info("%s: majority %.1f, bag of words %.1f", name, same.score, bag.score)
    stage.write_json(files.output, written)
