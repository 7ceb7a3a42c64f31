"""Models of Hugging Face transformers as models of this project: M2M100 (NLLB too), MarianMT, and
BERT with its vocabulary. Stage `import_bert`.

M2M100 and MarianMT are variants of this project's Transformer: M2M100 has pre-norm sub-layers and
ReLU, MarianMT post-norm ones and mostly swish; both have biases in attention. A BERT may have a
classifier on its encoder, a masked-language-model head, or neither; the pipeline fine-tunes it.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

from specialized_heads import stage
from specialized_heads.classification import wordpiece
from specialized_heads.corpus.tokens import OURS, SpecialTokens
from specialized_heads.exchange import reading
from specialized_heads.exchange.reading import CONFIG, TOKENIZER, TOKENIZER_CONFIG, WORDPIECE
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import network, save, set_weights
from specialized_heads.model.transformer import ACTIVATIONS, Transformer
from specialized_heads.stage import UserError

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


def shared(config: Any) -> bool:
    """Whether both sides share one vocabulary; in M2M100 they always do."""
    return config.model_type != "marian" or config.share_encoder_decoder_embeddings


def target_vocabulary(config: Any) -> int:
    return config.vocab_size if shared(config) else config.decoder_vocab_size or config.vocab_size


def read_folder(folder: Path) -> Any:
    """A model of transformers; a `UserError` if its files do not fit or describe one of another
    kind."""
    config = reading.read_config(folder, ("marian", "m2m_100"))
    path, kind = folder / CONFIG, config.activation_function
    for key in ("attention_heads", "ffn_dim"):
        ours, other = getattr(config, f"encoder_{key}"), getattr(config, f"decoder_{key}")
        if ours != other:
            said = f"encoder_{key} is {ours} and decoder_{key} {other}; they must be equal"
            raise UserError(f"{path}: {said}")
    if kind not in (*ACTIVATIONS, "silu"):
        raise UserError(f"{path}: activation_function {kind!r} is not supported")
    layers = {"encoder.layers.": config.encoder_layers, "decoder.layers.": config.decoder_layers}
    model = reading.read_model(
        folder, config, "AutoModelForSeq2SeqLM", layers=layers, optional="final_logits_bias"
    )
    if config.decoder_start_token_id is None:
        config.decoder_start_token_id = model.generation_config.decoder_start_token_id
    special = [getattr(config, f"{name}_token_id") for name in ("pad", "eos", "decoder_start")]
    known = range(min(config.vocab_size, target_vocabulary(config)))
    if not all(number in known for number in special):
        said = f"special tokens have the ids {special}, beyond the vocabulary"
        raise UserError(f"{path}: {said}; fetch the file again")
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


# BERT.

WORDS, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
BERT_NAMES = (  # as `NAMES`
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
# The layer before the classifier, and that before the output matrix of the masked language model.
POOLER = (r"^transform\.", "bert.pooler.dense.")
TRANSFORM = (r"^transform\.", "cls.predictions.transform.dense.")
# the fields of `Cleaning` in transformers
CLEANED = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
# What tokenizer.json may say of a BERT, beside the type of each part.
TYPES = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
EXPECTED = {
    "model": {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    "normalizer": {"clean_text": True},
}


class Settings(stage.Section):
    folder: str
    longest: int  # subwords of an input


def read_vocabulary(folder: Path) -> tuple[list[str], wordpiece.Cleaning]:
    """The tokens in the order of their ids, and what is done to text first, as transformers reads
    them.

    A `UserError` if a file is missing or damaged, the tokeniser is no WordPiece of BERT, or no file
    says whether text is put into lower case although the vocabulary has capitals.
    """
    config, settings = reading.read_config(folder, ("bert",)), {}
    path = folder / (TOKENIZER if (folder / TOKENIZER).exists() else WORDPIECE)
    reading.read(path, "text in UTF-8", missing="fetch the tokeniser of this model")
    if path.name == TOKENIZER:
        settings = reading.read(path, "the tokeniser of a BERT", _normaliser)
    if (folder / TOKENIZER_CONFIG).exists():
        stored = reading.read_object(folder / TOKENIZER_CONFIG)
        settings |= {key: stored[key] for key in CLEANED if stored.get(key) is not None}
    tokenizer = reading.read_tokenizer(folder, config=config, **settings)
    if (kind := type(tokenizer).__name__) not in ("BertTokenizer", "TokenizersBackend"):
        raise UserError(f"{folder}: its tokeniser is a {kind}; only that of BERT is supported")
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    places = {number: token for token, number in backend["model"]["vocab"].items()}
    tokens = [places.get(number, "") for number in range(max(places, default=-1) + 1)]
    while tokens and not tokens[-1]:  # blank lines
        del tokens[-1]
    if absent := [token for token in wordpiece.SPECIAL if token not in tokens]:
        raise UserError(f"{path}: there is no token {absent[0]}; fetch the vocabulary of a BERT")
    if added := [each for each in tokenizer.added_tokens_encoder if each not in wordpiece.SPECIAL]:
        said = f"its tokeniser adds {added[0]!r} for text, which is not supported"
        raise UserError(f"{folder}: {said}")
    ordinary = [token for token in tokens if token not in wordpiece.SPECIAL]
    capitals = [token for token in ordinary if token != token.lower()]
    if capitals and "do_lower_case" not in settings:
        said = "no file says whether text is put into lower case, but the vocabulary has capitals"
        remedy = f'write {{"do_lower_case": false}} (or true) to {TOKENIZER_CONFIG} beside it'
        raise UserError(f"{path}: {said} ({capitals[0]!r}); {remedy}")
    normalizer = backend["normalizer"]
    return tokens, wordpiece.Cleaning(*(normalizer[name] for name in wordpiece.Cleaning._fields))


def _normaliser(path: Path) -> dict[str, bool]:
    """What tokenizer.json says about case, accents and Chinese; transformers reads it in
    tokenizer_config.json alone."""
    stored = reading.read_object(path)
    normalizer = stored.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    of_bert = [part for part in parts if part.get("type") == TYPES["normalizer"]]
    stored["normalizer"] = (of_bert or [normalizer])[0]
    for part, kind in TYPES.items():
        found = stored[part] or {}
        for key, value in ({"type": kind} | EXPECTED.get(part, {})).items():
            if found.get(key, None if key == "type" else value) != value:
                said = f"{part} has {key} {found.get(key)!r}; only {value!r} is supported"
                raise UserError(f"{path}: {said}")
    pairs = zip(CLEANED, map(stored["normalizer"].get, wordpiece.Cleaning._fields), strict=True)
    return {key: value for key, value in pairs if value is not None}


def load_bert(folder: Path, *, vocabulary: wordpiece.Vocabulary) -> Bert:
    """Read a model from a folder as `save_pretrained` writes it or the hub serves it.

    The model is to be fine-tuned: it has a new classifier above the pooler, or without a pooler is
    the masked language model. A `UserError` if a file is missing or damaged, or the weights do not
    fit the configuration or are pickled.
    """
    config = reading.read_config(folder, ("bert",))
    positions = getattr(config, "position_embedding_type", "absolute")
    for refused, said in (
        (config.is_decoder, "is_decoder is true; classification needs an encoder"),
        (
            config.hidden_act not in ("gelu", "relu"),
            f"hidden_act {config.hidden_act!r} is not supported, only 'gelu' or 'relu'",
        ),
        (positions != "absolute", f"position_embedding_type {positions!r} is not supported"),
        (
            any(getattr(config, "pruned_heads", None) or {}),
            "has pruned_heads, which transformers no longer reads; use the whole model",
        ),
        (
            config.vocab_size < vocabulary.size,
            f"{config.vocab_size} embeddings for {vocabulary.size} tokens; fetch the tokeniser",
        ),
    ):
        if refused:
            raise UserError(f"{folder / CONFIG}: {said}")
    pooled = any(name.endswith("pooler.dense.weight") for name in reading.read_headers(folder))
    auto, missing = ("AutoModel", "(?!)") if pooled else ("AutoModelForMaskedLM", r"^cls\.")
    layers = {"encoder.layer.": config.num_hidden_layers}
    theirs = reading.read_model(folder, config, auto, layers=layers, optional=missing)
    state = theirs.state_dict()
    if not pooled and state[DECODER].data_ptr() != state[WORDS].data_ptr():
        said = f"{DECODER} differs from {WORDS}, which is not supported"
        raise UserError(f"{folder}: {said}; use another model")
    model = network(
        BertArchitecture.full(
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            width=config.hidden_size,
            feed_forward=config.intermediate_size,
            vocabulary=config.vocab_size,
            positions=config.max_position_embeddings,
            segments=config.type_vocab_size,
            labels=int(pooled),
            activation=config.hidden_act,
            norm_epsilon=config.layer_norm_eps,
            pad=vocabulary.special.pad,
            separator=vocabulary.special.eos,
            mask=vocabulary.mask,
        )
    )
    initialise(model, seed=0)
    tensors, patterns = {}, (*BERT_NAMES, POOLER if pooled else TRANSFORM)
    for name, _ in model.named_parameters():
        other = reading.translated(name, patterns=patterns)
        other = other.removeprefix("bert.") if pooled else other
        if not name.startswith("classifier") and other not in theirs.drawn:
            tensors[name] = state[other]
    set_weights(model, tensors)
    return model.eval()


@stage.command("output", "vocabulary", settings=Settings)
def import_bert(files: stage.Files, settings: Settings) -> None:
    folder = Path(settings.folder)
    wordpiece.write_vocabulary(files.vocabulary, *read_vocabulary(folder))
    model = load_bert(folder, vocabulary=wordpiece.read_vocabulary(files.vocabulary))
    a = model.architecture
    if settings.longest > a.positions:
        said = f"{settings.longest} subwords, but {folder} has {a.positions} positions; set fewer"
        raise stage.UserError(f"classification.max_length: {said}")
    save(model, files.output, training={"imported": folder.name})
    stage.log.info("%s: %d layers, %d heads", folder, len(a.encoder), sum(map(len, a.encoder)))


stage.no_stage(__name__)
