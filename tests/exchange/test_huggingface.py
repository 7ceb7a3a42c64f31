"""Models of transformers compute the same here, and ours compute the same there."""

from pathlib import Path

import numpy as np
import pytest
import torch
from published import M2M, MARIAN, SIZE, copying, m2m, marian
from safetensors.torch import load_file, save_file
from torch import Tensor

from specialized_heads.corpus.vocabulary import SpecialTokens
from specialized_heads.exchange.huggingface import load_folder, write_folder
from specialized_heads.model.decoding import translate
from specialized_heads.model.transformer import Transformer

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SEPARATE = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 50}
ODD = {"d_model": 35, "encoder_attention_heads": 5, "decoder_attention_heads": 5}
MODELS = {
    "marian": (marian, MARIAN, {}),
    "marian, separate vocabularies": (marian, MARIAN, SEPARATE | {"pad_token_id": 49, "decoder_start_token_id": 49}),
    "marian, 1 layer": (marian, MARIAN, {"encoder_layers": 1, "decoder_layers": 1, "scale_embedding": True}),
    "marian, uneven": (marian, MARIAN, {"encoder_layers": 3, "decoder_layers": 1, "activation_function": "gelu"}),
    "marian, odd width": (marian, MARIAN, ODD),
    "m2m": (m2m, M2M, {}),
    "m2m, odd width": (m2m, M2M, ODD),
    "m2m, separate embeddings": (m2m, M2M, {"tie_word_embeddings": False}),
    "m2m, 1 layer": (m2m, M2M, {"encoder_layers": 1, "decoder_layers": 1, "scale_embedding": False}),
    "m2m, uneven": (m2m, M2M, {"encoder_layers": 1, "decoder_layers": 3}),
}


def tokens_of(tokens: SpecialTokens, options: dict) -> SpecialTokens:
    return MARIAN.__class__(pad=49, unknown=1, start=49, eos=0) if "pad_token_id" in options else tokens


def sentences(tokens: SpecialTokens) -> tuple[Tensor, Tensor]:
    """Sources of different lengths and prefixes of translations."""
    source = torch.randint(4, 49, (3, 7))
    source[:, -1] = source[1, 4] = tokens.eos
    source[1, 5:] = tokens.pad
    target = torch.randint(4, 49, (3, 6))
    target[:, 0] = tokens.start
    return source, target


def their_logits(model: torch.nn.Module, source: Tensor, target: Tensor, tokens: SpecialTokens) -> Tensor:
    with torch.no_grad():
        return model(input_ids=source, attention_mask=(source != tokens.pad).long(), decoder_input_ids=target).logits


@torch.no_grad()
def our_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    return model.logits(model(source, target))


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_transformers(name: str, saved) -> None:
    make, tokens, options = MODELS[name]
    tokens, model = tokens_of(tokens, options), make(**options)
    ours, (source, target) = load_folder(saved(model), tokens), sentences(tokens)
    expected = their_logits(model, source, target, tokens)
    assert float(expected.abs().max()) > 1
    if tokens.pad == tokens.start:  # never an output here
        expected[..., tokens.pad] = our_logits(ours, source, target)[..., tokens.pad]
    torch.testing.assert_close(our_logits(ours, source, target), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["model.encoder.embed_tokens.weight", "lm_head.weight"])
@pytest.mark.parametrize(("make", "tokens"), [(marian, MARIAN), (m2m, M2M)])
def test_a_matrix_that_differs_from_the_one_it_is_tied_to_is_used(make, tokens, name: str, saved) -> None:
    folder = saved(make(pad_token_id=tokens.pad))
    stored = load_file(folder / "model.safetensors")
    assert name not in stored
    for value in (stored["model.shared.weight"], torch.randn(SIZE, 32)):
        save_file(stored | {name: value.clone()}, folder / "model.safetensors", metadata={"format": "pt"})
        ours, theirs = load_folder(folder, tokens), transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        assert ours.architecture.tied == ("all" if value is stored["model.shared.weight"] else "")
        source, target = sentences(tokens)
        expected, found = their_logits(theirs, source, target, tokens), our_logits(ours, source, target)
        others = [number for number in range(SIZE) if number != tokens.pad]
        torch.testing.assert_close(found[..., others], expected[..., others], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_greedy_translations_are_those_of_transformers(name: str, saved) -> None:
    make, tokens, options = MODELS[name]
    tokens, model = tokens_of(tokens, options), make(**options)
    ours, (source, _) = load_folder(saved(model), tokens), sentences(tokens)
    model.generation_config.bad_words_ids = [[tokens.pad]]
    model.generation_config.forced_eos_token_id = None
    rows = [[number for number in row if number not in (tokens.pad, tokens.eos)] for row in source.tolist()]
    for row in rows:
        given = torch.tensor([[*row, tokens.eos]])
        generated = model.generate(given, num_beams=1, do_sample=False, max_new_tokens=10)[0, 1:].tolist()
        expected = generated[: generated.index(tokens.eos)] if tokens.eos in generated else generated
        assert translate(ours, [row], beam=1, max_length_ratio=0.0) == [expected]


@pytest.mark.parametrize(("make", "tokens"), [(marian, MARIAN), (m2m, M2M)])
def test_a_pruned_model_computes_the_same_in_transformers(make, tokens, saved, tmp_path: Path) -> None:
    ours = load_folder(saved(make()), tokens)
    ours.keep_heads({"encoder": [[1, 3], []], "decoder": [[0], [2]], "cross": [[], [0, 1, 2]]})
    (tmp_path / "ours").mkdir()
    write_folder(ours, tmp_path / "ours", beam=4)
    back = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours").eval()
    source, target = sentences(tokens)
    expected = our_logits(ours, source, target)
    torch.testing.assert_close(their_logits(back, source, target, tokens), expected, rtol=0, atol=1e-5)


def test_beam_search_of_transformers_finds_our_translations(saved, tmp_path: Path) -> None:
    ours = load_folder(saved(copying(marian())), MARIAN)
    (tmp_path / "ours").mkdir()
    write_folder(ours, tmp_path / "ours", beam=4)
    back = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours").eval()
    random = np.random.default_rng(1)
    for length in random.integers(1, 12, 40).tolist():
        ids = random.integers(3, SIZE - 1, length).tolist()
        given = torch.tensor([[*ids, MARIAN.eos]])
        theirs = back.generate(given, max_new_tokens=2 * length + 10)[0, 1:].tolist()
        [translation] = translate(ours, [ids], beam=4, max_length_ratio=2.0)
        assert [*translation, MARIAN.eos] == theirs


def test_padding_is_never_an_output_of_a_published_marian_model(saved) -> None:
    model = marian()
    with torch.no_grad():  # as on the hub: a row of zeros, so that its logit is 0, and others below
        model.model.shared.weight[MARIAN.pad] = 0
        model.final_logits_bias[:] = -40
        model.final_logits_bias[:, MARIAN.pad] = 0
    ours, (source, target) = load_folder(saved(model), MARIAN), sentences(MARIAN)
    assert (their_logits(model, source, target, MARIAN).argmax(-1) == MARIAN.pad).all()
    assert not (our_logits(ours, source, target).argmax(-1) == MARIAN.pad).any()


def test_a_layer_without_heads_keeps_the_bias_of_its_output(saved) -> None:
    ours = load_folder(saved(marian()), MARIAN)
    source, target = sentences(MARIAN)
    ours.attentions("encoder")[0].keep([])
    shifted = our_logits(ours, source, target)
    torch.nn.init.zeros_(ours.attentions("encoder")[0].output_bias)
    assert not torch.allclose(shifted, our_logits(ours, source, target))
