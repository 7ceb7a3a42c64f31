"""BERT in folders of Hugging Face transformers: with a classifier, for masked language modelling, or the encoder alone."""

from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field

from specialized_heads.classification import wordpiece
from specialized_heads.exchange import reading
from specialized_heads.exchange.reading import CONFIG, Count, Size, Vocabulary, Width
from specialized_heads.exchange.tokenisers import FAST, TOKENIZER, added_tokens, check_settings, read_settings
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import network, set_weights, shapes
from specialized_heads.stage import Section, UserError

VOCABULARY = "vocab.txt"
# From our names to theirs: patterns that are replaced one after the other.
NAMES = (
    (r"^(word|position)_embedding$", r"bert.embeddings.\1_embeddings.weight"),
    (r"^segment_embedding$", "bert.embeddings.token_type_embeddings.weight"),
    (r"^embedding_norm", "bert.embeddings.LayerNorm"),
    (r"^encoder\.", "bert.encoder.layer."),
    (r"attention\.(query|key|value)(?=_bias$|$)", r"attention.self.\1"),
    (r"attention\.output(?=_bias$|$)", "attention.output.dense"),
    (r"(query|key|value|dense)_bias$", r"\1.bias"),
    (r"(query|key|value|dense)$", r"\1.weight"),
    ("attention_norm", "attention.output.LayerNorm"),
    (r"feed_forward\.expand", "intermediate.dense"),
    (r"feed_forward\.contract", "output.dense"),
    ("feed_forward_norm", "output.LayerNorm"),
    ("^transform_norm", "cls.predictions.transform.LayerNorm"),
    ("^output_bias$", "cls.predictions.bias"),
)
# What stands before the classifier, and before the output matrix of the masked language model.
POOLER, TRANSFORM = (r"^transform\.", "bert.pooler.dense."), (r"^transform\.", "cls.predictions.transform.dense.")
CLEANED = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
CLEANING = dict(zip(wordpiece.Cleaning._fields, CLEANED, strict=True))
ACCEPTED = {
    "tokenizer_class": ("BertTokenizer", "BertTokenizerFast", *FAST),
    "model": ("WordPiece",),
    "continuing_subword_prefix": ("##",),
    "max_input_chars_per_word": (100,),
    "normalizer": ("BertNormalizer",),
    "clean_text": (True,),
    "pre_tokenizer": ("BertPreTokenizer",),
    **dict.fromkeys(CLEANED, (True, False)),
    **{f"{name}_token": (f"[{name.upper()}]",) for name in ("pad", "unk", "cls", "sep", "mask")},
}
TIED = {"word_embedding": ["cls.predictions.decoder.weight"], "output_bias": ["cls.predictions.decoder.bias"]}
OLD_NORMS = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


class Config(Section, extra="ignore"):
    """What determines the architecture in `config.json`; the defaults are those of transformers."""

    model_type: Literal["bert"]
    vocab_size: Vocabulary
    hidden_size: Width
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Size
    max_position_embeddings: Size = 512
    type_vocab_size: Size = 2
    hidden_act: Literal["gelu", "relu"] = "gelu"
    layer_norm_eps: float = Field(1e-12, gt=0, le=1)
    pad_token_id: int = Field(0, ge=0)
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: bool = False
    pruned_heads: dict[int, set[int]] = {}  # of each layer, from 0


def read_config(folder: Path) -> Config:
    """Read the description of a model; a `UserError` if it is missing, or describes another kind of model."""
    path = folder / CONFIG
    config = reading.validated(reading.read_json(path, dict, "the configuration of a model"), Config, path=path)
    if config.is_decoder:
        raise UserError(f"{path}: is_decoder is true; classification needs an encoder")
    if config.hidden_size % config.num_attention_heads:
        raise UserError(f"{path}: {config.num_attention_heads} heads do not divide the width {config.hidden_size}")
    return config


