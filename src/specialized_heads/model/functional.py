"""Dropout, softmax and cross-entropy where PyTorch's kernels are slow: short sentences on a CPU.

Attention rows over a dozen keys are too short for PyTorch's vectorised softmax, and its dropout
draws more random numbers than needed; on a GPU, PyTorch's own are used. The cross-entropy, which
does not store all logits, is used on both. The tests compare each function with PyTorch's own.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx

# Logits are held for this many labels at once. On a CPU, those of a small vocabulary fit into the
# cache; on a GPU, few large products are faster. Logits and probabilities take 512 MB at most, 384
# MB in bfloat16 (except of vocabularies above 262,144).
LOSS_ROWS = 256
GPU_LOGITS = 2**26
# Floats in a vector register; PyTorch's softmax computes shorter rows one number at a time.
LANES = 16


def prepare_cpu() -> None:
    """Tune glibc and oneDNN for many small operations; call this before the first matrix product.

    glibc keeps freed memory instead of returning it to the system after every tensor, which avoids
    page faults. oneDNN compiles a kernel for each new shape of a matrix product (half a
    millisecond) and by default caches 1024 of them (about half a megabyte each); an epoch of
    everyday sentences has three times as many shapes.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "4096")
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:  # not glibc
        return
    trim_threshold, top_pad, mmap_max = -1, -2, -4  # malloc.h
    for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**28)):
        libc.mallopt(option, value)


_random = threading.local()


