"""Tokenisers of published models as SentencePiece models whose ids are those of the embeddings.

Such models come with a SentencePiece file and a table of ids in another order (`vocab.json`, or inside `tokenizer.json`). Here
the pieces are reordered by id, so the SentencePiece file alone is enough. Pieces without an id follow at the end: the tokeniser
may choose them, and the model reads the unknown token (`SpecialTokens.known`). Tokens that the SentencePiece file lacks, such as
those of the other side, become unused pieces: they are decoded, and a text has them only where its characters are unknown
(`corpus.bpe.encode_ids`).
"""

import os
import re
from collections.abc import Collection
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from specialized_heads.corpus.bpe import sealed
from specialized_heads.corpus.vocabulary import SpecialTokens
from specialized_heads.exchange.huggingface import Config
from specialized_heads.exchange.reading import read, read_json
from specialized_heads.experiment.sections import Mode
from specialized_heads.stage import UserError, write_file, write_json

Piece = ModelProto.SentencePiece
TEXT = (Piece.NORMAL, Piece.USER_DEFINED, Piece.BYTE)

# Files of the two sides; M2M100 and NLLB have one for both.
MARIAN = ("source.spm", "target.spm")
SHARED = "sentencepiece.bpe.model"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
LANGUAGE = re.compile(r"__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|>>.+<<")  # tokens of M2M100, NLLB and MarianMT
# The languages of M2M100, whose ids follow those of its table; no file of the model needs to name them.
M2M100_CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id "
    "ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si "
    "sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
M2M100_LANGUAGES = [f"__{code}__" for code in M2M100_CODES.split()]
ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"
NLLB = ("NllbTokenizer", "NllbTokenizerFast")
FAST = ("PreTrainedTokenizerFast", "TokenizersBackend")
CLASSES = ("MarianTokenizer", "M2M100Tokenizer", "SMALL100Tokenizer", *NLLB, *FAST)
CONTROL = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}


class Tokenisers(NamedTuple):
    source: bytes  # sealed, as `corpus.bpe.load_bpe` reads it
    target: bytes
    tokens: SpecialTokens
    preprocess: Mode = "none"  # of the text that they read


def read_tokenisers(
    folder: Path, config: Config, *, source_tag: str | None = None, target_tag: str | None = None
) -> Tokenisers:
    """Read the tokenisers of a model; a `UserError` if the ids do not fit the embeddings, or a tag is missing or unknown.

    `source_tag`: token before every source sentence, such as `eng_Latn`, `__en__` or `>>fra<<`, which MarianMT needs if it has
    several target languages; `target_tag`: token that every translation begins with. M2M100 and NLLB need both.
    """
    marian, shared = config.marian, config.shared
    source_ids = _ids(folder, VOCABULARY)
    target_ids = source_ids if shared else _ids(folder, TARGET_VOCABULARY)
    if marian and target_tag is not None:
        raise UserError(f"{folder}: a Marian model has a tag on its source alone; set source_tag, not target_tag")
    if "<unk>" not in source_ids:
        raise UserError(f"{folder / VOCABULARY}: there is no token <unk>; fetch the tokeniser of this model again")
    special = {config.pad_token_id, config.eos_token_id, source_ids["<unk>"]}
    for token, number in source_ids.items():
        if number in special and target_ids.get(token) != number:
            said = f"token {token} has id {target_ids.get(token)}, but {number} in {VOCABULARY}"
            raise UserError(f"{folder / TARGET_VOCABULARY}: {said}; special tokens need the same ids on both sides")
    settings = read_settings(folder)
    eos = next((token for token, number in source_ids.items() if number == config.eos_token_id), "</s>")
    accepted = {"tokenizer_class": CLASSES, "unk_token": ("<unk>",), "eos_token": (eos,), "sp_model_kwargs": ({},)}
    check_settings(folder, settings, accepted | {"legacy_behaviour": (False,), "separate_vocabs": (not shared,)})
    added = added_tokens(folder, source_ids, control={*CONTROL, source_tag, target_tag})
    added |= _languages(folder, source_ids | added, config, settings=settings)
    languages = len(list(filter(LANGUAGE.fullmatch, source_ids | added)))
    models, of_sides = [], {}
    for side, ids, tag in (("source", source_ids, source_tag), ("target", target_ids, target_tag)):
        required = languages > 1 and side == "source" if marian else languages > 0
        of_sides[f"{side}_tags"] = _tag(folder, tag, ids | added, key=f"{side}_tag", required=required)
        control = {config.pad_token_id, config.decoder_start_token_id, config.eos_token_id, *added.values()}
        control |= {ids[token] for token in ids if LANGUAGE.fullmatch(token) or token in (source_tag, target_tag)}
        size = config.vocab_size if side == "source" else config.target_vocabulary
        path = folder / (f"{side}.spm" if marian else SHARED)
        model, number = renumber(path, ids | added, size=size, unknown=source_ids["<unk>"], control=control)
        of_sides[f"{side}_size"] = size if number > size else 0
        models.append(sealed(model))
    tokens = SpecialTokens(
        pad=config.pad_token_id,
        unknown=source_ids["<unk>"],
        start=config.decoder_start_token_id,
        eos=config.eos_token_id,
        **of_sides,
    )
    return Tokenisers(*models, tokens)


