"""Training runs: read from the file, made if missing, and the length that would reach a goal."""

import csv
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.engine.machine import say
from benchmarks.quality.systems import SYSTEMS, Corpus, finish

LOSS, BLEU = 1.515, 45.0  # the goals
LEAST, FIRST, LONGEST = 100, 500, 4000  # updates; rates are compared at FIRST


@dataclass(frozen=True)
class Result:
    """What one training ended with."""

    system: str
    learning_rate: float
    updates: int
    seed: int
    dev_loss: float
    bleu: float


def read(path: Path) -> list[Result]:
    """The results in the file; none if there is no file."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        kinds = Result.__annotations__
        return [
            Result(**{key: kinds[key](value) for key, value in row.items()})
            for row in csv.DictReader(stream)
        ]


class Trainings:
    """Results by system, rate, length and seed; those that are missing are made and written."""

    def __init__(self, corpus: Corpus, path: Path) -> None:
        self.corpus, self.path, self.done = corpus, path, read(path)

    def kept(self, *which: str | float) -> Result | None:
        """The result with this system, rate, length and seed, if it is done."""
        matches = (
            each
            for each in self.done
            if (each.system, each.learning_rate, each.updates, each.seed) == which
        )
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
        """Results of schedules of increasing length at the best rate: doubled until both goals are
        reached.

        Beyond `longest`, only schedules that are already in the file count. If FIRST updates reach
        the loss, shorter schedules follow, each 1/√2 as long as the one before, until one misses
        it.
        """
        tuned = [self.result(system, rate, FIRST, 1) for rate in SYSTEMS[system].rates]
        rate = min(tuned, key=lambda result: result.dev_loss).learning_rate
        results = [self.result(system, rate, FIRST, seed)]
        while results[0].dev_loss <= LOSS and results[0].updates > LEAST:
            results.insert(
                0, self.result(system, rate, round(results[0].updates / math.sqrt(2)), seed)
            )
        while not (results[-1].dev_loss <= LOSS and results[-1].bleu >= BLEU):
            which = system, rate, 2 * results[-1].updates, seed
            if which[2] > longest and not self.kept(*which):
                break
            results.append(self.result(*which))
        return results


def updates_until(results: list[Result], quantity: str, goal: float) -> float | None:
    """Length of the schedule that would reach the goal, interpolated between two lengths on a
    logarithmic axis.

    The shortest length, if that reaches it; None if the longest does not.
    """
    points = [(result.updates, getattr(result, quantity) - goal) for result in results]
    sign = 1 if quantity == "dev_loss" else -1
    for number, (updates, excess) in enumerate(points):
        if sign * excess <= 0:
            if number == 0:
                return float(updates)
            before, excess_before = points[number - 1]
            return before * (updates / before) ** (excess_before / (excess_before - excess))
    return None
