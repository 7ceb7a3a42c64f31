"""Encoder-decoder models of Hugging Face transformers: M2M100 (NLLB too) and MarianMT.

Both are variants of this package's Transformer: M2M100 has pre-norm sub-layers and ReLU, MarianMT
post-norm ones and mostly swish; both have biases in attention. transformers reads their folders;
writing one needs no other package.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specialized_heads.corpus.tokens import OURS, SpecialTokens
from specialized_heads.exchange import reading
from specialized_heads.exchange.reading import CONFIG, WEIGHTS
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.checkpoint import network, set_weights, write_tensors
from specialized_heads.model.transformer import ACTIVATIONS, Transformer
from specialized_heads.stage import UserError, write_json

GENERATION = "generation_config.json"
NEVER = -100.0  # logit of what is never an output

# From our names to theirs: patterns that are replaced one after the other.
NAMES = (
    (r"^source_embedding$", "model.encoder.embed_tokens.weight"),
    (r"^target_embedding$", "model.decoder.embed_tokens.weight"),
    (r"^output_embedding$", "lm_head.weight"),
    (r"^output_bias$", "final_logits_bias"),
    (r"^(encoder|decoder)_norm", r"model.\1.layer_norm"),
    (r"^(encoder|decoder)\.(?=\d)", r"model.\1.layers."),
    ("attention_norm", "self_attn_layer_norm"),
    ("cross_norm", "encoder_attn_layer_norm"),
    ("feed_forward_norm", "final_layer_norm"),
    (r"feed_forward\.expand", "fc1"),
    (r"feed_forward\.contract", "fc2"),
    (r"\.attention\.", ".self_attn."),
    (r"\.cross\.", ".encoder_attn."),
    (r"\.(q|k|v|out)(uery|ey|alue|put)(?=_bias$|$)", r".\1_proj"),
    (r"_proj_bias$", "_proj.bias"),
    (r"_proj$", "_proj.weight"),
)
their_name = partial(reading.translated, patterns=NAMES)
# Kinds of models.
KINDS = ("marian", "m2m_100")


def shared(config: Any) -> bool:
    """Whether both sides share one vocabulary; in M2M100 they always do."""
    return config.model_type != "marian" or config.share_encoder_decoder_embeddings


def target_vocabulary(config: Any) -> int:
    return config.vocab_size if shared(config) else config.decoder_vocab_size or config.vocab_size


def read_folder(folder: Path) -> Any:
    """A model of transformers; a `UserError` if its files do not fit or describe one of another
    kind."""
    config = reading.read_config(folder, KINDS)
    path = folder / CONFIG
    for key in ("attention_heads", "ffn_dim"):
        ours, other = getattr(config, f"encoder_{key}"), getattr(config, f"decoder_{key}")
        if ours != other:
            raise UserError(
                f"{path}: encoder_{key} is {ours} and decoder_{key} {other}; they must be equal"
            )
    if config.activation_function not in (*ACTIVATIONS, "silu"):
        raise UserError(
            f"{path}: activation_function {config.activation_function!r} is not supported"
        )
    layers = {
        f"{side}.layers.": getattr(config, f"{side}_layers") for side in ("encoder", "decoder")
    }
    model = reading.read_model(
        folder, config, "AutoModelForSeq2SeqLM", layers=layers, optional="final_logits_bias"
    )
    if config.decoder_start_token_id is None:
        config.decoder_start_token_id = model.generation_config.decoder_start_token_id
    special = [getattr(config, f"{name}_token_id") for name in ("pad", "eos", "decoder_start")]
    if not all(
        isinstance(n, int) and 0 <= n < min(config.vocab_size, target_vocabulary(config))
        for n in special
    ):
        raise UserError(
            f"{path}: special tokens have the ids {special}, beyond the vocabulary; fetch the file "
            f"again"
        )
    return model


def convert_model(theirs: Any, tokens: SpecialTokens = OURS) -> Transformer:
    """This package's form of a model of transformers, with the tokens of its tokeniser."""
    config, marian = theirs.config, theirs.config.model_type == "marian"
    heads = tuple(range(config.encoder_attention_heads))
    decoder = (heads,) * config.decoder_layers
    state = theirs.state_dict()
    source, target, output = (
        state[their_name(f"{name}_embedding")] for name in ("source", "target", "output")
    )
    tied = "output" if target is output or target.data_ptr() == output.data_ptr() else ""
    if tied and source.data_ptr() == output.data_ptr():
        tied = "all"
    a = Architecture(
        source_vocabulary=config.vocab_size,
        target_vocabulary=target_vocabulary(config),
        width=config.d_model,
        feed_forward=config.encoder_ffn_dim,
        head_width=config.d_model // len(heads),
        encoder=(heads,) * config.encoder_layers,
        decoder=decoder,
        cross=decoder,
        position_start=0 if marian else config.pad_token_id + 1,
        position_last=not marian,
        post_norm=marian,
        activation="swish" if config.activation_function == "silu" else config.activation_function,
        attention_bias=True,
        output_bias=marian,
        norm_epsilon=1e-5,
        scale_embeddings=config.scale_embedding,
        tied=tied,
        tokens=tokens,
    )
    model = network(a)
    tensors = {name: state[their_name(name)] for name, _ in model.named_parameters()}
    if a.output_bias:
        tensors["output_bias"] = state[their_name("output_bias")].flatten()
        if tokens.pad == tokens.start:
            # Published MarianMT models have a row of zeros for padding, which is no output but
            # would compete with a logit of 0.
            tensors["output_bias"][tokens.pad] = NEVER
    set_weights(model, tensors)
    return model.eval()