def renumber(path: Path, ids: dict[str, int], *, size: int, unknown: int, control: set[int]) -> tuple[bytes, int]:
    """A SentencePiece model with its pieces in the order of a table of ids, and their number; those from `size` on have no id.

    `size` is the number of embeddings; `unknown` and `control` are ids of the unknown token and of tokens that no text contains.
    """
    proto = _read_model(path)
    if largest := [token for token, number in ids.items() if number >= size]:
        said = f"token {largest[0]!r} has id {ids[largest[0]]}, but there are {size} embeddings"
        raise UserError(f"{path.parent / VOCABULARY}: {said}; the tokeniser belongs to another model")
    own = {piece.piece: piece for piece in proto.pieces if piece.type in TEXT}
    if not set(own) & set(ids):
        raise UserError(f"{path}: shares no piece with {VOCABULARY}; the tokeniser belongs to another model")
    # Unused pieces are decoded, but are no output of the tokeniser. BPE merges them all the same and then splits them again; with
    # the lowest score they are merged last, and so change no other merge.
    lowest = min(piece.score for piece in own.values()) - 1
    tokens = {number: token for token, number in ids.items()}
    control = control | {ids[each.piece] for each in proto.pieces if each.type == Piece.CONTROL and each.piece in ids}
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


def _read_model(path: Path) -> ModelProto:
    saved = path.name == SHARED and (path.parent / TOKENIZER).is_file()
    missing = f"transformers 5 saves only {TOKENIZER}; copy it from the original model" if saved else "fetch it too"

    def parse(path: Path) -> ModelProto:
        content = path.read_bytes()
        SentencePieceProcessor(model_proto=content)  # refuses more than the format does
        return ModelProto.FromString(content)

    return read(path, parse, "a SentencePiece model", missing=missing)


def _ids(folder: Path, name: str) -> dict[str, int]:
    """The table of ids: `vocab.json`, or for NLLB the vocabulary inside `tokenizer.json` or the pieces of the model."""
    path = folder / name
    if not os.path.lexists(path) and os.path.lexists(folder / TOKENIZER):
        path = folder / TOKENIZER
        ids = read_json(path, lambda stored: dict(stored["model"]["vocab"]), "the tokeniser of a translation model")
    elif not os.path.lexists(path) and read_settings(folder).get("tokenizer_class") in NLLB:  # of transformers 4
        path = folder / SHARED
        pieces = [piece.piece for piece in _read_model(path).pieces[3:]]
        ids = {token: number for number, token in enumerate(dict.fromkeys(("<s>", "<pad>", "</s>", "<unk>", *pieces)))}
    else:
        ids = read_json(path, dict, "a table from tokens to ids", missing=f"fetch it, or {TOKENIZER_CONFIG} of NLLB")
    if not all(type(number) is int and number >= 0 for number in ids.values()) or len(set(ids.values())) < len(ids):
        raise UserError(f"{path}: not a table from tokens to ids of their own; fetch it again")
    return ids


def read_settings(folder: Path) -> dict[str, Any]:
    """What the files of a tokeniser say about special tokens and how text is split."""
    settings: dict[str, Any] = {}
    for name in (SPECIAL, TOKENIZER_CONFIG):
        settings |= read_json(folder / name, dict, "the settings of a tokeniser", default={})
    return settings


def _content(token: Any) -> Any:
    return token.get("content", token) if isinstance(token, dict) else token


def check_settings(folder: Path, settings: dict[str, Any], accepted: dict[str, tuple[Any, ...]]) -> None:
    """Raise a `UserError` if transformers would give text other ids because of a setting."""
    for key, values in accepted.items():
        if (value := _content(settings.get(key))) not in (None, *values):
            supported = " or ".join(map(repr, values))
            raise UserError(f"{folder}: its tokeniser has {key} {value!r}; only {supported} is supported")


def added_tokens(folder: Path, ids: dict[str, int], *, control: Collection[str | None]) -> dict[str, int]:
    """Tokens beside a table of ids, which transformers finds in text before it splits the rest.

    A `UserError` if one has the id of another token, or may occur in text: it is no language, not special, not in `control`.
    """
    tokens: dict[str, int] = {}
    for name in (SPECIAL, TOKENIZER_CONFIG, TOKENIZER, ADDED):
        parse = dict if name == ADDED else partial(_added, ids=ids)
        tokens |= read_json(folder / name, parse, "a file that adds tokens", default={})
    taken = {number: token for token, number in ids.items()}
    for token, number in tokens.items():
        free = type(number) is int and number >= 0 and taken.setdefault(number, token) == token
        if not free or ids.get(token, number) != number:
            raise UserError(f"{folder}: its tokeniser adds {token!r} with id {number!r}, which is not free; fetch it")
    control = [*control, *(_content(value) for key, value in read_settings(folder).items() if key.endswith("_token"))]
    if in_text := [repr(token) for token in tokens if token not in control and not LANGUAGE.fullmatch(token)]:
        found = ", ".join(in_text[:5])
        raise UserError(f"{folder}: its tokeniser adds {found} for text, which is not supported; use another model")
    return {token: number for token, number in tokens.items() if token not in ids}