def read_vocabulary(folder: Path) -> tuple[list[str], wordpiece.Cleaning]:
    """The tokens in the order of their ids, and what is done to text first.

    As in transformers, `tokenizer_config.json` precedes the normaliser of `tokenizer.json`; the rest are the defaults. A
    `UserError` if a file is missing or damaged, or the tokeniser is no WordPiece of BERT.
    """
    path = folder / TOKENIZER
    tokens, settings = reading.read_json(path, _fast, "the tokeniser of a BERT", default=([], {}))
    settings |= {key: value for key, value in read_settings(folder).items() if value is not None}
    check_settings(folder, settings, ACCEPTED)
    if not tokens:
        path, missing = folder / VOCABULARY, "fetch the tokeniser of this model"
        text = reading.read(path, lambda path: path.read_text(encoding="utf-8"), "text in UTF-8", missing=missing)
        tokens = text.split("\n")
    while tokens and not tokens[-1]:  # blank lines
        del tokens[-1]
    ids = {token: number for number, token in enumerate(tokens)}
    if absent := [token for token in wordpiece.SPECIAL if token not in ids]:
        raise UserError(f"{path}: there is no token {absent[0]}; fetch the vocabulary of a BERT")
    added_tokens(folder, ids, control=wordpiece.SPECIAL)
    return tokens, wordpiece.Cleaning(**{ours: settings[key] for ours, key in CLEANING.items() if key in settings})


def _fast(stored: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The tokens of `tokenizer.json`, and what it says about `ACCEPTED`."""
    kinds = {key: stored.get(key) or {"type": "none"} for key in ("model", "normalizer", "pre_tokenizer")}
    parts = kinds["normalizer"].get("normalizers", [kinds["normalizer"]])
    kinds["normalizer"] = next((part for part in parts if part["type"] == "BertNormalizer"), kinds["normalizer"])
    settings = kinds["model"] | kinds["normalizer"] | {key: kind.get("type") for key, kind in kinds.items()}
    settings = {CLEANING.get(key, key): value for key, value in settings.items() if value is not None}
    if settings.get("model", "WordPiece") != "WordPiece":  # whatever its table looks like
        return [], settings
    tokens = {number: token for token, number in kinds["model"]["vocab"].items()}
    if len(tokens) < len(kinds["model"]["vocab"]) or not 0 <= min(tokens) <= max(tokens) < 10**7:
        raise ValueError("two tokens have the same id, or one is no id")
    return [tokens.get(number, "") for number in range(max(tokens) + 1)], settings


def load_bert(folder: Path, *, vocabulary: wordpiece.Vocabulary) -> Bert:
    """Read a model from a folder as `save_pretrained` writes it or the hub serves it.

    The model is to be fine-tuned: it has a new classifier above the pooler, or without a pooler is the masked language model. A
    `UserError` if a file is missing or damaged, or the weights do not fit the configuration or are pickled.
    """
    config = read_config(folder)
    stored = reading.read_headers(folder)
    prefix = "bert." if any(name.startswith("bert.") for name in stored) else ""
    reading.refuse_more(folder, stored, f"{prefix}encoder.layer.", layers=config.num_hidden_layers)
    if config.vocab_size < vocabulary.size:
        raise UserError(f"{folder}: {vocabulary.size} tokens for {config.vocab_size} embeddings; fetch the tokeniser")
    layers, heads, pruned = range(config.num_hidden_layers), range(config.num_attention_heads), config.pruned_heads
    architecture = BertArchitecture(
        encoder=tuple(tuple(head for head in heads if head not in pruned.get(layer, ())) for layer in layers),
        head_width=config.hidden_size // config.num_attention_heads,
        width=config.hidden_size,
        feed_forward=config.intermediate_size,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        segments=config.type_vocab_size,
        labels=int(f"{prefix}pooler.dense.weight" in stored),
        activation=config.hidden_act,
        norm_epsilon=config.layer_norm_eps,
        pad=vocabulary.special.pad,
        separator=vocabulary.special.eos,
        mask=vocabulary.mask,
    )
    names = {}
    for name, shape in shapes(architecture).items():
        if name.startswith("classifier"):  # replaced when the model is fine-tuned
            continue
        theirs = reading.translated(name, patterns=(*NAMES, POOLER if architecture.labels else TRANSFORM))
        theirs = theirs if prefix else theirs.removeprefix("bert.")
        candidates = [theirs, *(theirs.replace(new, old) for new, old in OLD_NORMS.items())]
        candidates += [] if architecture.labels else TIED.get(name, [])
        optional = name.startswith(("transform", "output_bias"))
        if not optional or any(each in stored for each in candidates):
            names[name] = reading.find(folder, stored, candidates, shape)
    weights = reading.read_weights(stored, {name for held in names.values() for name in held})
    for first, *others in names.values():
        if different := [other for other in others if not torch.equal(weights[first], weights[other])]:
            raise UserError(f"{folder}: {different[0]} differs from {first}, which is not supported; use another model")
    model = network(architecture)
    initialise(model, seed=0)
    set_weights(model, {name: weights[held[0]] for name, held in names.items()})
    return model.eval()
