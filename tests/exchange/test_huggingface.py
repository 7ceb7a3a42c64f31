"""Models of transformers compute the same here, and ours compute the same there."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from published import M2M, MARIAN, m2m, marian
from torch import Tensor

from specialized_heads.corpus.tokens import SpecialTokens
from specialized_heads.exchange.export_to import write_folder
from specialized_heads.exchange.huggingface import convert_model, read_folder
from specialized_heads.model.transformer import Transformer

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SEPARATE = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 50}
SEPARATE |= {"pad_token_id": 49, "decoder_start_token_id": 49}
ODD = {"d_model": 35, "encoder_attention_heads": 5, "decoder_attention_heads": 5}
MODELS = {
    "marian": (marian, MARIAN, {"scale_embedding": True}),
    "marian, separate vocabularies": (marian, replace(MARIAN, pad=49, start=49), SEPARATE),
    "marian, uneven": (
        marian,
        MARIAN,
        {"encoder_layers": 3, "decoder_layers": 1, "activation_function": "gelu"},
    ),
    "marian, odd width": (marian, MARIAN, ODD),
    "m2m": (m2m, M2M, {"scale_embedding": False}),
    "m2m, odd width": (m2m, M2M, ODD),
    "m2m, separate embeddings": (m2m, M2M, {"tie_word_embeddings": False}),
    "m2m, uneven": (m2m, M2M, {"encoder_layers": 1, "decoder_layers": 3}),
}


def sentences(tokens: SpecialTokens) -> tuple[Tensor, Tensor]:
    """Sources of different lengths and prefixes of translations."""
    source = torch.randint(4, 49, (3, 7))
    source[:, -1] = source[1, 4] = tokens.eos
    source[1, 5:] = tokens.pad
    target = torch.randint(4, 49, (3, 6))
    target[:, 0] = tokens.start
    return source, target


def their_logits(
    model: torch.nn.Module, source: Tensor, target: Tensor, tokens: SpecialTokens
) -> Tensor:
    with torch.no_grad():
        return model(
            input_ids=source, attention_mask=(source != tokens.pad).long(), decoder_input_ids=target
        ).logits


@torch.no_grad()
def our_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    return model.logits(model(source, target))


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(name: str, saved) -> None:
    make, tokens, options = MODELS[name]
    model = make(**options)
    ours, (source, target) = convert_model(read_folder(saved(model)), tokens), sentences(tokens)
    expected = their_logits(model, source, target, tokens)
    assert float(expected.abs().max()) > 1
    if tokens.pad == tokens.start:  # never an output here
        expected[..., tokens.pad] = our_logits(ours, source, target)[..., tokens.pad]
    torch.testing.assert_close(our_logits(ours, source, target), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("make", "tokens"), [(marian, MARIAN), (m2m, M2M)])
def test_a_pruned_model_computes_the_same_in_transformers(
    make, tokens, saved, tmp_path: Path
) -> None:
    ours = convert_model(read_folder(saved(make())), tokens)
    ours.keep_heads({"encoder": [[1, 3], []], "decoder": [[0], [2]], "cross": [[], [0, 1, 2]]})
    (tmp_path / "ours").mkdir()
    write_folder(ours, tmp_path / "ours", beam=4)
    back = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours").eval()
    source, target = sentences(tokens)
    expected = our_logits(ours, source, target)
    torch.testing.assert_close(
        their_logits(back, source, target, tokens), expected, rtol=0, atol=1e-5
    )


def test_padding_is_never_an_output_of_a_published_marian_model(saved) -> None:
    model = marian()
    with torch.no_grad():  # as on the hub: a row of zeros, so that its logit is 0, and others below
        model.model.shared.weight[MARIAN.pad] = 0
        model.final_logits_bias[:] = -40
        model.final_logits_bias[:, MARIAN.pad] = 0
    ours, (source, target) = convert_model(read_folder(saved(model)), MARIAN), sentences(MARIAN)
    assert (their_logits(model, source, target, MARIAN).argmax(-1) == MARIAN.pad).all()
    assert not (our_logits(ours, source, target).argmax(-1) == MARIAN.pad).any()
