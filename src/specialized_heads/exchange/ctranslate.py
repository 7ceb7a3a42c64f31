"""Write models in the format of CTranslate2, an inference engine in C++ with int8 products.

CTranslate2 has one number of heads per stack. Layers with fewer heads are padded with zero heads, which change no output but
cost as much as real ones.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import common_spec, transformer_spec
from torch import Tensor, nn

from specialized_heads.model.attention import MultiHeadAttention
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError

LONGEST = 1024  # positions


@torch.no_grad()
def write(model: Transformer, folder: Path, *, source: list[str], target: list[str], quantization: str) -> None:
    """Write a model, on the CPU and without gates, to a folder that exists, for `ctranslate2.Translator`.

    `source` and `target` are the pieces of both vocabularies in the order of their ids, (V,). A `UserError` if CTranslate2 cannot
    compute what the model does.
    """
    a = model.architecture
    if model.has_fixed_heads():
        raise UserError("the model has heads with fixed attention patterns, which CTranslate2 cannot compute")
    common = {
        "pre_norm": not a.post_norm,
        "activation": common_spec.Activation[a.activation.upper()],
        "head_dim": a.head_width,
    }
    heads = {"encoder": largest_layer(model, "encoder"), "decoder": largest_layer(model, "decoder", "cross")}
    encoder = transformer_spec.TransformerEncoderSpec(len(a.encoder), heads["encoder"], **common)
    decoder = transformer_spec.TransformerDecoderSpec(len(a.decoder), heads["decoder"], **common)
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        stack.scale_embeddings = a.scale_embeddings
        stack.position_encodings.encodings = array(model.sinusoids(a.position_start + LONGEST)[a.position_start :])
        if not a.post_norm:
            copy_norm(stack.layer_norm, getattr(model, f"{name}_norm"))
        for theirs, ours in zip(stack.layer, getattr(model, name), strict=True):
            copy_attention(theirs.self_attention, ours.attention, heads[name])
            copy_norm(theirs.self_attention.layer_norm, ours.attention_norm)
            if name == "decoder":
                copy_attention(theirs.attention, ours.cross, heads[name])
                copy_norm(theirs.attention.layer_norm, ours.cross_norm)
            copy_norm(theirs.ffn.layer_norm, ours.feed_forward_norm)
            copy_linear(theirs.ffn.linear_0, ours.feed_forward.expand)
            copy_linear(theirs.ffn.linear_1, ours.feed_forward.contract)
    encoder.embeddings[0].weight = array(model.source_embedding)
    decoder.embeddings.weight = array(model.target_embedding)
    decoder.projection.weight = array(model.output_embedding)
    if model.output_bias is not None:
        decoder.projection.bias = array(model.output_bias)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.layer_norm_epsilon = a.norm_epsilon
    spec.config.add_source_eos = True
    spec.config.bos_token = spec.config.decoder_start_token = target[a.tokens.start]
    spec.config.eos_token, spec.config.unk_token = target[a.tokens.eos], target[a.tokens.unknown]
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(folder))


def largest_layer(model: Transformer, *kinds: str) -> int:
    """The number of heads that every layer of a stack gets."""
    return max(1, *(len(attention.heads) for attention in model.attentions(*kinds)))


def copy_attention(theirs: Any, ours: MultiHeadAttention, heads: int) -> None:
    """Copy the projections of a layer, padded to a number of heads."""
    missing = (heads - len(ours.heads)) * ours.head_width
    groups = [["query", "key", "value"]] if ours.kind != "cross" else [["query"], ["key", "value"]]
    for linear, names in zip(theirs.linear, groups, strict=False):
        rows = [nn.functional.pad(getattr(ours, name), (0, 0, 0, missing)) for name in names]
        linear.weight = array(torch.cat(rows))
        if ours.query_bias is not None:
            biases = [nn.functional.pad(getattr(ours, f"{name}_bias"), (0, missing)) for name in names]
            linear.bias = array(torch.cat(biases))
    theirs.linear[-1].weight = array(nn.functional.pad(ours.output, (0, missing)))
    if ours.output_bias is not None:
        theirs.linear[-1].bias = array(ours.output_bias)


def copy_norm(theirs: Any, ours: nn.Module) -> None:
    theirs.gamma, theirs.beta = array(ours.weight), array(ours.bias)


def copy_linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight, theirs.bias = array(ours.weight), array(ours.bias)


def array(tensor: Tensor) -> np.ndarray:
    """A copy, since quantisation scales arrays in place."""
    return tensor.detach().float().numpy().copy()