@contextmanager
def dropout_seed(seed: int, device: torch.device) -> Iterator[None]:
    """Make dropout in this thread depend on `seed` alone, whatever other threads draw."""
    if device.type == "cuda":
        with torch.cuda.device(device):  # the current device is per thread
            torch.cuda.manual_seed(seed)
    _random.generator = np.random.Generator(np.random.SFC64(seed))
    try:
        yield
    finally:
        del _random.generator


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zero each element with probability `rate` (rounded to a multiple of 2^-16 on a CPU); scale
    the rest by 1 / (1 - rate)."""
    if not training or rate == 0.0:
        return x
    if x.is_cuda:
        return F.dropout(x, rate)
    kept = keep_mask(x, rate)
    return x if kept is None else x * kept


def keep_mask(x: Tensor, rate: float) -> Tensor | None:
    """Factors of dropout in the shape and type of x: 0 with probability `rate`, else 1 / (1 -
    rate), rounded to that type; None: all are 1."""
    threshold = round(rate * 2**16)
    if threshold == 0:
        return None
    # One 64-bit draw serves four elements. NumPy draws twice as fast as torch and does not block
    # other threads.
    draws = _generator().integers(0, 2**64 - 1, (x.numel() + 3) // 4, np.uint64, endpoint=True)
    uniform = torch.from_numpy(draws.view(np.int16)[: x.numel()]).view(x.shape)
    last = threshold - 2**15 - 1  # of the draws that drop
    kept = uniform.clamp_(last, last + 1).sub_(last)  # 0 or 1
    return kept.to(x.dtype).mul_(1.0 / (1.0 - threshold / 2**16))


def _generator() -> np.random.Generator:
    """The generator of `dropout_seed` in this thread, else a new one seeded by torch's."""
    if not hasattr(_random, "generator"):
        return np.random.Generator(np.random.SFC64(int(torch.randint(2**62, ()))))
    return _random.generator


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis, in float32; in float64 for float64 scores."""
    if scores.is_cuda or scores.shape[-1] >= LANES:
        return torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    return _Softmax.apply(scores)


def softmax_(scores: Tensor) -> Tensor:
    """Softmax over the last axis, in place and without a gradient."""
    if scores.shape[-1] >= LANES:
        return torch.softmax(scores, -1, out=scores)
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


class _Softmax(torch.autograd.Function):
    """Softmax from whole-tensor operations: its speed does not depend on the length of rows."""

    @staticmethod
    def forward(ctx: FunctionCtx, scores: Tensor) -> Tensor:
        p = softmax_(scores.to(torch.promote_types(scores.dtype, torch.float32), copy=True))
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        gradient = gradient.to(p.dtype) * p
        return gradient.sub_(p * gradient.sum(-1, keepdim=True))


def cross_entropy(
    states: Tensor,
    table: Tensor,
    labels: Tensor,
    *,
    bias: Tensor | None = None,
    smoothing: float,
    ignore: int,
) -> Tensor:
    """Label-smoothed cross-entropy of softmax(states @ table.T + bias), summed over the labels,
    without storing all logits.

    States (N, D), output embeddings `table` (V, D), labels (N,), bias (V,). `smoothing` is spread
    evenly over the V tokens; positions with the label `ignore` are left out. A float32 scalar,
    whose gradient is computed in the same pass.
    """
    if not torch.is_grad_enabled():  # parameters ask for a gradient that nobody will read
        table, bias = table.detach(), None if bias is None else bias.detach()
    return _CrossEntropy.apply(states, table, bias, labels, smoothing, ignore)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        states: Tensor,
        table: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        ignore: int,
    ) -> Tensor:
        # Products in the precision of the states, sums in float32.
        narrow, size = table.to(states.dtype), len(table)
        real = (labels != ignore).float()[:, None]
        counted = states * real.to(states.dtype)
        # The mean logit of a row is its product with the mean embedding, which saves a pass over
        # the logits.
        mean = table.float().mean(0)
        loss = -smoothing * (counted.float() @ mean).sum()
        if bias is not None:
            loss -= smoothing * bias.float().mean() * real.sum()
        # Gradients that nobody asks for are None.
        of_states = torch.empty_like(states) if states.requires_grad else None
        of_table, of_bias = (
            torch.zeros_like(x, dtype=torch.float32) if x is not None and x.requires_grad else None
            for x in (table, bias)
        )
        needed = any(gradient is not None for gradient in (of_states, of_table, of_bias))
        rows = max(LOSS_ROWS, GPU_LOGITS // size) if states.is_cuda else LOSS_ROWS
        logits = torch.empty(min(rows, len(states)), size, dtype=states.dtype, device=states.device)
        probabilities = torch.empty_like(logits, dtype=torch.float32)
        for start in range(0, len(states), rows):
            block, label = slice(start, start + rows), labels[start : start + rows, None]
            z = torch.mm(states[block], narrow.T, out=logits[: len(label)])  # (rows, V)
            if bias is not None:
                z += bias.to(z.dtype)
            gold = z.gather(1, label).float()
            p = probabilities[: len(label)].copy_(z)
            if p.is_cuda:  # without a copy of the logits, and without waiting for the GPU
                torch.log_softmax(p, -1, out=p)
                lse = gold - p.gather(1, label)
                chosen = p.exp_().gather(1, label)
            else:
                chosen = torch.softmax(p, -1, out=p).gather(1, label)
                lse = _log_sum_exp(z, chosen, gold)
            loss += (real[block] * (lse - (1 - smoothing) * gold)).sum()
            if needed:
                # d loss / d z = softmax(z) - (1 - smoothing) [label] - smoothing / V; the last term
                # is subtracted after the loop.
                gradient = z.copy_(p.scatter_(1, label, chosen - (1 - smoothing)))
                if of_states is not None:
                    torch.mm(gradient, narrow, out=of_states[block])
                if of_table is not None:
                    of_table += gradient.T @ counted[block]
                if of_bias is not None:
                    of_bias += (gradient.float() * real[block]).sum(0)
        if of_states is not None:
            of_states = (of_states - (smoothing * mean).to(states.dtype)) * real.to(states.dtype)
        if of_table is not None:
            of_table -= smoothing / size * counted.float().sum(0)
        if of_bias is not None:
            of_bias -= smoothing / size * real.sum()
        ctx.save_for_backward(of_states, of_table, of_bias)
        ctx.dtypes = [x if x is None else x.dtype for x in (states, table, bias)]
        return loss

    @staticmethod
    def backward(ctx: FunctionCtx, scale: Tensor) -> tuple[Tensor | None, ...]:
        gradients = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        scaled = [None if x is None else x.mul_(scale).to(dtype) for x, dtype in gradients]
        return (*scaled, None, None, None)


def _log_sum_exp(z: Tensor, chosen: Tensor, gold: Tensor) -> Tensor:
    """log Σ exp z (rows, 1), given the softmax of z and z itself at the labels."""
    if float(chosen.min()) <= torch.finfo(torch.float32).tiny:
        return torch.logsumexp(z.float(), -1, keepdim=True)
    return gold - chosen.log()  # the softmax kernel has already computed the sum
