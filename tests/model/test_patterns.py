"""The fixed attention patterns, against sentences small enough to work out by hand."""

import torch

from specialized_heads.corpus.vocabulary import BOS, EOS, PAD
from specialized_heads.model.attention import Activations
from specialized_heads.model.patterns import LABELS, fixed_weights

KEYS = torch.tensor([[True] * 5, [True, True, True, False, False]])


def test_rows_are_distributions_or_empty() -> None:
    weights = fixed_weights(KEYS)
    assert weights.shape == (2, len(LABELS), 5, 5)
    total = weights.sum(-1)
    assert torch.all(torch.isclose(total, torch.ones(())) | (total == 0))
    assert weights[1, :, :, 3:].sum() == weights[1, :, 3:].sum() == 0  # padding neither looks nor is looked at


def test_context_grows_with_the_cube_of_the_place() -> None:
    weights = fixed_weights(KEYS)
    left = weights[0, list(LABELS).index("left context"), 4]
    assert torch.allclose(left, torch.tensor([1.0, 8.0, 27.0, 0.0, 0.0]) / 36)
    right = weights[1, list(LABELS).index("right context"), 0]
    assert torch.equal(right, torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]))
    end = weights[1, list(LABELS).index("end of the sentence"), 0]
    assert torch.allclose(end, torch.tensor([1.0, 8.0, 27.0, 0.0, 0.0]) / 36)


def test_a_model_with_fixed_patterns_attends_by_them_and_trains_the_rest(tiny_model) -> None:
    model = tiny_model(heads=8, width=16, fixed_patterns=True)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD]])
    activations: Activations = {}

    states = model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # Not their plain sum: that of a LayerNorm's output is constant, so its gradients would be zero up to rounding.
    (states * torch.arange(1.0, 17.0)).sum().backward()

    patterns = fixed_weights(source != PAD)
    for layer in range(2):
        assert torch.equal(activations["encoder", layer, "weights"][:, : len(LABELS)], patterns)
    query = model.encoder[0].attention.query.grad.unflatten(0, (8, 2))
    assert not query[: len(LABELS)].any() and query[len(LABELS) :].any()

    model.keep_heads({"encoder": [[1, 7], []], "decoder": [list(range(8))] * 2, "cross": [list(range(8))] * 2})
    model(source, torch.tensor([[BOS, 4], [BOS, 5]]), activations)
    # The heads that stay keep their patterns.
    assert torch.equal(activations["encoder", 0, "weights"][:, 0], patterns[:, 1])