def _added(stored: dict[str, Any], *, ids: dict[str, int]) -> dict[str, int]:
    """The tokens that a file adds; those that it only lists have the ids after the table."""
    lists = (stored.get(key) or () for key in ("additional_special_tokens", "extra_special_tokens"))
    names, after = dict.fromkeys(str(_content(token)) for each in lists for token in each), count(len(ids))
    tokens = {name: ids[name] if name in ids else next(after) for name in names}
    tokens |= {str(token["content"]): token["id"] for token in stored.get("added_tokens", ())}
    return tokens | {str(token["content"]): int(n) for n, token in stored.get("added_tokens_decoder", {}).items()}


def _languages(folder: Path, ids: dict[str, int], config: Config, *, settings: dict[str, Any]) -> dict[str, int]:
    """The languages of an M2M100 model if no file names them."""
    if config.marian or any(map(LANGUAGE.fullmatch, ids)) or config.vocab_size <= len(ids):
        return {}
    other = settings.get("tokenizer_class") in NLLB or settings.get("language_codes", "m2m100") != "m2m100"
    if other or config.vocab_size < len(ids) + len(M2M100_LANGUAGES):
        raise UserError(f"{folder}: no file names the model's languages; fetch {SPECIAL} and {TOKENIZER_CONFIG} too")
    return {token: len(ids) + number for number, token in enumerate(M2M100_LANGUAGES)}


def _tag(folder: Path, tag: str | None, ids: dict[str, int], *, key: str, required: bool) -> tuple[int, ...]:
    languages = sorted(filter(LANGUAGE.fullmatch, ids))
    if tag is None:
        if required:
            some = ", ".join(languages[:5])
            raise UserError(f"{folder}: the model needs a language tag; set baseline.{key}, such as {some}")
        return ()
    if tag not in ids:
        similar = sorted(token for token in languages if token.strip("_<>")[:2] == tag.strip("_<>")[:2])
        known = f"; did you mean {' or '.join(similar[:5])}?" if similar else ""
        raise UserError(f"{folder}: baseline.{key}: the model has no token {tag}{known}")
    return (ids[tag],)


def write_tokenisers(source: bytes, target: bytes, folder: Path, *, tokens: SpecialTokens, marian: bool) -> None:
    """Write SentencePiece models as files that `read_tokenisers` and the `AutoTokenizer` of transformers read.

    The models are serialised, with pieces in the order of the ids; MarianMT has two, M2M100 the same for both sides. A
    `UserError` if transformers would give the tokens other ids.
    """
    protos = {"source": ModelProto.FromString(source), "target": ModelProto.FromString(target)}
    known = {side: proto.pieces[: getattr(tokens, f"{side}_size") or None] for side, proto in protos.items()}
    tables = {side: {piece.piece: number for number, piece in enumerate(pieces)} for side, pieces in known.items()}
    table, names = tables["source"], list(tables["source"])
    settings = {"pad_token": names[tokens.pad], "eos_token": names[tokens.eos], "unk_token": names[tokens.unknown]}
    if tokens.start not in (tokens.pad, tokens.eos):
        settings["bos_token"] = names[tokens.start]
    shared = table == tables["target"]
    for side, name in zip(protos, MARIAN if marian else (SHARED, SHARED), strict=True):
        write_file(folder / name, protos[side].SerializeToString())
    if not shared:
        write_json(folder / TARGET_VOCABULARY, tables["target"])
    tags = [names[number] for number in (*tokens.source_tags, *tokens.target_tags)]
    if marian:
        settings |= {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not shared}
    elif tags:
        source_tag, target_tag = (tag.strip("_") for tag in tags)
        settings |= {"tokenizer_class": "NllbTokenizer", "src_lang": source_tag, "tgt_lang": target_tag}
        if source_tag != tags[0]:
            settings |= {"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": M2M100_LANGUAGES}
            first = names.index(M2M100_LANGUAGES[0]) if M2M100_LANGUAGES[0] in names else 0
            if names[first : first + len(M2M100_LANGUAGES)] != M2M100_LANGUAGES:
                raise UserError("transformers numbers M2M100's languages otherwise; export the model to ctranslate2")
            # Languages have the ids after those of the table.
            table = {name: number for number, name in enumerate(names[:first])}
    else:
        raise UserError("transformers has no tokeniser for an M2M100 model without languages; export it to ctranslate2")
    write_json(folder / VOCABULARY, table)
    write_json(folder / TOKENIZER_CONFIG, settings)
