"""What every system is given: model sizes, sentences, batches and weights, and what a batch costs
by formula.

The sentences are those of the embedded Tatoeba corpus with ten subwords or more on either side (14
on average), in subwords of a vocabulary of the size's own. Every system gets the same ids in the
same batches, and, where its architecture allows it, the same random weights.
"""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import sentencepiece
from safetensors.numpy import save_file

from specialized_heads.corpus.tokens import TokenStore, cut, learn, load_tokens
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer, initialise

CORPUS = Path(__file__).parents[2] / "resources/tatoeba_en_fr/corpus.parquet"
SHORTEST = 10  # subwords, end of sentence included
SEED = 1
DROPOUT, LABEL_SMOOTHING = 0.1, 0.1


@dataclass(frozen=True)
class Size:
    """A model size."""

    name: str
    layers: int
    heads: int
    width: int
    feed_forward: int
    vocabulary: int

    @property
    def architecture(self) -> Architecture:
        return Architecture.full(
            source_vocabulary=self.vocabulary,
            target_vocabulary=self.vocabulary,
            layers=self.layers,
            heads=self.heads,
            width=self.width,
            feed_forward=self.feed_forward,
        )


SIZES = {
    size.name: size
    for size in (
        Size("d128", layers=3, heads=8, width=128, feed_forward=512, vocabulary=6000),
        Size("d256", layers=3, heads=8, width=256, feed_forward=1024, vocabulary=6000),
        Size("base", layers=6, heads=8, width=512, feed_forward=2048, vocabulary=32000),
    )
}


@dataclass(frozen=True)
class Workload:
    """Sentences, batches and weights of one size, in a directory that the measuring processes
    share."""

    size: Size
    folder: Path
    train: list[list[int]]  # sentence numbers; one list is one update
    seed: int = SEED  # of random weights

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.safetensors"

    @property
    def weights(self) -> Path:
        return self.folder / "model.safetensors"

    @cached_property
    def store(self) -> TokenStore:
        return load_tokens(self.tokens)

    def training_flops(self, batch: list[int]) -> float:
        """Floating-point operations that an update of this batch needs; see `training_flops`."""
        store = self.store
        source, target = store.source_lengths[batch] + 1, store.target_lengths[batch] + 1
        return training_flops(self.size, source, target)

    def source_tokens(self, batch: list[int]) -> int:
        """Source tokens of a batch, ends of sentence counted, padding not."""
        return int((self.store.source_lengths[batch] + 1).sum())

    def target_tokens(self, batch: list[int]) -> int:
        """Target tokens of a batch, ends of sentence counted, padding not."""
        return int((self.store.target_lengths[batch] + 1).sum())

    @classmethod
    def read(cls, folder: Path) -> "Workload":
        """The workload that `make` wrote."""
        values = json.loads((folder / "workload.json").read_text())
        return cls(**{**values, "size": Size(**values["size"]), "folder": folder})


def training_flops(size: Size, source: np.ndarray, target: np.ndarray) -> float:
    """Operations of forward and backward pass over sentences of these lengths, padding and
    recomputation not counted.

    6 per weight and token (2 forward, 4 backward) for the matrices of the encoder (source tokens),
    of the decoder (target tokens; keys and values of cross-attention: source tokens) and of the
    softmax (target tokens), and 12 d per pair of query and key and layer, for scores and weighted
    sums. Embedding look-ups are free.
    """
    d, f, layers = size.width, size.feed_forward, size.layers
    per_source = layers * (4 * d * d + 2 * d * f) + layers * 2 * d * d
    per_target = layers * (6 * d * d + 2 * d * f) + size.vocabulary * d
    pairs = source**2 + target**2 + source * target
    return float(
        6 * (per_source * source.sum() + per_target * target.sum()) + 12 * d * layers * pairs.sum()
    )


def make(size: Size, folder: Path, *, batch_tokens: int, updates: int) -> Workload:
    """Write a size's sentences, weights and batches.

    Args:
        size: the model size.
        folder: an empty directory.
        batch_tokens: most tokens of an update on either side, padding included.
        updates: number of different updates.
    """
    folder.mkdir(parents=True)
    random = np.random.default_rng(SEED)
    store = write_tokens(size, folder / "tokens.safetensors")
    lengths = np.maximum(store.source_lengths, store.target_lengths) + 1
    order = np.argsort(lengths, kind="stable")
    pieces = cut(lengths[order], order, batch_tokens)
    train = [pieces[index].tolist() for index in random.permutation(len(pieces))[:updates]]

    model = Transformer(size.architecture, dropout=0.0).eval()
    initialise(model, seed=SEED)
    save(model, folder / "model.safetensors", training={})
    values = {"size": asdict(size), "train": train}
    (folder / "workload.json").write_text(json.dumps(values))
    return Workload.read(folder)


def write_tokens(size: Size, path: Path) -> TokenStore:
    """Learn vocabularies of the size's own on the corpus, and write the ids of the sentences that
    are long enough."""
    pairs = pq.read_table(CORPUS, columns=["source", "target"]).to_pydict()
    sides = {}
    for name, texts in pairs.items():
        bpe = sentencepiece.SentencePieceProcessor(
            model_proto=learn(texts, size=size.vocabulary, name=name)
        )
        sides[name] = bpe.encode(texts, num_threads=1)
    kept = [
        pair
        for pair in zip(sides["source"], sides["target"])
        if min(map(len, pair)) + 1 >= SHORTEST
    ]
    tensors = {}
    for name, rows in zip(("source", "target"), zip(*kept)):
        tensors[name] = np.concatenate(rows).astype(np.int32)
        tensors[f"{name}_offsets"] = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    save_file(tensors, path)
    return load_tokens(path)
