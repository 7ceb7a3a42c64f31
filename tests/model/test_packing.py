"""Training without padding: losses and gradients of padded batches, and filler that takes no
part."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from specialized_heads.corpus.tokens import PAD, SpecialTokens
from specialized_heads.model import attention as attention_module
from specialized_heads.model import packing
from specialized_heads.model.functional import dropout_seed
from specialized_heads.model.gates import HardConcrete
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch, make_batch
from specialized_heads.training.objective import Translation

# on both sides of 16 keys, where the softmax changes
LENGTHS = [(1, 2), (3, 1), (7, 20), (7, 6), (2, 18), (19, 3)]
PUBLISHED = {"post_norm": True, "attention_bias": True, "output_bias": True, "tied": "output"}
PUBLISHED |= {"position_start": 2}


@pytest.fixture
def batch(store) -> Batch:
    random = np.random.default_rng(5)
    sides = zip(*LENGTHS, strict=True)
    sources, targets = (
        [random.integers(4, 20, length).tolist() for length in side] for side in sides
    )
    return make_batch(store(sources, targets), np.arange(len(LENGTHS)))


def loss_and_gradients(model: Transformer, batch: Batch) -> list[torch.Tensor]:
    loss = Translation().loss(model, batch, label_smoothing=0.1)
    trained = [
        parameter
        for parameter in model.parameters()
        if parameter.requires_grad and parameter.numel()
    ]
    return [loss.detach(), *torch.autograd.grad(loss, trained, materialize_grads=True)]


def assert_packing_changes_nothing(model: Transformer, batch: Batch) -> None:
    assert model.packs()
    packed = loss_and_gradients(model, batch)
    model.packs = lambda: False
    for found, expected in zip(packed, loss_and_gradients(model, batch), strict=True):
        # the loss is summed in float32
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def pruned(model: Transformer) -> None:
    """Layers with one head and with none."""
    model.keep_heads({"encoder": [[1], []], "decoder": [[0, 1], [0]], "cross": [[], [0, 1]]})


def gated(model: Transformer) -> None:
    for attention in model.attentions():
        attention.gate = HardConcrete(len(attention.heads), log_alpha=0.3).to(attention.query.dtype)


def half_closed(model: Transformer) -> None:
    """Gates drawn as 0, which packed attention leaves out: one of a layer, all of another."""
    gated(model)
    for attention, noise in zip(model.attentions(), [(1e-6, 0.5), (1e-6, 1e-6)] * 3, strict=True):
        attention.gate.noise.copy_(torch.tensor(noise))
        assert (attention.gate() == 0).tolist() == [u < 0.1 for u in noise]


@pytest.mark.parametrize("change", [None, pruned, gated, half_closed])
@pytest.mark.parametrize("sizes", [{}, PUBLISHED])
def test_losses_and_gradients_equal_those_of_padded_batches(
    tiny_model, batch: Batch, change, sizes: dict
) -> None:
    model = tiny_model(**sizes).double().train()
    if change:
        change(model)
    assert_packing_changes_nothing(model, batch)


def test_start_tokens_with_the_id_of_padding_are_kept(tiny_model, store) -> None:
    tokens = SpecialTokens(start=PAD)
    data = store([[5, 6], [7]], [[8], [9, 10, 11]])
    batch = make_batch(replace(data, tokens=tokens), np.arange(2))
    assert (batch.target_in[:, 0] == PAD).all()
    assert_packing_changes_nothing(tiny_model(tokens=tokens).double().train(), batch)


def test_products_in_bf16_stay_close(tiny_model, batch: Batch) -> None:
    model = tiny_model().train()
    gated(model)
    narrow = model.in_precision(torch.bfloat16).train()
    exact, rounded = (loss_and_gradients(each, batch)[0] for each in (model, narrow))
    assert rounded.dtype == torch.float32 and 0 < abs(float(rounded - exact)) < 0.01 * float(exact)


def test_dropout_is_drawn_in_packed_attention(tiny_model, batch: Batch) -> None:
    model = tiny_model(dropout=0.0).train()
    exact = loss_and_gradients(model, batch)[0]
    for attention in model.attentions():
        attention.dropout = 0.5
    losses = []
    for seed in (1, 1, 2):
        with dropout_seed(seed, model.device):
            losses.append(float(loss_and_gradients(model, batch)[0]))
    assert losses[0] == losses[1] != losses[2] and float(exact) not in losses


def test_analysis_and_evaluation_keep_padding(tiny_model) -> None:
    assert not tiny_model().packs()
    assert not tiny_model(fixed_patterns=True, heads=8, width=16).train().packs()


def test_gradients_follow_the_weights_that_were_dropped(tiny_model, batch, monkeypatch) -> None:
    def kept(x, rate):
        drawn = torch.rand(x.numel(), generator=torch.Generator().manual_seed(1)).view(x.shape)
        return (drawn >= rate).to(x.dtype) / (1 - rate)

    monkeypatch.setattr(packing, "keep_mask", kept)
    monkeypatch.setattr(attention_module, "dropout", lambda x, rate, training: x * kept(x, rate))
    model = tiny_model().double().train()
    for each in model.attentions():
        each.dropout = 0.5
    assert_packing_changes_nothing(model, batch)
