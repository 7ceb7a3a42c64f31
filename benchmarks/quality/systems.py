"""How each system is trained, and how all models are scored."""

import os
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.engine import ours
from benchmarks.engine.workload import DROPOUT, Size, Workload
from specialized_heads.corpus.tokens import load_bpe, load_tokens
from specialized_heads.evaluation import bleu
from specialized_heads.model.decoding import translate_all
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.training.batching import epoch_updates
from specialized_heads.training.loop import _Run, load_data
from specialized_heads.training.objective import evaluate
from specialized_heads.training.optimizers import learning_rate
from specialized_heads.training.state import DistributedContext

BATCH_TOKENS, WARMUP = 3000, 200

# Makes one update per step and returns the trained model, converted to this engine's.
Training = Generator[None, None, Transformer]


@dataclass(frozen=True)
class System:
    """A system, how it trains, and the learning rates to compare."""

    title: str
    train: Callable[..., Training]  # corpus, rate, updates, seed
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Corpus:
    """The corpus folder of an experiment, whose tokens have been made."""

    folder: Path

    def tokens(self, split: str) -> Path:
        return self.folder / "tokens" / f"{split}.safetensors"

    @property
    def size(self) -> Size:
        vocabulary = load_bpe(self.folder / "bpe.target.model").get_piece_size()
        return Size("d128", layers=3, heads=8, width=128, feed_forward=512, vocabulary=vocabulary)

    def score(self, model: Transformer) -> tuple[float, float]:
        """Development loss, and BLEU of the test set."""
        test, bpe = load_tokens(self.tokens("test")), load_bpe(self.folder / "bpe.target.model")
        sources = [test.source_ids(sentence).tolist() for sentence in range(len(test))]
        outputs = [
            bpe.decode(ids)
            for ids in translate_all(model.eval(), sources, beam=4, max_length_ratio=2.0)
        ]
        references = pq.read_table(self.folder / "test.parquet", columns=["target"])[
            "target"
        ].to_pylist()
        score = bleu("fr", lowercase=False).corpus_score(outputs, [references]).score
        return evaluate(model, load_tokens(self.tokens("dev"))), score


def finish(training: Training) -> Transformer:
    """Run a training to its end."""
    while True:
        try:
            next(training)
        except StopIteration as end:
            return end.value


def untrained(size: Size, seed: int, *, dropout: float = DROPOUT, **changes: float) -> Transformer:
    """A newly initialised model of this engine; `changes` override fields of its architecture."""
    model = Transformer(replace(size.architecture, **changes), dropout=dropout)
    initialise(model, seed=seed)
    return model


def warmup(updates: int) -> int:
    """Updates until the peak of the learning rate."""
    return min(WARMUP, updates // 2)


def train_ours(corpus: Corpus, rate: float, updates: int, seed: int, *, recipe: str) -> Training:
    """This engine: the recipe of the paper, that of the shipped experiments, or the one that lowers
    the loss fastest."""
    settings = {
        "seed": seed,
        "updates": updates,
        "batch_tokens": BATCH_TOKENS,
        "micro_batch_tokens": 2500,
        "schedule": "linear",
        "learning_rate": rate,
        "warmup": warmup(updates),
        "precision": "bf16",
    }
    changes = {}
    if recipe != "paper":
        settings |= {"optimizer": "muon"}
        changes = {"position_frequency": 2.0, "position_base": 30.0, "position_scale": 3.0}
    if recipe == "shipped":
        settings |= {"join": 3}
        changes |= {"head_width": 32}
    if recipe == "fast":  # few epochs need no regularisation
        settings |= {"label_smoothing": 0.0}
        changes |= {"dropout": 0.0}
    plan = ours.PLAN.model_copy(update=settings)
    model = untrained(corpus.size, seed, **changes).train()
    data = load_data(corpus.tokens("train"), corpus.tokens("dev"))
    prepare_cpu()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    run = _Run(
        model, plan, data, Path(os.devnull), None, workers=threads, context=DistributedContext()
    )
    run.working.train()
    for update in run.updates():
        run.step(update)
        yield
    torch.set_num_threads(threads)
    return model


def train_marian(corpus: Corpus, rate: float, updates: int, seed: int) -> Training:
    """Marian in transformers: whole batches of sentences of similar length, in a new order each
    epoch."""
    from benchmarks.engine import marian  # needs transformers

    store, size = load_tokens(corpus.tokens("train")), corpus.size
    pieces = epoch_updates(
        store, seed=seed, epoch=0, batch_tokens=BATCH_TOKENS, micro_batch_tokens=2 * BATCH_TOKENS
    )
    batches = [np.concatenate(update).tolist() for update in pieces]
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(size, Path(folder), train=batches, seed=seed)
        workload.tokens.symlink_to(corpus.tokens("train").resolve())
        system = marian.System(workload, threads=torch.get_num_threads())
        system.prepare("bf16 eager")
        random, order = np.random.default_rng(seed), []
        schedule = {
            "schedule": "linear",
            "learning_rate": rate,
            "warmup": warmup(updates),
            "updates": updates,
        }
        plan = ours.PLAN.model_copy(update=schedule)
        for update in range(1, updates + 1):
            order = order or random.permutation(len(batches)).tolist()
            system.set_rate(learning_rate(update, plan, width=size.width))
            system.update(batches[order.pop()])
            yield
        return system.trained()


SYSTEMS = {
    "fast": System(
        "this engine, for a low loss", partial(train_ours, recipe="fast"), (1e-2, 2e-2, 4e-2)
    ),
    "ours": System(
        "this engine, shipped recipe", partial(train_ours, recipe="shipped"), (4e-3, 1e-2)
    ),
    "paper": System(
        "this engine, the paper's recipe", partial(train_ours, recipe="paper"), (4e-3, 1e-2, 2e-2)
    ),
    "marian": System("Marian in transformers", train_marian, (1e-3, 2e-3)),
}
