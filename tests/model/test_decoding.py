"""Beam search, which caches keys and values, against plain loops over the uncached decoder."""

from functools import partial

import pytest
import torch

from specialized_heads.corpus.tokens import BOS, EOS, PAD
from specialized_heads.model import decoding
from specialized_heads.model.decoding import in_batches, translate
from specialized_heads.model.transformer import Transformer

SOURCES = [[5, 9, 4, 17], [8], [], [6, 6, 12, 13, 14, 15, 4], [11, 10]]
SETTINGS = {"beam": 4, "max_length_ratio": 1.5}


def plain_beam_search(model: Transformer, source: list[int], *, beam: int) -> list[int]:
    """Lists of hypotheses, each scored anew by the uncached decoder at every step."""
    open_: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, int(1.5 * len(source)) + 11):
        target = torch.tensor([[BOS, *ids] for _, ids in open_])
        states = model(torch.tensor([[*source, EOS]]).expand(len(open_), -1), target)
        log_p = model.logits(states[:, -1]).log_softmax(-1).tolist()
        candidates = [
            (score + log_p[row][token], [*ids, token])
            for row, (score, ids) in enumerate(open_)
            for token in range(len(log_p[row]))
            if token not in (PAD, BOS)
        ]
        candidates.sort(reverse=True)
        finished += [(s / length, ids[:-1]) for s, ids in candidates[:beam] if ids[-1] == EOS]
        open_ = [(score, ids) for score, ids in candidates if ids[-1] != EOS][:beam]
        if len(finished) >= beam:
            break
    return max(finished)[1] if finished else open_[0][1]


@pytest.fixture(params=["full", "pruned"])
def model(request: pytest.FixtureRequest, tiny_model) -> Transformer:
    """A model that ends some sentences early and others not at all."""
    model = tiny_model(seed=3)
    if request.param == "pruned":
        model.keep_heads({"encoder": [[], [1]], "decoder": [[], [0]], "cross": [[0, 1], []]})
    return model


@pytest.mark.parametrize("beam", [1, 4, 8])
@torch.inference_mode()
def test_beam_search_equals_the_plain_one(model: Transformer, tiny_model, beam: int) -> None:
    for searched in (model, tiny_model(seed=5)):
        searched.output_embedding *= 0.7
        # likely, but never in an output
        searched.output_embedding[PAD] = 2 * searched.output_embedding[4]
        outputs = translate(searched, SOURCES, beam=beam, max_length_ratio=1.5)
        for source, output in zip(SOURCES, outputs, strict=True):
            assert output == plain_beam_search(searched, source, beam=beam)


def test_outputs_do_not_depend_on_the_threads(model, monkeypatch) -> None:
    expected = translate(model, SOURCES, **SETTINGS)
    monkeypatch.setattr(decoding, "in_batches", partial(in_batches, tokens=7))  # several batches
    for threads in (1, 3):
        torch.set_num_threads(threads)
        assert decoding.translate_all(model, SOURCES, **SETTINGS) == expected
        assert torch.get_num_threads() == threads
