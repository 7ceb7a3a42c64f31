"""The development loss against the library's cross-entropy, sentence by sentence."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from specialized_heads.training.batching import make_batch
from specialized_heads.training.objective import evaluate


def test_evaluation_is_per_token_without_dropout_whatever_the_batches(
    tiny_model, store, sentences, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = tiny_model(dropout=0.5).train(), store(*sentences(30))
    loss = evaluate(model, data)
    assert model.training  # as before
    total = tokens = 0
    model.eval()
    for number in range(30):
        batch = make_batch(data, np.array([number]))
        logits = model.logits(model(batch.source, batch.target_in))[0]
        total += F.cross_entropy(logits, batch.target_out[0], reduction="sum").item()
        tokens += len(data.target_ids(number)) + 1
    assert loss == pytest.approx(total / tokens, rel=1e-5)
    torch.manual_seed(99)
    assert evaluate(model, data) == loss
    assert not model.training
