"""Time to quality: minutes of training until a development loss and a BLEU score, for this engine and its peers.

    snakemake --cores all results/default/tatoeba_en_fr/corpus/tokens/test.safetensors
    export PYTHONPATH=src
    .venv-benchmarks/bin/python -m benchmarks.quality results/default/tatoeba_en_fr/corpus

Every system trains a model of the same size (3+3 layers, width 128) on the same text and subwords, in updates of about 3,000
source tokens. Label smoothing and dropout are 0.1, except in the recipe for a low loss, which has neither. The learning rate
rises for 200 updates, or half of a shorter training, and then falls to zero; its peak is the best of several at 500 updates. A
training is always a whole schedule, since a schedule that is cut short says little about where it would have ended; lengths
double until both goals are reached.

Quality and speed are measured apart. What a training ends with does not depend on the clock, so quality.csv keeps it, and a run
goes on where the last one stopped, perhaps beside other work. The seconds of an update are measured afterwards, in interleaved
rounds, while the machine should do nothing else. Minutes are the product. All models are scored alike: converted to this
engine's, they compute the same, and get its development loss and its beam search.
"""

import argparse
import csv
import importlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import matplotlib
import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.engine import ours
from benchmarks.engine.machine import describe
from benchmarks.engine.report import table, wrapped
from benchmarks.engine.workload import BEAM, DROPOUT, LENGTH_PENALTY, MAX_LENGTH_RATIO, Size, Workload
from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.evaluation.bleu import bleu
from specialized_heads.model.checkpoint import save
from specialized_heads.model.decoding import translate_all
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.training.batching import epoch_updates
from specialized_heads.training.loop import _Run
from specialized_heads.training.objective import evaluate
from specialized_heads.training.parallel import DistributedContext
from specialized_heads.training.plan import load_data
from specialized_heads.training.schedule import learning_rate

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter  # noqa: E402

ROOT = Path(__file__).parents[1]
LOSS, BLEU = 1.515, 45.0  # the goals
BATCH_TOKENS, WARMUP = 3000, 200
SHORTEST, LONGEST = 500, 4000  # updates; rates are compared at the first
ROUNDS, TIMED = 3, 20  # rounds of the timing, and updates in each

# Makes one update whenever it is advanced, and returns the trained model, as one of this engine's.
Training = Generator[None, None, Transformer]


@dataclass(frozen=True)
class Result:
    """What one training ended with."""

    system: str
    learning_rate: float
    updates: int
    seed: int
    dev_loss: float
    bleu: float


@dataclass(frozen=True)
class System:
    title: str
    train: Callable[..., Training]  # corpus, rate, updates, seed
    rates: tuple[float, ...]
    needs: str = "torch"


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
        settings = {"beam": BEAM, "length_penalty": LENGTH_PENALTY, "max_length_ratio": MAX_LENGTH_RATIO}
        test, bpe = load_tokens(self.tokens("test")), load_bpe(self.folder / "bpe.target.model")
        sources = [test.source_ids(sentence).tolist() for sentence in range(len(test))]
        outputs = [bpe.decode(ids) for ids in translate_all(model.eval(), sources, **settings)]
        references = pq.read_table(self.folder / "test.parquet", columns=["target"])["target"].to_pylist()
        score = bleu("fr", lowercase=False).corpus_score(outputs, [references]).score
        return evaluate(model, load_tokens(self.tokens("dev"))), score


def untrained(size: Size, seed: int, *, dropout: float = DROPOUT, **changes: float) -> Transformer:
    """A model of this engine; `changes` to its architecture."""
    model = Transformer(replace(size.architecture, **changes), dropout=dropout)
    initialise(model, seed=seed)
    return model


