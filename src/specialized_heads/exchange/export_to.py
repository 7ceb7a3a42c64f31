"""Write an exported model in the format of another engine, with its tokenisers and a README.

A folder made by the rule `export` becomes one for CTranslate2, an inference engine in C++ with int8
products, or for Hugging Face transformers. CTranslate2 has one number of heads per stack: layers
with fewer heads are padded with zero heads, which change no output but cost as much as real ones.
In a folder for transformers all layers have all heads, and removed ones are zeros.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from specialized_heads import __version__, stage
from specialized_heads.exchange.export import Translator, load_exported
from specialized_heads.exchange.folder import SOURCE, TARGET, make_folder
from specialized_heads.exchange.huggingface import their_name
from specialized_heads.exchange.reading import CONFIG, WEIGHTS
from specialized_heads.exchange.tokenisers import write_tokenisers
from specialized_heads.languages import without_region
from specialized_heads.model.attention import MultiHeadAttention
from specialized_heads.model.checkpoint import write_tensors
from specialized_heads.model.transformer import Transformer

LONGEST = 1024  # positions in CTranslate2

WRITTEN = """# {name}

Translates from {source} to {target}. Written by specialized-heads {version} for {engine}.

```python
{code}
print({undo})
```
"""

HF_CODE = """import transformers
folder = "PATH/OF/THIS/FOLDER"
model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
text = "A sentence."{apply}
ids = tokenizer({before}text, return_tensors="pt")
translation = tokenizer.decode(model.generate(**ids)[0], skip_special_tokens=True)"""

CTRANSLATE2_CODE = """import ctranslate2, sentencepiece
folder = "PATH/OF/THIS/FOLDER"
translator = ctranslate2.Translator(folder)
source = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/source.model")
target = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/target.model")
text = "A sentence."{apply}
pieces = {tags}source.encode(text, out_type=str)
limit = int({max_length_ratio:g} * len(pieces)) + 10
[result] = translator.translate_batch(
    [pieces], beam_size={beam}, max_decoding_length=limit{prefix}
)
translation = target.decode_pieces(result.hypotheses[0]{skip})"""

# What `corpus.preprocess` does before and after, for a model of lower-case Moses tokens.
APPLY = """
from sacremoses import MosesDetokenizer, MosesTokenizer
text = " ".join(MosesTokenizer("{source}").tokenize(text, escape=False)).lower()"""
UNDO = 'MosesDetokenizer("{target}").detokenize(translation.split(), unescape=False)'


def export_to(folder: Path, output: Path, *, to: str, quantization: str = "float32") -> Path:
    """Write an exported model for `ctranslate2` or `hf` to a folder, which must be new or empty;
    returns its README."""
    translator = load_exported(folder, device="cpu")
    make_folder(output)
    if names := sorted(path.name for path in output.iterdir()):
        raise stage.UserError(f"{output}: holds other files ({names[0]}); name a new folder")
    if to == "ctranslate2":
        _write_ctranslate2(translator, output, quantization=quantization)
    elif quantization == "float32":
        a, sides = translator.model.architecture, (translator.source, translator.target)
        write_folder(translator.model, output, beam=translator.decoding.beam)
        models = [processor.serialized_model_proto() for processor in sides]
        write_tokenisers(*models, output, tokens=a.tokens, marian=a.post_norm)
    else:
        raise stage.UserError(
            "--quantization: transformers holds float32 weights; quantise for CTranslate2"
        )
    stage.write_file(output / "README.md", _readme(translator, to=to, quantization=quantization))
    return output / "README.md"


@torch.no_grad()
def _write_ctranslate2(translator: Translator, folder: Path, *, quantization: str) -> None:
    """Write a model, on the CPU and without gates, for `ctranslate2.Translator`; a `UserError` if
    that cannot compute it."""
    with stage.optional("ctranslate2"):
        from ctranslate2.specs import common_spec, transformer_spec
    model, a = translator.model, translator.model.architecture
    source, target = (
        [processor.id_to_piece(number) for number in range(size)]
        for processor, size in (
            (translator.source, a.source_vocabulary),
            (translator.target, a.target_vocabulary),
        )
    )
    if model.has_fixed_heads():
        said = "heads with fixed attention patterns, which CTranslate2 cannot compute"
        raise stage.UserError(f"the model has {said}")
    common = {
        "pre_norm": not a.post_norm,
        "activation": common_spec.Activation[a.activation.upper()],
        "head_dim": a.head_width,
    }
    heads = {  # that every layer of a stack gets
        stack: max(1, *(len(attention.heads) for attention in model.attentions(*kinds)))
        for stack, kinds in (("encoder", ("encoder",)), ("decoder", ("decoder", "cross")))
    }
    encoder = transformer_spec.TransformerEncoderSpec(len(a.encoder), heads["encoder"], **common)
    decoder = transformer_spec.TransformerDecoderSpec(len(a.decoder), heads["decoder"], **common)
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        stack.scale_embeddings = a.scale_embeddings
        positions = model.sinusoids(a.position_start + LONGEST)[a.position_start :]
        stack.position_encodings.encodings = _array(positions)
        if not a.post_norm:
            _copy_norm(stack.layer_norm, getattr(model, f"{name}_norm"))
        for theirs, ours in zip(stack.layer, getattr(model, name), strict=True):
            _copy_attention(theirs.self_attention, ours.attention, heads[name])
            _copy_norm(theirs.self_attention.layer_norm, ours.attention_norm)
            if name == "decoder":
                _copy_attention(theirs.attention, ours.cross, heads[name])
                _copy_norm(theirs.attention.layer_norm, ours.cross_norm)
            _copy_norm(theirs.ffn.layer_norm, ours.feed_forward_norm)
            _copy_linear(theirs.ffn.linear_0, ours.feed_forward.expand)
            _copy_linear(theirs.ffn.linear_1, ours.feed_forward.contract)
    encoder.embeddings[0].weight = _array(model.source_embedding)
    decoder.embeddings.weight = _array(model.target_embedding)
    decoder.projection.weight = _array(model.output_embedding)
    if model.output_bias is not None:
        decoder.projection.bias = _array(model.output_bias)
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
    stage.write_file(folder / SOURCE, translator.source.serialized_model_proto())
    stage.write_file(folder / TARGET, translator.target.serialized_model_proto())


def _copy_attention(theirs: Any, ours: MultiHeadAttention, heads: int) -> None:
    """Copy the projections of a layer, padded to a number of heads."""
    missing = (heads - len(ours.heads)) * ours.head_width
    groups = [["query", "key", "value"]] if ours.kind != "cross" else [["query"], ["key", "value"]]
    for linear, names in zip(theirs.linear, groups, strict=False):
        rows = [pad(getattr(ours, name), (0, 0, 0, missing)) for name in names]
        linear.weight = _array(torch.cat(rows))
        if ours.query_bias is not None:
            biases = [pad(getattr(ours, f"{name}_bias"), (0, missing)) for name in names]
            linear.bias = _array(torch.cat(biases))
    theirs.linear[-1].weight = _array(pad(ours.output, (0, missing)))
    if ours.output_bias is not None:
        theirs.linear[-1].bias = _array(ours.output_bias)


def _copy_norm(theirs: Any, ours: nn.Module) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _copy_linear(theirs: Any, ours: nn.Linear) -> None:
    theirs.weight, theirs.bias = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> np.ndarray:
    """A copy, since quantisation scales arrays in place."""
    return tensor.detach().float().numpy().copy()


def write_folder(model: Transformer, folder: Path, *, beam: int) -> None:
    """Write a model as `save_pretrained` would, without its tokenisers, to a folder that exists.

    Pre-norm models become M2M100, post-norm ones MarianMT; removed heads become heads of zeros.
    `beam` is for `generate`. A `UserError` for models that were not imported: no format of
    transformers has their positions.
    """
    a, tokens = model.architecture, model.architecture.tokens
    if not a.post_norm and a.position_start != tokens.pad + 1:
        said = "transformers cannot hold the positions of models trained here"
        raise stage.UserError(f"{said}; export this one to ctranslate2")
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
        config["decoder_vocab_size"] = a.target_vocabulary
        config["share_encoder_decoder_embeddings"] = a.tied == "all"
        config["forced_eos_token_id"] = tokens.eos
        generation["bad_words_ids"] = [[tokens.pad]]
    if tokens.target_tags:
        generation["forced_bos_token_id"] = tokens.target_tags[0]
    stage.write_json(folder / CONFIG, config)
    stage.write_json(folder / "generation_config.json", generation)
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
            dense = dense if matrix == "output" else dense.T.contiguous()
            tensors[their_name(prefix + matrix)] = dense
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


def _readme(translator: Translator, *, to: str, quantization: str) -> str:
    card, a = translator.card, translator.model.architecture
    source_tags = [translator.source.id_to_piece(number) for number in a.tokens.source_tags]
    target_tags = [translator.target.id_to_piece(number) for number in a.tokens.target_tags]
    pair = {"source": card.source_language, "target": card.target_language}
    languages = {side: without_region(language) for side, language in pair.items()}
    paper = card.preprocess == "paper"
    before = "".join(source_tags) if a.post_norm else ""  # other tokenisers add them
    engine, code = "Hugging Face transformers 5. Removed heads are zeros", HF_CODE
    if to == "ctranslate2":
        engine, code = f"CTranslate2 ({quantization})", CTRANSLATE2_CODE
    code = code.format(
        **card.decoding.model_dump(),
        apply=APPLY.format(**languages) if paper else "",
        before=f"{before!r} + " if before else "",
        tags=f"{source_tags} + " if source_tags else "",
        prefix=f", target_prefix=[{target_tags}]" if target_tags else "",
        skip=f"[{len(target_tags)}:]" if target_tags else "",
    )
    return WRITTEN.format(
        name=f"{card.model} of {card.corpus}",
        **pair,
        version=__version__,
        engine=engine,
        code=code,
        undo=UNDO.format(**languages) if paper else "translation",
    )
