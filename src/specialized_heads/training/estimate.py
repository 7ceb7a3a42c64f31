"""How long the trainings of an experiment will take on this machine, from a few updates on made-up text.

Translation and analysis come on top; trainings are nearly everything. The text has sentences of ordinary length; the updates
measured are at most `TOKENS` source tokens per processor core, and scaled to those of the experiment. If other programs keep the
processor busy, CPU time is measured instead of wall time, as if all threads were free and equally loaded.
"""

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.corpus.vocabulary import EOS
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.models import models
from specialized_heads.experiment.names import TRAINED
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.devices import choose_device, matmul_precision
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.training.loop import train
from specialized_heads.training.plan import Data, Plan

TOKENS = 1500
UPDATES = 4
UNITS = {"days": 86400, "hours": 3600, "minutes": 60}  # in seconds
SENTENCES, LENGTHS = 2000, (5, 35)  # of the made-up text: how many, and subwords, uniformly


def updates_by_kind(experiment: Experiment) -> dict[str, Counter[str]]:
    """For each corpus, the updates of training of each kind of model, over all its models and seeds."""
    counts = {}
    for name, corpus in experiment.corpora.items():
        values = experiment.for_corpus(name)
        per_kind = {
            "baseline": 0 if corpus.baseline else values.training.updates,
            "pruned": values.pruning.updates,
            "finetuned": values.pruning.updates,
        }
        counts[name] = Counter()
        for kind in TRAINED:
            if trained := models(experiment, name, kind):
                updates = per_kind[kind] if kind in per_kind else values.retraining().updates
                counts[name][kind] += updates * len(trained) * len(experiment.seeds)
    return counts


def made_up(*, source: int, target: int) -> TokenStore:
    """Random text with vocabularies of these sizes."""
    random = np.random.default_rng(1)
    sides = {}
    for side, size in (("source", source), ("target", target)):
        lengths = random.integers(*LENGTHS, SENTENCES)
        sides[side] = random.integers(EOS + 1, size, lengths.sum()).astype(np.int32)
        sides[f"{side}_offsets"] = np.concatenate([[0], np.cumsum(lengths)])
    return TokenStore(**sides)


def seconds_per_update(experiment: Experiment, *, busy: bool = False) -> float:
    """Seconds of one update of the full model, with all processor cores or a GPU; `busy`: those of a free processor."""
    device, threads = choose_device(experiment.device), torch.get_num_threads()
    by_cpu_time = busy and device.type == "cpu"
    clock = time.process_time if by_cpu_time else time.perf_counter
    model, vocabulary = experiment.model, experiment.vocabulary
    sizes = {"source_vocabulary": vocabulary.source, "target_vocabulary": vocabulary.target}
    architecture = Architecture.full(**sizes, **model.model_dump(exclude={"dropout"}))
    store = made_up(source=vocabulary.source, target=vocabulary.target)
    tokens = min(experiment.training.batch_tokens, TOKENS * threads)
    quiet = {"batch_tokens": tokens, "warmup": 1, "log_every": 10**9, "evaluate_every": 10**9}
    plan = Plan(seed=1, **experiment.training.model_dump()).model_copy(update=quiet)
    data = Data(store, TokenStore(store.source[:9], np.array([0, 9]), store.target[:9], np.array([0, 9])), "")
    taken = []
    for updates in (1, 1, 1 + UPDATES):  # the first warms up, the second has the costs of every start
        network = Transformer(architecture, dropout=model.dropout).to(device)
        initialise(network, seed=1)
        with tempfile.TemporaryDirectory() as folder:
            started = clock()
            files = {"state": Path(folder, "state"), "records": Path(folder, "log")}
            train(network, plan.model_copy(update={"updates": updates}), data, **files)
            taken.append((clock() - started) / (threads if by_cpu_time else 1))
    return max(taken[2] - taken[1], 0.0) / UPDATES * experiment.training.batch_tokens / tokens


def estimate(experiment: Experiment) -> str:
    """The updates of training of an experiment, and the time that they take here."""
    seconds, total, measured = 0.0, 0, {}
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    for name, counts in updates_by_kind(experiment).items():
        values = experiment.for_corpus(name)
        given = experiment.corpora[name].baseline
        if not counts.total():
            continue
        if given and not (Path(given.model) / f"seed{experiment.seeds[0]}").is_dir():
            return "no estimate: the sizes of an imported model are not known before it is read"
        key = repr((values.model, values.vocabulary, values.training))
        if key not in measured:
            measured[key] = seconds_per_update(values, busy=load > cores)
        seconds, total = seconds + measured[key] * counts.total(), total + counts.total()
    if experiment.classification and not total:
        return "no estimate: the trainings of BERT are not measured"
    device = choose_device(experiment.device)
    precision = matmul_precision(experiment.training.precision, device)
    unit, length = next(item for item in UNITS.items() if seconds > 2 * item[1] or item[0] == "minutes")
    taken = f"{max(1, round(seconds / length)):,} {unit}"
    threads = torch.get_num_threads()
    where = ("one CPU thread" if threads == 1 else f"{threads} CPU threads") if device.type == "cpu" else "one GPU"
    more = f"translation{', the trainings of BERT' if experiment.classification else ''} and analysis"
    now = f"; the machine is busy now (load {load:.1f} on {cores} cores), which slows them" if load > cores else ""
    return f"{total:,} updates of training: about {taken} on {where} in {precision}; {more} come on top{now}"
