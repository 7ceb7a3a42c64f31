"""Dropout, softmax and the loss for short sentences on a CPU, where the library's kernels are not at home.

Rows of attention over a dozen keys are too short for a vectorised softmax, and a dropout mask costs more random numbers than
it needs. Each function equals the library's (tested); on a GPU the library's is used.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx

# Rows of logits that are held at once; (rows, V) in float32 should stay within the cache.
LOSS_ROWS = 512


def keep_freed_memory() -> None:
    """Ask glibc to keep freed memory instead of returning it to the system after every tensor, to save page faults."""
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:  # not glibc: nothing to ask
        return
    trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8  # malloc.h
    for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**28), (arena_max, 1)):
        libc.mallopt(option, value)


_random = threading.local()


@contextmanager
def dropout_seed(seed: int, device: torch.device) -> Iterator[None]:
    """Within the block, masks drawn by this thread follow from `seed` alone, whatever other threads draw."""
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    _random.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _random.generator = None


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zero each element with probability `rate` (to the nearest 2^-16 on a CPU) and scale the rest by 1 / (1 - rate)."""
    threshold = round(rate * 2**16)
    if not training or threshold == 0:
        return x
    if x.is_cuda:
        return F.dropout(x, rate)
    # One 64-bit draw serves four elements.
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
    draws.random_(-(2**63), None, generator=getattr(_random, "generator", None))
    uniform = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = uniform.clamp(threshold - 2**15 - 1, threshold - 2**15).sub_(threshold - 2**15 - 1)  # 0 or 1
    return x * kept.to(x.dtype).mul_(1.0 / (1.0 - threshold / 2**16))


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis, in float32."""
    if scores.is_cuda:
        return torch.softmax(scores, dim=-1, dtype=torch.float32)
    return _Softmax.apply(scores)


class _Softmax(torch.autograd.Function):
    """Softmax out of whole-tensor operations, which do not mind how short the rows are."""

    @staticmethod
    def forward(ctx: FunctionCtx, scores: Tensor) -> Tensor:
        scores = scores.float()
        p = (scores - scores.amax(-1, keepdim=True)).exp_()
        p = p.div_(p.sum(-1, keepdim=True))
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        gradient = gradient.float() * p
        return gradient.sub_(p * gradient.sum(-1, keepdim=True))


def cross_entropy(states: Tensor, table: Tensor, labels: Tensor, *, smoothing: float, ignore: int) -> Tensor:
    """Label-smoothed cross-entropy of softmax(states @ table.T), summed over the labels, without holding all logits.

    Args:
        states: (N, D).
        table: softmax embeddings (V, D).
        labels: (N,).
        smoothing: mass spread evenly over the V tokens.
        ignore: label of positions that do not count.

    Returns:
        scalar, in float32. Its gradient is computed together with it, block by block.
    """
    return _CrossEntropy.apply(states, table, labels, smoothing, ignore)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, states: Tensor, table: Tensor, labels: Tensor, smoothing: float, ignore: int
    ) -> Tensor:
        want_states, want_table = states.requires_grad, table.requires_grad
        # Under autocast the products run in the lower precision, the sums below in float32.
        device = states.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        with torch.autocast(device, enabled=False):
            narrow, narrow_table = states.to(precision), table.to(precision)
            loss = torch.zeros((), device=states.device)
            states_gradient = torch.empty_like(narrow) if want_states else None
            table_gradient = torch.zeros_like(table, dtype=torch.float32) if want_table else None
            for start in range(0, len(states), LOSS_ROWS):
                rows = slice(start, start + LOSS_ROWS)
                label = labels[rows, None]
                real = (label != ignore).float()
                z = (narrow[rows] @ narrow_table.T).float()  # (rows, V)
                gold = z.gather(1, label)
                mean = z.mean(-1, keepdim=True) if smoothing else 0.0
                top = z.amax(-1, keepdim=True)
                p = z.sub_(top).exp_()
                mass = p.sum(-1, keepdim=True)
                lse = mass.log() + top
                loss += (real * (lse - (1 - smoothing) * gold - smoothing * mean)).sum()
                if want_states or want_table:
                    # d loss / d z = softmax(z) - (1 - smoothing) [label] - smoothing / V
                    gradient = p.mul_(real / mass).sub_(real * (smoothing / z.shape[1]))
                    gradient.scatter_add_(1, label, (smoothing - 1) * real)
                    gradient = gradient.to(precision)
                    if want_states:
                        states_gradient[rows] = gradient @ narrow_table
                    if want_table:
                        table_gradient += (gradient.T @ narrow[rows]).float()
        ctx.save_for_backward(states_gradient, table_gradient)
        ctx.dtypes = (states.dtype, table.dtype)
        return loss

    @staticmethod
    def backward(ctx: FunctionCtx, scale: Tensor) -> tuple[Tensor | None, ...]:
        states_gradient, table_gradient = ctx.saved_tensors
        states_dtype, table_dtype = ctx.dtypes
        return (
            None if states_gradient is None else (states_gradient * scale).to(states_dtype),
            None if table_gradient is None else (table_gradient * scale).to(table_dtype),
            None,
            None,
            None,
        )
