"""Time to quality: minutes of training until a development loss and a BLEU score, for this engine
and Marian in transformers.

    snakemake --cores all results/default/tatoeba_en_fr/corpus/tokens/test.safetensors
    export PYTHONPATH=src
    .venv-benchmarks/bin/python -m benchmarks.quality results/default/tatoeba_en_fr/corpus

Every system trains a model of the same size (3+3 layers, width 128) on the same text and subwords,
in updates of about 3,000 source tokens. Label smoothing and dropout are 0.1, except in the recipe
for a low loss, which has neither. The learning rate rises for 200 updates, or half of a shorter
training, and then falls to zero; its peak is the best of several at 500 updates. A training run is
always a whole schedule, since a schedule that is cut short says little about where it would have
ended. Lengths start at 500 updates and double until both goals are reached; if 500 updates already
reach the loss, shorter runs follow, each 1/√2 as long as the one before, until one misses it.

Quality and speed are measured apart. The result of a training run does not depend on the clock, so
quality.csv keeps it; a later call resumes where the last one stopped, even while the machine does
other work. The seconds of an update are measured afterwards, in interleaved rounds, while the
machine should do nothing else. Minutes are the product. All models are converted to this engine's
format, which does not change what they compute, and scored by its development loss and its beam
search.
"""

import argparse
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import torch

from benchmarks.engine.machine import describe, say
from benchmarks.quality.report import report
from benchmarks.quality.systems import SYSTEMS, Corpus
from benchmarks.quality.trainings import LONGEST, Trainings

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "benchmarks" / "quality"  # without suffix
ABOUT = __doc__.split("\n\n")[2:]  # without the title and the commands
ROUNDS, TIMED = 3, 20  # rounds of the timing, and updates in each


def seconds_per_update(corpus: Path) -> dict[str, list[float]]:
    """Seconds per update of each system, by round, each time in a process of its own."""
    seconds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for number in range(ROUNDS):
        for name in SYSTEMS:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "corpus", type=Path, help="folder with bpe.target.model, test.parquet and tokens/"
    )
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[1, 2], help="others count if they are done"
    )
    parser.add_argument(
        "--longest", type=int, default=LONGEST, help="updates of the longest schedule to train"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    # one round of one system, for the parent
    parser.add_argument("--time", choices=SYSTEMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    corpus = Corpus(options.corpus)
    if options.time:
        print(time_updates(options.time, corpus))
        return
    facts = describe(options.threads, command=["python -m benchmarks.quality", *sys.argv[1:]])
    kept = Trainings(corpus, OUTPUT.with_suffix(".csv"))
    trainings = {}
    for name in SYSTEMS:
        seeds = sorted(
            {*options.seeds, *(result.seed for result in kept.done if result.system == name)}
        )
        trainings[name] = [kept.lengths(name, seed, longest=options.longest) for seed in seeds]
    report(OUTPUT, ABOUT, trainings, seconds_per_update(options.corpus.resolve()), facts)


if __name__ == "__main__":
    main()
