"""BERT in the folder format of Hugging Face transformers: with a classifier, for masked language modelling, or the encoder alone.

As in `exchange.huggingface`, only `config.json`, safetensors and the tokeniser's tables are read, by names; nothing is executed,
and transformers itself is not needed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, ValidationError
from torch import Tensor

from specialized_heads.corpus import wordpiece
from specialized_heads.exchange import huggingface
from specialized_heads.exchange.huggingface import CONFIG
from specialized_heads.exchange.tokenisers import TOKENIZER, TOKENIZER_CONFIG
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import assemble
from specialized_heads.stage import Section, UserError, first_line, read_json

VOCABULARY = "vocab.txt"
Size = Annotated[int, Field(ge=1, le=10**7)]
# Our names and theirs, below `bert.`; those of a layer's parts, below `encoder.layer.<n>.`; those of the two heads.
EMBEDDINGS = {
    "word_embedding": "embeddings.word_embeddings.weight",
    "position_embedding": "embeddings.position_embeddings.weight",
    "segment_embedding": "embeddings.token_type_embeddings.weight",
    "embedding_norm": "embeddings.LayerNorm",
}
LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
POOLER = "bert.pooler.dense"
PREDICTION = {
    "transform": "cls.predictions.transform.dense",
    "transform_norm": "cls.predictions.transform.LayerNorm",
    "output_bias": "cls.predictions.bias",
}
CLASSES = (None, "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend")
OLD_NORMS = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


class Config(Section, extra="ignore"):
    """What determines the architecture in `config.json`; the defaults are those of transformers."""

    model_type: Literal["bert"]
    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Size
    num_attention_heads: Size
    intermediate_size: Size
    max_position_embeddings: Size = 512
    type_vocab_size: Size = 2
    hidden_act: Literal["gelu", "relu"] = "gelu"
    layer_norm_eps: float = Field(1e-12, gt=0, le=1)
    pad_token_id: int = Field(0, ge=0)
    id2label: dict[int, str] = {0: "LABEL_0", 1: "LABEL_1"}
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: bool = False


def read_config(folder: Path) -> Config:
    """Read the description of a model.

    Raises:
        UserError: it is missing, or describes another kind of model.
    """
    path, values = folder / CONFIG, read_json(folder / CONFIG)
    kind = values.get("model_type") if isinstance(values, dict) else None
    if kind != "bert":
        raise UserError(f"{path}: model_type is {kind!r}; classification needs a model of type bert")
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{path}: {first_line(error)}; correct the file, or fetch it again") from None
    if config.is_decoder:
        raise UserError(f"{path}: is_decoder is true; classification needs an encoder")
    if config.hidden_size % config.num_attention_heads:
        raise UserError(f"{path}: {config.num_attention_heads} heads do not divide the width {config.hidden_size}")
    return config


def read_vocabulary(folder: Path) -> tuple[list[str], wordpiece.Cleaning]:
    """The tokens in the order of their ids, and what is done to text first.

    As in transformers, `tokenizer_config.json` precedes the normaliser of `tokenizer.json`; the rest are the defaults.

    Raises:
        UserError: a file is missing or damaged, or the tokeniser is no WordPiece of BERT.
    """
    fast, settings = folder / TOKENIZER, folder / TOKENIZER_CONFIG
    tokens, stored = _read_tokenizer(fast) if fast.is_file() else (None, {})
    given = read_json(settings) if settings.is_file() else {}
    if not isinstance(given, dict):
        raise UserError(f"{settings}: not the settings of a tokeniser; fetch it again")
    if (kind := given.get("tokenizer_class")) not in CLASSES:
        raise UserError(f"{settings}: its tokeniser is {kind}; a BertTokenizer is needed")
    names = dict(
        zip(wordpiece.Cleaning._fields, ("do_lower_case", "strip_accents", "tokenize_chinese_chars"), strict=True)
    )
    stored |= {ours: given[theirs] for ours, theirs in names.items() if given.get(theirs) is not None}
    for name, value in stored.items():
        if value not in (True, False, None):
            raise UserError(f"{folder}: {names[name]} of its tokeniser is {value!r}; set it to true or false")
    if (path := folder / VOCABULARY).is_file():
        try:
            tokens = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise UserError(f"{path}: not text in UTF-8; fetch it again") from None
    if tokens is None:
        raise UserError(f"{fast}: no such file, and no {VOCABULARY} beside it; fetch the tokeniser of this model")
    return tokens, wordpiece.Cleaning(**stored)


def _read_tokenizer(path: Path) -> tuple[list[str], dict[str, Any]]:
    """The tokens of `tokenizer.json`, and what its normaliser says about `wordpiece.Cleaning`."""
    try:
        stored = read_json(path)
        kind, ids = stored["model"].get("type", "WordPiece"), stored["model"]["vocab"]
        if kind != "WordPiece":
            raise UserError(f"{path}: its model is {kind}; a BERT with WordPiece is needed")
        normaliser, splitter = stored.get("normalizer") or {}, stored.get("pre_tokenizer") or {}
        bert = [part for part in normaliser.get("normalizers", [normaliser]) if part.get("type") == "BertNormalizer"]
        if len(bert) != 1 or splitter.get("type") != "BertPreTokenizer":
            raise UserError(
                f"{path}: its normaliser is {normaliser.get('type')} and its pre-tokeniser {splitter.get('type')}; those of a "
                "BERT are needed, BertNormalizer and BertPreTokenizer"
            )
        tokens = sorted(ids, key=ids.__getitem__)
        numbered = [ids[token] for token in tokens] == list(range(len(tokens)))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"{path}: not the tokeniser of a BERT; fetch it again") from None
    if not numbered:
        raise UserError(f"{path}: its ids are not 0, 1, 2, ...; fetch it again")
    return tokens, {name: bert[0][name] for name in wordpiece.Cleaning._fields if bert[0].get(name) is not None}


def load_bert(folder: Path, *, vocabulary: wordpiece.Vocabulary, labels: Sequence[str] = ()) -> Bert:
    """Read a model from a folder as `save_pretrained` writes it or the hub serves it.

    `labels`: of a task, whose classifier the folder must hold; none: the encoder is wanted.

    Returns:
        with `labels` the classifier, its rows in their order. Otherwise a model to fine-tune: with a classifier that is not in
        use above the pooler, or without a pooler the masked language model.

    Raises:
        UserError: a file is missing or damaged, the weights do not fit the configuration, or they are pickled.
    """
    config = read_config(folder)
    path, stored = huggingface.read_weights(folder)
    prefix = "bert." if any(name.startswith("bert.") for name in stored) else ""
    if labels and "classifier.weight" not in stored:
        raise UserError(
            f"{path}: there is no tensor classifier.weight; leave out the task's model to fine-tune it here"
        )
    pooled = f"{prefix}pooler.dense.weight" in stored
    if config.vocab_size < vocabulary.size:
        raise UserError(
            f"{folder}: {vocabulary.size} tokens for {config.vocab_size} embeddings; fetch the tokeniser again"
        )
    architecture = BertArchitecture.full(
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        width=config.hidden_size,
        feed_forward=config.intermediate_size,
        vocabulary=config.vocab_size,
        positions=config.max_position_embeddings,
        segments=config.type_vocab_size,
        labels=len(labels) or int(pooled),
        activation=config.hidden_act,
        norm_epsilon=config.layer_norm_eps,
        pad=vocabulary.special.pad,
        separator=vocabulary.special.eos,
        mask=vocabulary.mask,
    )
    fresh = Bert(architecture, dropout=0.0)
    initialise(fresh, seed=0)
    tensors = {}
    for name, weight in fresh.named_parameters():
        found = _find(stored, their_name(name, classifies=bool(architecture.labels)), prefix)
        optional = not labels and name.startswith(("classifier", "transform", "output_bias"))
        if found is None and not optional:
            raise UserError(f"{path}: there is no tensor for {name}; the weights do not fit {CONFIG}")
        # The classifier of a model that is to be fine-tuned is replaced.
        tensors[name] = weight.detach() if found is None or (name.startswith("classifier") and not labels) else found
    if labels:
        for part in ("weight", "bias"):
            if (rows := len(tensors[f"classifier.{part}"])) != len(config.id2label):
                raise UserError(
                    f"{path}: classifier.{part} has {rows} rows, but {CONFIG} names {len(config.id2label)} labels"
                )
        order = _order(config, labels, where=folder / CONFIG)
        tensors |= {f"classifier.{part}": tensors[f"classifier.{part}"][order] for part in ("weight", "bias")}
    tensors = {name: tensor.float().contiguous() for name, tensor in tensors.items()}
    return assemble(architecture, tensors, weights=path, like=folder / CONFIG).eval()


def their_name(name: str, *, classifies: bool) -> str:
    """Translate the name of a parameter, such as `encoder.0.attention.query_bias`."""
    if name.startswith("classifier"):
        return name
    if name.startswith("encoder."):
        _, layer, rest = name.split(".", 2)
        part = "bias" if rest.endswith("bias") else "weight"
        module = rest.removesuffix("_bias").removesuffix(f".{part}")
        return f"bert.encoder.layer.{layer}.{LAYER[module]}.{part}"
    module, _, part = name.partition(".")
    if module in EMBEDDINGS:
        return f"bert.{EMBEDDINGS[module]}" + (f".{part}" if part else "")
    if classifies:
        return f"{POOLER}.{part}"
    return PREDICTION[module] + (f".{part}" if part else "")


def _find(stored: Mapping[str, Tensor], name: str, prefix: str) -> Tensor | None:
    """A tensor under its name, the one without `bert.`, or the one that old versions gave to LayerNorm."""
    name = name if prefix else name.removeprefix("bert.")
    old = name
    for new, before in OLD_NORMS.items():
        old = old.replace(new, before)
    found = stored.get(name, stored.get(old))
    return None if found is None else torch.as_tensor(found)


def _order(config: Config, labels: Sequence[str], *, where: Path) -> list[int]:
    """The rows of a classifier in the order of our labels; names such as LABEL_0 stand for our order of two labels."""
    theirs = [config.id2label[number].lower() for number in sorted(config.id2label)]
    if len(theirs) != len(labels):
        raise UserError(f"{where}: {len(theirs)} labels, but the task has {len(labels)}: {', '.join(labels)}")
    if all(name == f"label_{number}" for number, name in enumerate(theirs)):
        if len(labels) > 2:
            raise UserError(
                f"{where}: id2label has no names for its {len(labels)} labels; write them there, in the order of the model: "
                f"{', '.join(labels)} in any order"
            )
        return list(range(len(labels)))
    if set(theirs) != set(labels):
        raise UserError(f"{where}: its labels {', '.join(theirs)} are not those of the task: {', '.join(labels)}")
    return [theirs.index(label) for label in labels]
