"""What the machine can do: the rate of the matrix products of a training update, and of nothing
else.

The products are those of one update at their own shapes: for every weight matrix the forward
product and the two of the backward pass, each timed by itself, several times, the best counting.
The ceiling is the operations of all of them divided by the sum of their best times. Each product is
tried with all threads inside of it and with an equal share of the rows on each of as many threads,
in one piece and in blocks of 512 rows.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from benchmarks.engine.workload import Size, Workload

ROWS = 1024  # at most; enough for the full rate of a core; more would only take longer
REPEATS = 5
BLOCK = 512  # rows
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def products(size: Size) -> list[tuple[int, int, int]]:
    """Weight matrices of a model: for each kind its inputs, its outputs and how many there are."""
    d, layers = size.width, size.layers
    return [
        (d, 3 * d, 2 * layers),  # queries, keys and values of self-attention
        (d, d, 4 * layers),  # its output twice, query and output of cross-attention
        (d, 2 * d, layers),  # keys and values of cross-attention
        (d, size.feed_forward, 2 * layers),
        (size.feed_forward, d, 2 * layers),
        (d, size.vocabulary, 1),  # softmax
    ]


def product_rates(workload: Workload, *, threads: int) -> list[dict[str, Any]]:
    """Operations per second of all products together, by precision and number of threads."""
    rows = min(ROWS, sum(map(workload.target_tokens, workload.train)) // len(workload.train))
    rates = []
    for precision, dtype in PRECISIONS.items():
        for used in sorted({1, threads}):
            operations = seconds = 0.0
            for inputs, outputs, number in products(workload.size):
                operations += number * 6.0 * rows * inputs * outputs
                seconds += number * best_times(rows, inputs, outputs, dtype=dtype, threads=used)
            rates.append({"precision": precision, "threads": used, "rate": operations / seconds})
    return rates


def best_times(rows: int, inputs: int, outputs: int, *, dtype: torch.dtype, threads: int) -> float:
    """Seconds of forward product, gradient of the input and gradient of the weights, each the best
    of several."""
    x, y, w = (
        torch.randn(*size).to(dtype)
        for size in ((rows, inputs), (rows, outputs), (outputs, inputs))
    )
    torch.set_num_threads(threads)
    shares = [(rows * n // threads, rows * (n + 1) // threads) for n in range(threads)]
    total = 0.0
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for product in (
            lambda part: x[part] @ w.T,
            lambda part: y[part] @ w,
            lambda part: y[part].T @ x[part],
        ):
            ways = (
                partial(product, slice(None)),
                partial(in_blocks, product, (0, rows)),
                lambda p=product: list(pool.map(lambda share: p(slice(*share)), shares)),
                lambda p=product: list(pool.map(partial(in_blocks, p), shares)),
            )
            total += min(map(best, ways))
    return total


def in_blocks(product: Callable[[slice], Any], share: tuple[int, int]) -> None:
    for start in range(share[0], share[1], BLOCK):
        product(slice(start, min(start + BLOCK, share[1])))


def best(run: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)
