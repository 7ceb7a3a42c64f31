"""The benchmarks: the formula of the engine's against counted operations, and the lengths of
trainings."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

sys.path.append(str(Path(__file__).parents[2]))  # `benchmarks` is not installed with the project

from benchmarks.engine.workload import Size, training_flops  # noqa: E402
from benchmarks.quality.trainings import Result, updates_until  # noqa: E402
from specialized_heads.model.transformer import Transformer, initialise  # noqa: E402
from specialized_heads.training.batching import make_batch  # noqa: E402
from specialized_heads.training.objective import Translation  # noqa: E402

SIZE = Size("tiny", layers=2, heads=4, width=32, feed_forward=64, vocabulary=60)


def test_the_formula_counts_the_operations_of_an_update(store: Callable) -> None:
    model = Transformer(SIZE.architecture, dropout=0.0).eval()
    initialise(model, seed=1)
    # no padding: the formula does not count it
    corpus = store([[5, 6, 7, 8, 9, 10, 11]] * 3, [[9, 8, 7, 6]] * 3)
    counter = FlopCounterMode(display=False)
    with counter:
        Translation().loss(model, make_batch(corpus, np.arange(3)), label_smoothing=0.1).backward()
    assert training_flops(SIZE, np.full(3, 8), np.full(3, 5)) == counter.get_total_flops()


def test_lengths_between_two_schedules_are_interpolated_on_a_logarithmic_axis() -> None:
    known = ((500, 2.015, 30.0), (1000, 1.765, 41.0), (2000, 1.265, 49.0))
    points = [Result("ours", 1e-3, updates, 1, loss, bleu) for updates, loss, bleu in known]
    assert updates_until(points, "dev_loss", 1.515) == pytest.approx(1000 * 2**0.5)
    assert updates_until(points, "bleu", 45.0) == pytest.approx(1000 * 2**0.5)
    assert updates_until(points, "bleu", 49.0) == 2000
    assert updates_until(points, "dev_loss", 2.5) == 500
    assert updates_until(points, "bleu", 50.0) is None
