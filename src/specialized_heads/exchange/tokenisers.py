"""Tokenisers of published models as SentencePiece models whose ids are those of the embeddings.

Such models come with a SentencePiece file and a table of ids in another order, which transformers
reads. Here the pieces are reordered by id, so the SentencePiece file alone is enough. Pieces
without an id follow at the end: the tokeniser may choose them, and the model reads the unknown
token (`SpecialTokens.known`). Tokens that the SentencePiece file lacks, such as those of the other
side, become unused pieces: they are decoded, and a text has them only where its characters are
unknown (`corpus.tokens.encode_ids`).
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

from sentencepiece.sentencepiece_model_pb2 import ModelProto

from specialized_heads.corpus.tokens import SpecialTokens
from specialized_heads.exchange.huggingface import shared, target_vocabulary
from specialized_heads.exchange.reading import (
    CONFIG,
    MARIAN,
    SHARED,
    TARGET_VOCABULARY,
    TOKENIZER,
    TOKENIZER_CONFIG,
    VOCABULARY,
    library,
    read,
    read_object,
    read_tokenizer,
)
from specialized_heads.experiment.sections import Mode
from specialized_heads.stage import UserError, write_file, write_json

Piece = ModelProto.SentencePiece
TEXT = (Piece.NORMAL, Piece.USER_DEFINED, Piece.BYTE)
# tokens of M2M100, NLLB and MarianMT
LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|>>.+<<")
TAG = re.compile(rf"{LANGUAGE.pattern}|<.+>")  # "de" alone may be a piece of text
CONTROL = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}


class Tokenisers(NamedTuple):
    source: bytes  # a SentencePiece model
    target: bytes
    tokens: SpecialTokens
    preprocess: Mode = "none"  # of the text that they read


def read_tokenisers(
    folder: Path, config: Any, *, source_tag: str | None = None, target_tag: str | None = None
) -> Tokenisers:
    """Read the tokenisers of a model; a `UserError` if the ids do not fit the embeddings, or a tag
    is missing or unknown.

    `source_tag`: token before every source sentence, such as `eng_Latn`, `__en__` or `>>fra<<`,
    which MarianMT needs if it has several target languages; `target_tag`: token that every
    translation begins with. M2M100 and NLLB need both.
    """
    marian, separate = config.model_type == "marian", not shared(config)
    if marian and target_tag is not None:
        said = "a Marian model has a tag on its source alone; set source_tag, not target_tag"
        raise UserError(f"{folder}: {said}")
    for name in MARIAN if marian else (SHARED,):
        missing = "fetch it too"
        if not marian and (folder / TOKENIZER).is_file():
            missing = f"transformers 5 saves only {TOKENIZER}; copy it from the original model"
        read(folder / name, "a SentencePiece model", missing=missing)
    if marian and (path := folder / TOKENIZER_CONFIG).exists():
        stated = read_object(path).get("separate_vocabs")
        if stated not in (None, separate):
            other = f"share_encoder_decoder_embeddings {not separate} in {CONFIG}"
            said = f"separate_vocabs is {stated}, but {other}; fetch both from the same place"
            raise UserError(f"{path}: {said}")
    if separate:
        read(folder / TARGET_VOCABULARY, "a table from tokens to ids")
    options = {"separate_vocabs": separate} if marian else {}
    tokenizer = read_tokenizer(folder, config=config, **options)
    if marian:
        tables = [tokenizer.encoder, tokenizer.target_encoder if separate else tokenizer.encoder]
    elif hasattr(tokenizer, "lang_token_to_id"):  # M2M100
        tables = [tokenizer.encoder | tokenizer.lang_token_to_id] * 2
    else:
        tables = [tokenizer.get_vocab()] * 2
    _check(folder, tokenizer, tables, config, tags=(source_tag, target_tag))
    unknown = tables[0]["<unk>"]
    languages = len(list(filter(LANGUAGE.fullmatch, tables[0])))
    special = {config.pad_token_id, config.decoder_start_token_id, config.eos_token_id}
    added = tokenizer.added_tokens_encoder.items()
    models, of_sides = [], {}
    for side, ids, tag in zip(("source", "target"), tables, (source_tag, target_tag), strict=True):
        required = languages > 1 and side == "source" if marian else languages > 0
        of_sides[f"{side}_tags"] = _tag(folder, tag, ids, key=f"{side}_tag", required=required)
        tags = [token for token in ids if LANGUAGE.fullmatch(token)]
        control = special | {
            ids[token] for token in (*tags, source_tag, target_tag) if token in ids
        }
        control |= {number for token, number in added if ids.get(token) == number}
        size = config.vocab_size if side == "source" else target_vocabulary(config)
        path = folder / (f"{side}.spm" if marian else SHARED)
        model, number = renumber(path, ids, size=size, unknown=unknown, control=control)
        of_sides[f"{side}_size"] = size if number > size else 0
        models.append(model)
    start = config.decoder_start_token_id
    tokens = SpecialTokens(
        pad=config.pad_token_id, unknown=unknown, start=start, eos=config.eos_token_id, **of_sides
    )
    return Tokenisers(*models, tokens)


def _check(
    folder: Path, tokenizer: Any, tables: list[dict[str, int]], config: Any, *, tags: tuple
) -> None:
    """Raise a `UserError` if ids are not those of a SentencePiece model in another order, or not
    those of the model."""
    for name, ids in zip((VOCABULARY, TARGET_VOCABULARY), tables, strict=True):
        numbers = list(ids.values())
        if not all(type(n) is int and n >= 0 for n in numbers) or len({*numbers}) < len(numbers):
            said = "not a table from tokens to ids of their own; fetch it again"
            raise UserError(f"{folder / name}: {said}")
    source_ids, target_ids = tables
    special = {"unk_token": source_ids.get("<unk>"), "eos_token": config.eos_token_id}
    for name, number in special.items():
        token = getattr(tokenizer, name)
        if number is None or source_ids.get(token) != number:
            said = f"{name} {token!r}, which is not that of the model; fetch both"
            raise UserError(f"{folder}: its tokeniser has {said}")
    for token, number in source_ids.items():
        other = target_ids.get(token)
        if number in (config.pad_token_id, *special.values()) and other != number:
            said = f"token {token} has id {other}, but {number} in {VOCABULARY}"
            remedy = "special tokens need the same ids on both sides"
            raise UserError(f"{folder / TARGET_VOCABULARY}: {said}; {remedy}")
    for key, value in {"legacy_behaviour": False, "sp_model_kwargs": {}}.items():
        if (found := getattr(tokenizer, key, value)) != value:
            said = f"{key} {found!r}; only {value!r} is supported"
            raise UserError(f"{folder}: its tokeniser has {said}")
    named = {*CONTROL, *tags, *tokenizer.special_tokens_map.values()}
    added = [token for token in tokenizer.added_tokens_encoder if token not in named]
    if added := [token for token in added if not LANGUAGE.fullmatch(token)]:
        found = ", ".join(map(repr, added[:5]))
        said = f"adds {found} for text, which is not supported; use another model"
        raise UserError(f"{folder}: its tokeniser {said}")


def renumber(
    path: Path, ids: dict[str, int], *, size: int, unknown: int, control: set[int]
) -> tuple[bytes, int]:
    """A SentencePiece model with its pieces in the order of a table of ids, and their number; those
    from `size` on have no id.

    `size` is the number of embeddings; `unknown` and `control` are ids of the unknown token and of
    tokens that no text contains.
    """
    proto = ModelProto.FromString(path.read_bytes())
    other = "the tokeniser belongs to another model"
    if beyond := [token for token, number in ids.items() if number >= size]:
        said = f"token {beyond[0]!r} has id {ids[beyond[0]]}, but there are {size} embeddings"
        raise UserError(f"{path.parent / VOCABULARY}: {said}; {other}")
    own = {piece.piece: piece for piece in proto.pieces if piece.type in TEXT}
    if not own.keys() & ids:
        raise UserError(f"{path}: shares no piece with {VOCABULARY}; {other}")
    # Unused pieces are decoded, but are no output of the tokeniser. BPE merges them all the same
    # and then splits them again; with the lowest score they are merged last, and so change no other
    # merge.
    lowest = min(piece.score for piece in own.values()) - 1
    tokens = {number: token for token, number in ids.items()}
    unseen = [each.piece for each in proto.pieces if each.type == Piece.CONTROL]
    control = control | {ids[piece] for piece in unseen if piece in ids}
    pieces = []
    for number in range(size):
        token = tokens.get(number, f"<unused_{number}>")
        if number == unknown:
            pieces.append(Piece(piece=token, type=Piece.UNKNOWN))
        elif token in own and number not in control:
            pieces.append(own[token])
        elif number in control or number not in tokens:
            pieces.append(Piece(piece=token, type=Piece.CONTROL))
        else:
            pieces.append(Piece(piece=token, type=Piece.UNUSED, score=lowest))
    pieces += [piece for token, piece in own.items() if token not in ids]
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    spec = proto.trainer_spec
    spec.unk_id, spec.unk_piece, spec.vocab_size = unknown, pieces[unknown].piece, len(pieces)
    return proto.SerializeToString(), len(pieces)


def _tag(
    folder: Path, tag: str | None, ids: dict[str, int], *, key: str, required: bool
) -> tuple[int, ...]:
    languages = sorted(filter(LANGUAGE.fullmatch, ids))
    if tag in ids and TAG.fullmatch(tag):
        return (ids[tag],)
    if tag is not None:
        code = tag.strip("_<>")[:2]
        similar = [token for token in languages if token.strip("_<>")[:2] == code]
        known = f"; did you mean {' or '.join(similar[:5])}?" if similar else ""
        raise UserError(f"{folder}: baseline.{key}: the model has no language tag {tag}{known}")
    if required:
        said = f"set baseline.{key}, such as {', '.join(languages[:5])}"
        raise UserError(f"{folder}: the model needs a language tag; {said}")
    return ()


def write_tokenisers(
    source: bytes, target: bytes, folder: Path, *, tokens: SpecialTokens, marian: bool
) -> None:
    """Write SentencePiece models as files that `read_tokenisers` and the `AutoTokenizer` of
    transformers read.

    The models are serialised, with pieces in the order of the ids; MarianMT has two, M2M100 the
    same for both sides. A `UserError` if transformers would give the tokens other ids.
    """
    tables = []
    for model, size in ((source, tokens.source_size), (target, tokens.target_size)):
        pieces = ModelProto.FromString(model).pieces[: size or None]
        tables.append({piece.piece: number for number, piece in enumerate(pieces)})
    table, names = tables[0], list(tables[0])
    special = {"pad_token": tokens.pad, "eos_token": tokens.eos, "unk_token": tokens.unknown}
    if tokens.start not in (tokens.pad, tokens.eos):
        special["bos_token"] = tokens.start
    settings: dict[str, Any] = {name: names[number] for name, number in special.items()}
    for model, name in zip((source, target), MARIAN if marian else (SHARED, SHARED), strict=True):
        write_file(folder / name, model)
    if separate := tables[0] != tables[1]:
        write_json(folder / TARGET_VOCABULARY, tables[1])
    tags = [names[number] for number in (*tokens.source_tags, *tokens.target_tags)]
    if not marian and not tags:
        said = "transformers has no tokeniser for an M2M100 model without languages"
        raise UserError(f"{said}; export it to ctranslate2")
    if marian:
        settings |= {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate}
    else:
        settings |= zip(("src_lang", "tgt_lang"), (tag.strip("_") for tag in tags), strict=True)
        settings["tokenizer_class"] = "NllbTokenizer"
    if tags and tags[0].startswith("__"):
        # The languages of M2M100 have the ids after those of its table.
        codes = library().models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
        languages = [f"__{code}__" for code in codes]
        first = names.index(languages[0]) if languages[0] in names else 0
        if names[first : first + len(languages)] != languages:
            said = "transformers numbers M2M100's languages otherwise"
            raise UserError(f"{said}; export the model to ctranslate2")
        table = {name: number for number, name in enumerate(names[:first])}
        settings["tokenizer_class"] = "M2M100Tokenizer"
        settings["additional_special_tokens"] = languages
    write_json(folder / VOCABULARY, table)
    write_json(folder / TOKENIZER_CONFIG, settings)
