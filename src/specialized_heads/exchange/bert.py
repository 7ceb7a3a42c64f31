"""Stage: read a BERT of another project with its vocabulary, to fine-tune it.

transformers reads the folder of a model with a classifier, for masked language modelling, or of the
encoder alone.
"""

import json
from pathlib import Path

from specialized_heads import stage
from specialized_heads.classification import wordpiece
from specialized_heads.exchange import reading
from specialized_heads.exchange.reading import CONFIG, TOKENIZER, TOKENIZER_CONFIG
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import network, save, set_weights
from specialized_heads.stage import UserError

VOCABULARY = "vocab.txt"
WORDS = "embeddings.word_embeddings.weight"
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
POOLER, TRANSFORM = (
    (r"^transform\.", "bert.pooler.dense."),
    (r"^transform\.", "cls.predictions.transform.dense."),
)
# the fields of `Cleaning` in transformers
CLEANED = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
# What tokenizer.json may say of a BERT.
EXPECTED = {
    "model": {
        "type": "WordPiece",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    },
    "normalizer": {"type": "BertNormalizer", "clean_text": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
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
    config = reading.read_config(folder, ("bert",))
    settings, path = {}, folder / VOCABULARY
    if (folder / TOKENIZER).exists():
        path = folder / TOKENIZER
        settings = reading.read(path, _normaliser, "the tokeniser of a BERT")
    reading.read(
        path, lambda path: path, "text in UTF-8", missing="fetch the tokeniser of this model"
    )
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
    if added := [
        token for token in tokenizer.added_tokens_encoder if token not in wordpiece.SPECIAL
    ]:
        raise UserError(
            f"{folder}: its tokeniser adds {added[0]!r} for text, which is not supported"
        )
    capitals = [
        token for token in tokens if token not in wordpiece.SPECIAL and token != token.lower()
    ]
    if capitals and "do_lower_case" not in settings:
        said = (
            f"no file says whether text is put into lower case, but the vocabulary has capitals "
            f"({capitals[0]!r})"
        )
        raise UserError(
            f'{path}: {said}; write {{"do_lower_case": false}} (or true) to {TOKENIZER_CONFIG} '
            f"beside it"
        )
    return tokens, wordpiece.Cleaning(
        *(backend["normalizer"][name] for name in wordpiece.Cleaning._fields)
    )


def _normaliser(path: Path) -> dict[str, bool | None]:
    """What tokenizer.json says about case, accents and Chinese; transformers reads it in
    tokenizer_config.json alone."""
    stored = reading.read_object(path)
    normalizer = stored.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    stored["normalizer"] = next(
        (part for part in parts if part.get("type") == "BertNormalizer"), normalizer
    )
    for part, expected in EXPECTED.items():
        for key, value in expected.items():
            if (found := (stored[part] or {}).get(key, value if key != "type" else None)) != value:
                raise UserError(f"{path}: {part} has {key} {found!r}; only {value!r} is supported")
    return {
        theirs: stored["normalizer"][ours]
        for ours, theirs in zip(wordpiece.Cleaning._fields, CLEANED, strict=True)
        if stored["normalizer"].get(ours) is not None
    }


def load_bert(folder: Path, *, vocabulary: wordpiece.Vocabulary) -> Bert:
    """Read a model from a folder as `save_pretrained` writes it or the hub serves it.

    The model is to be fine-tuned: it has a new classifier above the pooler, or without a pooler is
    the masked language model. A `UserError` if a file is missing or damaged, or the weights do not
    fit the configuration or are pickled.
    """
    config = reading.read_config(folder, ("bert",))
    path = folder / CONFIG
    if config.is_decoder:
        raise UserError(f"{path}: is_decoder is true; classification needs an encoder")
    if config.hidden_act not in ("gelu", "relu"):
        raise UserError(
            f"{path}: hidden_act {config.hidden_act!r} is not supported, only 'gelu' or 'relu'"
        )
    if getattr(config, "position_embedding_type", "absolute") != "absolute":
        raise UserError(
            f"{path}: position_embedding_type {config.position_embedding_type!r} is not supported"
        )
    if any(getattr(config, "pruned_heads", None) or {}):
        raise UserError(
            f"{path}: has pruned_heads, which transformers no longer reads; use the whole model"
        )
    if config.vocab_size < vocabulary.size:
        raise UserError(
            f"{folder}: {vocabulary.size} tokens for {config.vocab_size} embeddings; fetch the "
            f"tokeniser"
        )
    stored = reading.read_headers(folder)
    pooled = any(name.endswith("pooler.dense.weight") for name in stored)
    auto, missing = ("AutoModel", "(?!)") if pooled else ("AutoModelForMaskedLM", r"^cls\.")
    layers = {"encoder.layer.": config.num_hidden_layers}
    theirs = reading.read_model(folder, config, auto, layers=layers, optional=missing)
    state = theirs.state_dict()
    embedding, output = (
        state.get(name) for name in (f"bert.{WORDS}", "cls.predictions.decoder.weight")
    )
    if not pooled and output.data_ptr() != embedding.data_ptr():
        said = f"cls.predictions.decoder.weight differs from bert.{WORDS}, which is not supported"
        raise UserError(f"{folder}: {said}; use another model")
    heads = config.num_attention_heads
    architecture = BertArchitecture.full(
        layers=config.num_hidden_layers,
        heads=heads,
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
    model = network(architecture)
    initialise(model, seed=0)
    tensors = {}
    for name, _ in model.named_parameters():
        name_there = reading.translated(name, patterns=(*NAMES, POOLER if pooled else TRANSFORM))
        name_there = name_there.removeprefix("bert.") if pooled else name_there
        drawn = name.startswith("classifier") or name_there in theirs.drawn
        if not drawn:
            tensors[name] = state[name_there]
    set_weights(model, tensors)
    return model.eval()


@stage.command("output", "vocabulary", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    folder = Path(settings.folder)
    wordpiece.write_vocabulary(files.vocabulary, *read_vocabulary(folder))
    model = load_bert(folder, vocabulary=wordpiece.read_vocabulary(files.vocabulary))
    a = model.architecture
    if settings.longest > a.positions:
        raise stage.UserError(
            f"classification.max_length: {settings.longest} subwords, but {folder} has "
            f"{a.positions} positions; set fewer"
        )
    save(model, files.output, training={"imported": folder.name})
    stage.log.info("%s: %d layers, %d heads", folder, len(a.encoder), sum(map(len, a.encoder)))
