"""Gradient × input against finite differences."""

import pytest
import torch

from specialized_heads.heads.relevance.gradient import gradient_input
from specialized_heads.model.architecture import KINDS
from specialized_heads.training.batching import Batch


def test_it_is_the_growth_of_the_logit_as_a_head_is_scaled_up(tiny_model, batch: Batch, kept: dict) -> None:
    model = tiny_model().double()
    model.keep_heads(kept)
    result = gradient_input(model, batch)
    with torch.no_grad():
        logits = model.logits(model(batch.source, batch.target_in))
        top = logits.argmax(-1, keepdim=True)
        for module in model.attentions(*KINDS):
            heads = result.heads[module.kind, module.layer]
            assert heads.shape == (3, 4, len(module.heads))
            for head in range(len(module.heads)):
                columns = slice(head * module.head_width, (head + 1) * module.head_width)
                weights, sides = module.output.data.clone(), []
                for factor in (1 + 1e-8, 1 - 1e-8):
                    module.output.data[:, columns] = weights[:, columns] * factor
                    sides.append(model.logits(model(batch.source, batch.target_in)).gather(-1, top)[..., 0])
                module.output.data.copy_(weights)
                growth = (sides[0] - sides[1]) / 2e-8 / logits.amax(-1)
                assert heads[..., head][result.steps].tolist() == pytest.approx(growth[result.steps].tolist(), abs=1e-6)


def test_levels_and_a_choice_of_steps(tiny_model, batch: Batch) -> None:
    model = tiny_model()
    every, some = gradient_input(model, batch), gradient_input(model, batch, steps=slice(1, 3))
    assert list(every.totals) == ["decoder 1", "encoder 2", "encoder 1"]
    for name in every.heads:
        assert torch.allclose(every.heads[name][:, 1:3], some.heads[name], rtol=1e-4, atol=1e-6)
    for name in every.totals:
        assert torch.allclose(every.totals[name][:, 1:3], some.totals[name], rtol=1e-4, atol=1e-5)


def test_a_model_without_heads(tiny_model, batch: Batch) -> None:
    model = tiny_model()
    model.keep_heads({kind: [[], []] for kind in KINDS})
    result = gradient_input(model, batch)
    assert all(heads.shape == (3, 4, 0) for heads in result.heads.values())
    assert set(result.totals) == {"decoder 1", "encoder 2", "encoder 1"}
