"""What tests of small models share: words for vocabularies, settings of a short training, and what it changed."""

import torch

from specialized_heads.model.transformer import Transformer

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


def changed(before: Transformer, after: Transformer) -> dict[str, bool]:
    """Per parameter of the same shape, whether any bit differs."""
    theirs = dict(after.named_parameters())
    return {
        name: not torch.equal(weight, theirs[name])
        for name, weight in before.named_parameters()
        if weight.numel() and weight.shape == theirs[name].shape
    }
