"""What tests of small models share: words for vocabularies, short trainings that may be killed, and
what they changed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Network, Transformer
from specialized_heads.training import loop, objective

# of stages
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    "OMP_NUM_THREADS": "1",
}
WORDS = [f"{a}{b} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
TRAINING = {
    "updates": 30,
    "batch_tokens": 60,
    "micro_batch_tokens": 60,
    "schedule": "linear",
    "learning_rate": 0.003,
    "warmup": 3,
    "log_every": 1,
    "evaluate_every": 10,
}
PRUNING = {  # settings of the stage `prune`
    "seed": 1,
    "scope": "encoder",
    "dropout": 0.1,
    "training": TRAINING,
    "device": "cpu",
    "lam": 0.01,
    "target_heads": None,
    "gate_learning_rate": 0.3,
}


def outputs(folder: Path) -> dict[str, Path]:
    """What a training writes, in this folder."""
    folder.mkdir(exist_ok=True)
    return {
        "output": folder / "model.safetensors",
        "records": folder / "log.jsonl",
        "state": folder / "state",
    }


@contextmanager
def killed_at(batch: int) -> Iterator[None]:
    """Train with a state after every update, and break off while micro-batch number `batch` is
    made."""
    make_batch, made = objective.make_batch, iter(range(10_000))

    def break_off(*args: object) -> object:
        if next(made) == batch:
            raise KeyboardInterrupt
        return make_batch(*args)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "SAVE_SECONDS", 0.0)
        patch.setattr(loop, "SAVE_SHARE", float("inf"))
        patch.setattr(objective, "make_batch", break_off)
        yield


@torch.no_grad()
def mask_derivatives(
    model: Network, loss: Callable[[], float]
) -> dict[tuple[str, int, int], float]:
    """Finite differences of a loss by the mask of each head, by type, layer and place (from 0)."""
    found, step = {}, 1e-4
    for attention in model.attentions():
        for place in range(len(attention.heads)):
            losses = []
            for sign in (1, -1):
                mask = torch.ones(len(attention.heads), dtype=torch.float64)
                mask[place] += sign * step
                attention.gate = Mask(mask)
                losses.append(loss())
            attention.gate = None
            found[attention.kind, attention.layer, place] = (losses[0] - losses[1]) / (2 * step)
    return found


def changed(before: Transformer, after: Transformer) -> dict[str, bool]:
    """Per parameter of the same shape, whether any bit differs."""
    theirs = dict(after.named_parameters())
    return {
        name: not torch.equal(weight, theirs[name])
        for name, weight in before.named_parameters()
        if weight.numel() and weight.shape == theirs[name].shape
    }