def write_folder(model: Transformer, folder: Path, *, beam: int) -> None:
    """Write a model as `save_pretrained` would, without its tokenisers, to a folder that exists.

    Pre-norm models become M2M100, post-norm ones MarianMT; removed heads become heads of zeros.
    `beam` is for `generate`. A `UserError` for models that were not imported: no format of
    transformers has their positions.
    """
    a, tokens = model.architecture, model.architecture.tokens
    if not a.post_norm and a.position_start != tokens.pad + 1:
        raise UserError(
            "transformers cannot hold the positions of models trained here; export this one to "
            "ctranslate2"
        )
    heads = a.width // a.head_width
    special = {
        "pad_token_id": tokens.pad,
        "eos_token_id": tokens.eos,
        "decoder_start_token_id": tokens.start,
    }
    config = special | {
        "architectures": ["MarianMTModel" if a.post_norm else "M2M100ForConditionalGeneration"],
        "model_type": "marian" if a.post_norm else "m2m_100",
        "d_model": a.width,
        "vocab_size": a.source_vocabulary,
        "activation_function": a.activation,
        "scale_embedding": a.scale_embeddings,
        "tie_word_embeddings": a.tied == "all" or (a.post_norm and a.tied == "output"),
        "bos_token_id": None if a.post_norm else tokens.start,
        "is_encoder_decoder": True,
        "torch_dtype": "float32",
    }
    for stack in ("encoder", "decoder"):
        config |= {
            f"{stack}_layers": len(getattr(a, stack)),
            f"{stack}_attention_heads": heads,
            f"{stack}_ffn_dim": a.feed_forward,
            f"{stack}_layerdrop": 0.0,
        }
    generation = special | {
        "num_beams": beam,
        "early_stopping": beam > 1,  # a sentence is done with as many finished hypotheses, as here
        "length_penalty": 1.0,
        "max_length": 512,
    }
    if a.post_norm:
        config |= {
            "decoder_vocab_size": a.target_vocabulary,
            "share_encoder_decoder_embeddings": a.tied == "all",
        }
        config["forced_eos_token_id"] = tokens.eos
        generation["bad_words_ids"] = [[tokens.pad]]
    if tokens.target_tags:
        generation["forced_bos_token_id"] = tokens.target_tags[0]
    write_json(folder / CONFIG, config)
    write_json(folder / GENERATION, generation)
    write_tensors(folder / WEIGHTS, _their_tensors(model, heads), format="pt")


def _their_tensors(model: Transformer, heads: int) -> dict[str, Tensor]:
    """The weights by their names, every layer with `heads` heads in the order of their original
    numbers."""
    a = model.architecture
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if "attention." not in name and "cross." not in name:
            tensors[their_name(name)] = parameter.detach()
    for attention in model.attentions():
        prefix = f"{'encoder' if attention.kind == 'encoder' else 'decoder'}.{attention.layer}."
        prefix += "cross." if attention.kind == "cross" else "attention."
        rows = [head * a.head_width + i for head in attention.heads for i in range(a.head_width)]
        for matrix in ("query", "key", "value", "output"):
            dense = torch.zeros(a.width, heads * a.head_width)
            weight = getattr(attention, matrix).detach()
            dense[:, rows] = weight if matrix == "output" else weight.T
            tensors[their_name(prefix + matrix)] = (
                dense if matrix == "output" else dense.T.contiguous()
            )
            bias, full = getattr(attention, f"{matrix}_bias"), torch.zeros(a.width)
            if bias is not None:
                full[slice(None) if matrix == "output" else rows] = bias.detach()
            tensors[their_name(f"{prefix}{matrix}_bias")] = full
    if a.tied == "all":
        tensors["model.shared.weight"] = tensors.pop(their_name("source_embedding"))
    elif a.tied == "output" and not a.post_norm:  # M2M100 cannot tie only these two
        tensors[their_name("output_embedding")] = tensors[their_name("target_embedding")].clone()
    if a.post_norm:
        bias = tensors.get(their_name("output_bias"), torch.zeros(a.target_vocabulary))
        tensors[their_name("output_bias")] = bias[None]
    return tensors