def warmup(updates: int) -> int:
    """Updates until the peak of the learning rate."""
    return min(WARMUP, updates // 2)


def ours_trains(corpus: Corpus, rate: float, updates: int, seed: int, *, recipe: str) -> Training:
    """This engine: the recipe of the paper, that of the shipped experiments, or the one that lowers the loss fastest."""
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
    run = _Run(model, plan, data, Path(os.devnull), None, None, workers=threads, context=DistributedContext())
    run.working.train()
    for update in run.updates():
        run.step(update)
        yield
    torch.set_num_threads(threads)
    return model


def peer_trains(corpus: Corpus, rate: float, updates: int, seed: int, *, name: str, variant: str) -> Training:
    """JoeyNMT, or Marian in transformers: whole batches of sentences of similar length, in a new order each epoch."""
    module = importlib.import_module(f"benchmarks.engine.{name}")
    store, size = load_tokens(corpus.tokens("train")), corpus.size
    pieces = epoch_updates(store, seed=seed, epoch=0, batch_tokens=BATCH_TOKENS, micro_batch_tokens=2 * BATCH_TOKENS)
    batches = [np.concatenate(update).tolist() for update in pieces]
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(size, Path(folder), train=batches, decode=[], outputs=[], seed=seed)
        workload.tokens.symlink_to(corpus.tokens("train").resolve())
        save(untrained(size, seed), workload.weights, training={})
        system = module.System(workload, device="cpu", threads=torch.get_num_threads())
        system.prepare_training(variant)
        random, order = np.random.default_rng(seed), []
        for update in range(1, updates + 1):
            order = order or random.permutation(len(batches)).tolist()
            system.set_rate(
                learning_rate(
                    update,
                    schedule="linear",
                    factor=rate,
                    warmup=warmup(updates),
                    updates=updates,
                    width=size.width,
                )
            )
            system.update(batches[order.pop()])
            yield
        return system.trained()


SYSTEMS = {
    "fast": System("this engine, for a low loss", partial(ours_trains, recipe="fast"), (1e-2, 2e-2, 4e-2)),
    "ours": System("this engine, shipped recipe", partial(ours_trains, recipe="shipped"), (2e-3, 3e-3, 4e-3)),
    "paper": System("this engine, the paper's recipe", partial(ours_trains, recipe="paper"), (2e-3, 3e-3, 4e-3)),
    "marian": System(
        "Marian in transformers",
        partial(peer_trains, name="marian", variant="bf16 eager"),
        (5e-4, 1e-3, 2e-3),
        needs="transformers",
    ),
    "joeynmt": System(
        "JoeyNMT", partial(peer_trains, name="joey", variant="bf16"), (1e-3, 2e-3, 3e-3), needs="joeynmt"
    ),
}


def read(path: Path) -> list[Result]:
    """The trainings that are done."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        kinds = Result.__annotations__
        return [Result(**{key: kinds[key](value) for key, value in row.items()}) for row in csv.DictReader(stream)]


class Trainings:
    """Results by system, rate, length and seed; those that are missing are made and written."""

    def __init__(self, corpus: Corpus, path: Path) -> None:
        self.corpus, self.path, self.done = corpus, path, read(path)

    def kept(self, *which: str | float) -> Result | None:
        """The result with this system, rate, length and seed, if it is done."""
        matches = (each for each in self.done if (each.system, each.learning_rate, each.updates, each.seed) == which)
        return next(matches, None)

    def result(self, system: str, rate: float, updates: int, seed: int) -> Result:
        if kept := self.kept(system, rate, updates, seed):
            return kept
        say(f"{SYSTEMS[system].title}: {updates} updates, learning rate {rate:g}, seed {seed}")
        training = SYSTEMS[system].train(self.corpus, rate, updates, seed)
        loss, score = self.corpus.score(finish(training))
        say(f"  loss {loss:.3f}, {score:.1f} BLEU")
        self.done.append(Result(system, rate, updates, seed, round(loss, 4), round(score, 2)))
        with open(self.path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(Result.__annotations__), lineterminator="\n")
            writer.writeheader()
            writer.writerows(map(asdict, self.done))
        return self.done[-1]

    def lengths(self, system: str, seed: int, *, longest: int) -> list[Result]:
        """Trainings of doubling length with the best rate, until both goals are reached; those after `longest` only if done.

        If the length at which rates are compared reaches the loss, half of it is tried too.
        """
        tuned = [self.result(system, rate, SHORTEST, 1) for rate in SYSTEMS[system].rates]
        rate = min(tuned, key=lambda result: result.dev_loss).learning_rate
        results = [self.result(system, rate, SHORTEST, seed)]
        if results[0].dev_loss <= LOSS:
            results.insert(0, self.result(system, rate, SHORTEST // 2, seed))
        while not reached(results[-1]):
            which = system, rate, 2 * results[-1].updates, seed
            if which[2] > longest and not self.kept(*which):
                break
            results.append(self.result(*which))
        return results


def reached(result: Result) -> bool:
    return result.dev_loss <= LOSS and result.bleu >= BLEU


def finish(training: Training) -> Transformer:
    """Run a training to its end."""
    while True:
        try:
            next(training)
        except StopIteration as end:
            return end.value


def updates_until(results: list[Result], quantity: str, goal: float) -> float | None:
    """Length of the schedule that would reach the goal, interpolated between two lengths on a logarithmic axis.

    The shortest length, if that reaches it; None if the longest does not.
    """
    points = [(result.updates, getattr(result, quantity) - goal) for result in results]
    sign = 1 if quantity == "dev_loss" else -1
    for number, (updates, excess) in enumerate(points):
        if sign * excess <= 0:
            if number == 0:
                return float(updates)
            before, excess_before = points[number - 1]
            return before * 2 ** (math.log2(updates / before) * excess_before / (excess_before - excess))
    return None


def seconds_per_update(names: list[str], corpus: Path) -> dict[str, list[float]]:
    """Seconds per update of each system, by round, each time in a process of its own."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in names:
            say(f"round {number + 1}: {SYSTEMS[name].title}")
            command = [sys.executable, "-m", "benchmarks.quality", str(corpus), "--time", name]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            seconds[name].append(float(done.stdout.split()[-1]))
    return seconds


def time_updates(name: str, corpus: Corpus) -> float:
    """Seconds per update, after a few that are not counted."""
    training = SYSTEMS[name].train(corpus, 1e-3, 10**6, 1)
    for _ in islice(training, 5):
        pass
    started = time.perf_counter()
    for _ in islice(training, TIMED):
        pass
    return (time.perf_counter() - started) / TIMED


def report(
    output: Path, trainings: dict[str, list[list[Result]]], seconds: dict[str, list[float]], facts: dict
) -> None:
    """Write quality.md and quality.png."""
    text = __doc__.split("\n\n")
    rows, points = [], []
    for name, by_seed in trainings.items():
        pace = median(seconds[name]) / 60  # minutes per update
        cells = [SYSTEMS[name].title, f"{by_seed[0][0].learning_rate:g}", ranged(seconds[name], 3)]
        for quantity, goal in (("dev_loss", LOSS), ("bleu", BLEU)):
            lengths = [updates_until(results, quantity, goal) for results in by_seed]
            known = [length * pace for length in lengths if length is not None]
            longest = max(results[-1].updates for results in by_seed)
            missed = f"not in {longest * pace:.1f}"
            cells.append(ranged(known, 1) if len(known) == len(lengths) else missed)
        rows.append(cells)
        for results in by_seed:
            for result in results:
                minutes = f"{result.updates * pace:.1f}"
                points.append(
                    [
                        SYSTEMS[name].title,
                        result.seed,
                        result.updates,
                        minutes,
                        f"{result.dev_loss:.3f}",
                        f"{result.bleu:.1f}",
                    ]
                )
    header = ("system", "learning rate", "seconds per update", f"minutes to loss {LOSS}", f"minutes to {BLEU:g} BLEU")
    sections = [
        "# Time to quality",
        "Made by `python -m benchmarks.quality CORPUS` (`benchmarks/quality.py`). " + text[2],
        text[3],
        table(("", ""), [(f"**{key}**", value) for key, value in facts.items()]),
        "Medians of the seeds, or of the rounds, and their range. Lengths between two schedules are interpolated.",
        table(header, rows),
        "All trainings with the chosen rate:",
        table(("system", "seed", "updates", "minutes", "development loss", "BLEU"), points),
    ]
    output.with_suffix(".md").write_text("\n\n".join(map(wrapped, sections)) + "\n", encoding="utf-8")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, (quantity, goal, label) in zip(
        axes, (("dev_loss", LOSS, "development loss"), ("bleu", BLEU, "BLEU")), strict=True
    ):
        for color, (name, by_seed) in enumerate(trainings.items()):
            for number, results in enumerate(by_seed):
                minutes = [result.updates * median(seconds[name]) / 60 for result in results]
                values = [getattr(result, quantity) for result in results]
                title = SYSTEMS[name].title if number == 0 else None
                axis.plot(minutes, values, marker="o", markersize=3, color=f"C{color}", label=title)
        axis.axhline(goal, color="grey", linewidth=0.8, linestyle="--")
        axis.set(xscale="log", xlabel="minutes of training", ylabel=label)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(output.with_suffix(".png"), dpi=150)


def ranged(values: list[float], digits: int) -> str:
    """Median and range."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="folder with bpe.target.model, test.parquet and tokens/")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--longest", type=int, default=LONGEST, help="updates of the longest schedule to train")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--train-only", action="store_true", help="do not measure seconds; for a machine with other work"
    )
    parser.add_argument("--time", choices=SYSTEMS, help=argparse.SUPPRESS)  # one round of one system, for the parent
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/quality", help="path without suffix")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = Corpus(options.corpus)
    if options.time:
        print(time_updates(options.time, corpus))
        return
    for name in options.systems:
        importlib.import_module(SYSTEMS[name].needs)  # fail before hours of training
    facts = describe("cpu", options.threads, command=["python -m benchmarks.quality", *sys.argv[1:]])
    kept = Trainings(corpus, options.output.with_suffix(".csv"))
    trainings = {
        name: [kept.lengths(name, seed, longest=options.longest) for seed in options.seeds] for name in options.systems
    }
    if not options.train_only:
        report(options.output, trainings, seconds_per_update(options.systems, options.corpus.resolve()), facts)


if __name__ == "__main__":
    main()
