"""Stage: what a task asks of a model: the scores of the most frequent label and of a bag of words.

The bag of words is a logistic regression over the counts of subwords, of each segment separately, with an L2 penalty chosen on
the development set.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from specialized_heads import stage
from specialized_heads.classification.metrics import compare, labels_of
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.stage import Section

PENALTIES = (1e-6, 1e-5, 1e-4)
STEPS = 60  # of L-BFGS


class Settings(Section):
    metric: str
    labels: int


def counts(store: TokenStore, *, size: int) -> Tensor:
    """How often each subword occurs in each segment of each sentence: sparse (sentences, 2 · size)."""
    rows = np.repeat(np.arange(len(store)), store.source_lengths)
    after = np.cumsum(store.source == store.tokens.eos)
    before = np.concatenate([[0], after])[store.source_offsets[:-1]]  # separators in earlier sentences
    columns = store.source + size * np.minimum(after - before[rows], 1)
    places = torch.from_numpy(np.stack([rows, columns]))
    return torch.sparse_coo_tensor(places, torch.ones(len(rows)), (len(store), 2 * size)).coalesce()


def fit(features: Tensor, labels: Tensor, *, kinds: int, penalty: float) -> tuple[Tensor, Tensor]:
    """Weights (features, L) and biases (L,) of a logistic regression."""
    weights = torch.zeros(features.shape[1], kinds, requires_grad=True)
    biases = torch.zeros(kinds, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, biases], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(torch.sparse.mm(features, weights) + biases, labels) + penalty * (weights**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights.detach(), biases.detach()


def main() -> None:
    """Read the token files of all sets; write `--output`."""
    files = stage.arguments(__doc__, files=("train", "dev", "test", "output"), optional=("second",))
    settings = Settings.model_validate(files.settings)
    names = [name for name in ("train", "dev", "test", "second") if getattr(files, name)]
    stores = {name: load_tokens(getattr(files, name)) for name in names}
    size = int(max(store.source.max() for store in stores.values())) + 1
    features = {name: counts(store, size=size) for name, store in stores.items()}
    labels = {name: labels_of(store) for name, store in stores.items()}
    majority = int(np.bincount(labels["train"]).argmax())

    def predicted(model: tuple[Tensor, Tensor], name: str) -> np.ndarray:
        return (torch.sparse.mm(features[name], model[0]) + model[1]).argmax(1).numpy()

    truth = torch.from_numpy(labels["train"])
    models = [fit(features["train"], truth, kinds=settings.labels, penalty=penalty) for penalty in PENALTIES]
    best = max(models, key=lambda model: float((predicted(model, "dev") == labels["dev"]).mean()))
    written: dict[str, object] = {"metric": settings.metric, "examples": {name: len(stores[name]) for name in names}}
    for name in names[2:]:
        constant = np.full(len(labels[name]), majority)
        how = {"metric": settings.metric, "kinds": settings.labels}
        bag = compare(labels[name], predicted(best, name), constant, **how)
        same = compare(labels[name], constant, constant, **how)
        written[name] = {"majority": same.score, "bag_of_words": bag._asdict()}
        stage.log.info("%s: majority %.1f, bag of words %.1f", name, same.score, bag.score)
    stage.write_json(files.output, written)


if __name__ == "__main__":
    stage.run(main)
