"""Attention maps of a model, and where they are largest."""

import numpy as np
import pytest
import torch

from specialized_heads.heads import maps
from specialized_heads.model.attention import Activations
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import make_batch

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12]], [[4, 12], [7, 15, 9], [11]]


@pytest.fixture
def pruned(tiny_model) -> Transformer:
    model = tiny_model(layers=2, heads=3, width=12)
    model.keep_heads({"encoder": [[], [0, 2]], "decoder": [[], []], "cross": [[1], [0, 1, 2]]})
    return model


def test_maps_of_a_pruned_model_are_the_model_s_own(pruned: Transformer, store) -> None:
    data, seen = store(SOURCES, TARGETS), []
    for batch in maps.attention_maps(pruned, data, tokens=10):
        assert {kind: w.shape[1] for kind, w in batch.weights.items()} == {"encoder": 2, "decoder": 0, "cross": 4}
        for row, number in enumerate(batch.sentences.tolist()):
            seen.append(number)
            source, target = len(SOURCES[number]), len(TARGETS[number])
            assert batch.queries["encoder"][row].tolist() == [i < source for i in range(batch.source.shape[1])]
            assert torch.equal(batch.keys["cross"][row], batch.keys["encoder"][row])
            assert int(batch.queries["cross"][row].sum()) == target + 1  # begin-of-sentence is one, too
            assert batch.keys["decoder"][row].tolist() == batch.queries["cross"][row].tolist()
            # Begin-of-sentence sees only itself.
            positions = range(batch.keys["decoder"].shape[1])
            assert batch.queries["decoder"][row].tolist() == [0 < i <= target for i in positions]
            activations: Activations = {}
            alone = make_batch(data, np.array([number]))
            with torch.inference_mode():
                pruned(alone.source, alone.target_in, activations)
            for kind, queries, keys in (("encoder", source, source), ("cross", target, source)):
                layers = [activations[kind, n, "weights"][0] for n in range(2) if (kind, n, "weights") in activations]
                ours = batch.weights[kind][row, :, : queries + 1, : keys + 1]
                assert torch.allclose(ours, torch.cat(layers), atol=1e-6)
                assert (batch.weights[kind][row, ..., keys + 1 :] == 0).all()
    assert sorted(seen) == [0, 1, 2]


def test_a_sentence_without_a_target_has_no_decoder_queries(pruned: Transformer, store) -> None:
    (batch,) = maps.attention_maps(pruned, store([[5, 6], [7, 8]], [[9], []]))
    assert batch.queries["encoder"].sum(1).tolist() == [2, 2]
    by_sentence = dict(zip(batch.sentences.tolist(), batch.queries["cross"].sum(1).tolist(), strict=True))
    assert by_sentence == {0: 2, 1: 0}


def test_argmax_leaves_eos_out_and_takes_the_first_of_equals() -> None:
    """Two sentences, of three and one tokens; padding and EOS have the largest weights."""
    real = torch.tensor([[True, True, True, False], [True, False, False, False]])
    first = [[0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4], [0.25, 0.25, 0.1, 0.4]]
    weights = torch.tensor([first, [[0.3, 0.7, 0, 0]] * 3])
    assert maps.argmax(weights[:, None], real)[:, 0].tolist() == [[1, 2, 0], [0, 0, 0]]
