"""Tokenisers of published models as SentencePiece models whose ids are those of the embeddings.

Such models come with a SentencePiece file and a table of ids in another order (`vocab.json`, or inside `tokenizer.json`). Here
the pieces are reordered by id, so the SentencePiece file alone is enough. Pieces without an id follow at the end: the tokeniser
may choose them, and the model reads the unknown token (`SpecialTokens.known`). Tokens that the SentencePiece file lacks, such as
those of the other side, become unused pieces: they are decoded, and a text has them only where its characters are unknown
(`corpus.bpe.encode_ids`).
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from specialized_heads.config.sections import Mode
from specialized_heads.corpus.bpe import sealed
from specialized_heads.corpus.vocabulary import SpecialTokens
from specialized_heads.exchange.huggingface import CONFIG, Config
from specialized_heads.stage import UserError, optional, read_json, write_file, write_json

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


class Tokenisers(NamedTuple):
    source: bytes  # sealed, as `corpus.bpe.load_bpe` reads it
    target: bytes
    tokens: SpecialTokens
    preprocess: Mode = "none"  # of the text that they read


def read_tokenisers(
    folder: Path, config: Config, *, source_tag: str | None = None, target_tag: str | None = None
) -> Tokenisers:
    """Read the tokenisers of a model.

    Args:
        folder: of the model.
        config: of the model.
        source_tag: token before every source sentence, such as `eng_Latn`, `__en__` or `>>fra<<`, which MarianMT needs if it has
            several target languages.
        target_tag: token that every translation begins with; M2M100 and NLLB need both.

    Raises:
        UserError: a file is missing or damaged, the ids do not fit the embeddings, or a tag is missing or unknown.
    """
    marian, shared = config.marian, config.shared
    source_ids = _ids(folder, VOCABULARY)
    target_ids = source_ids if shared else _ids(folder, TARGET_VOCABULARY)
    sizes = (config.vocab_size, config.target_vocabulary)
    if marian and target_tag is not None:
        raise UserError(f"{folder}: a Marian model has a tag on its source alone; set source_tag, not target_tag")
    if "<unk>" not in source_ids:
        raise UserError(f"{folder / VOCABULARY}: there is no token <unk>; fetch the tokeniser of this model again")
    special = {config.pad_token_id, config.eos_token_id, source_ids["<unk>"]}
    for token, number in source_ids.items():
        if number in special and target_ids.get(token) != number:
            raise UserError(
                f"{folder / TARGET_VOCABULARY}: token {token} has id {target_ids.get(token)}, but {number} in {VOCABULARY}; only "
                "models whose special tokens have the same ids on both sides can be read"
            )
    added = _added_tokens(folder, source_ids, config)
    languages = len(list(filter(LANGUAGE.fullmatch, source_ids | added)))
    required = {"source": languages > 1 if marian else languages > 0, "target": languages > 0 and not marian}
    tags = {
        f"{side}_tags": _tag(folder, tag, ids | added, key=f"{side}_tag", required=required[side])
        for side, tag, ids in (("source", source_tag, source_ids), ("target", target_tag, target_ids))
    }
    tokens = SpecialTokens(
        pad=config.pad_token_id,
        unknown=source_ids["<unk>"],
        start=config.decoder_start_token_id,
        eos=config.eos_token_id,
        **tags,
    )
    models = []
    for side, name, ids, size in zip(
        ("source", "target"), MARIAN if marian else (SHARED, SHARED), (source_ids, target_ids), sizes, strict=True
    ):
        control = {tokens.pad, tokens.start, tokens.eos, *added.values()}
        control |= {ids[token] for token in ids if LANGUAGE.fullmatch(token) or token in (source_tag, target_tag)}
        model, number = renumber(folder / name, ids | added, size=size, unknown=tokens.unknown, control=control)
        if number > size:
            tokens = replace(tokens, **{f"{side}_size": size})
        models.append(sealed(model))
    return Tokenisers(*models, tokens)


def renumber(path: Path, ids: dict[str, int], *, size: int, unknown: int, control: set[int]) -> tuple[bytes, int]:
    """A SentencePiece model with its pieces in the order of a table of ids.

    Args:
        path: the model.
        ids: by token.
        size: number of embeddings.
        unknown: id of the unknown token.
        control: ids of tokens that no text contains.

    Returns:
        the model, serialised, and the number of its pieces; those from `size` on have no id.
    """
    proto = _read_model(path)
    if largest := [token for token, number in ids.items() if number >= size]:
        raise UserError(
            f"{path.parent / VOCABULARY}: token {largest[0]!r} has id {ids[largest[0]]}, but {CONFIG} says that there are "
            f"{size} embeddings; the tokeniser belongs to another model"
        )
    own = {piece.piece: piece for piece in proto.pieces if piece.type in TEXT}
    if not set(own) & set(ids):
        raise UserError(f"{path}: shares no piece with {VOCABULARY}; the tokeniser belongs to another model")
    # Unused pieces are decoded, but are no output of the tokeniser. BPE merges them all the same and then splits them again; with
    # the lowest score they are merged last, and so change no other merge.
    lowest = min(piece.score for piece in own.values()) - 1
    tokens = {number: token for token, number in ids.items()}
    control = control | {
        ids[piece.piece] for piece in proto.pieces if piece.type == Piece.CONTROL and piece.piece in ids
    }
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
    try:
        return ModelProto.FromString(path.read_bytes())
    except FileNotFoundError:
        saved = (path.parent / TOKENIZER).is_file() and path.name == SHARED
        cause = f"transformers 5 saves only {TOKENIZER}; copy {SHARED} from the original model"
        raise UserError(f"{path}: no such file; {cause if saved else 'fetch the tokeniser of the model too'}") from None
    except DecodeError:
        raise UserError(f"{path}: not a SentencePiece model; fetch it again") from None


def _ids(folder: Path, name: str) -> dict[str, int]:
    """The table of ids: `vocab.json`, or for NLLB the vocabulary inside `tokenizer.json`."""
    path = folder / name
    if path.is_file() or not (folder / TOKENIZER).is_file():
        ids = read_json(path)
    else:
        path = folder / TOKENIZER
        ids = read_json(path).get("model", {}).get("vocab")
    if not isinstance(ids, dict) or not all(type(number) is int and number >= 0 for number in ids.values()):
        raise UserError(f"{path}: not a table from tokens to ids; fetch the tokeniser of this model again")
    if len(set(ids.values())) < len(ids):
        raise UserError(f"{path}: two tokens have the same id; fetch the tokeniser of this model again")
    return ids


def _added_tokens(folder: Path, ids: dict[str, int], config: Config) -> dict[str, int]:
    """Tokens that are not in the table of ids, such as languages: several files may name them."""
    try:
        added = _named_tokens(folder, ids)
        tokens = {str(token): int(number) for token, number in added.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        files = ", ".join((SPECIAL, TOKENIZER_CONFIG, ADDED, TOKENIZER))
        raise UserError(f"{folder}: one of {files} names its tokens in another form; fetch them again") from None
    if not config.marian and not any(map(LANGUAGE.fullmatch, ids | tokens)) and config.vocab_size > len(ids):
        if config.vocab_size < len(ids) + len(M2M100_LANGUAGES):
            raise UserError(
                f"{folder}: no file names the languages of the model; fetch {SPECIAL} and {TOKENIZER_CONFIG} too"
            )
        tokens |= {token: len(ids) + number for number, token in enumerate(M2M100_LANGUAGES)}
    return {token: number for token, number in tokens.items() if token not in ids}


def _named_tokens(folder: Path, ids: dict[str, int]) -> dict[str, int]:
    """The tokens of these files with their ids, unchecked."""
    added: dict[str, int] = {}
    if (path := folder / SPECIAL).is_file():  # numbered from the end of the table
        names = read_json(path).get("additional_special_tokens") or []
        names = [name["content"] if isinstance(name, dict) else name for name in names]
        added |= {name: len(ids) + number for number, name in enumerate(n for n in names if n not in ids)}
    if (path := folder / TOKENIZER_CONFIG).is_file():
        tokens = read_json(path).get("added_tokens_decoder", {})
        added |= {token["content"]: int(number) for number, token in tokens.items()}
    if (path := folder / ADDED).is_file():
        added |= read_json(path)
    if (path := folder / TOKENIZER).is_file():
        added |= {token["content"]: token["id"] for token in read_json(path).get("added_tokens", [])}
    return added


def _tag(folder: Path, tag: str | None, ids: dict[str, int], *, key: str, required: bool) -> tuple[int, ...]:
    languages = sorted(filter(LANGUAGE.fullmatch, ids))
    if tag is None:
        if required:
            raise UserError(
                f"{folder}: the model needs a language tag; set baseline.{key}, such as {', '.join(languages[:5])}"
            )
        return ()
    if tag not in ids:
        similar = sorted(token for token in languages if token.strip("_<>")[:2] == tag.strip("_<>")[:2])
        known = f"; did you mean {' or '.join(similar[:5])}?" if similar else ""
        raise UserError(f"{folder}: baseline.{key}: the model has no token {tag}{known}")
    return (ids[tag],)


def write_tokenisers(source: bytes, target: bytes, folder: Path, *, tokens: SpecialTokens, marian: bool) -> None:
    """Write SentencePiece models as files that `read_tokenisers` and the `AutoTokenizer` of transformers read.

    Args:
        source, target: serialised, with pieces in the order of the ids; M2M100 needs the same for both sides.
        folder: of the model.
        tokens: of the model.
        marian: two models with MarianMT's names, or one with that of M2M100.

    Raises:
        UserError: transformers would give the tokens other ids.
    """
    protos = {"source": ModelProto.FromString(source), "target": ModelProto.FromString(target)}
    tables = {}
    for side, proto in protos.items():
        size = getattr(tokens, f"{side}_size") or len(proto.pieces)
        tables[side] = {piece.piece: number for number, piece in enumerate(proto.pieces[:size])}
    table, names = tables["source"], list(tables["source"])
    settings = {"pad_token": names[tokens.pad], "eos_token": names[tokens.eos], "unk_token": names[tokens.unknown]}
    if tokens.start not in (tokens.pad, tokens.eos):
        settings["bos_token"] = names[tokens.start]
    shared = table == tables["target"]
    if not marian and not shared:
        raise UserError("M2M100 needs one vocabulary for both sides; export the model to ctranslate2")
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
                raise UserError(
                    "transformers numbers the languages of M2M100 otherwise; export the model to ctranslate2"
                )
            # Languages have the ids after those of the table.
            table = {name: number for number, name in enumerate(names[:first])}
    else:
        inputs = ["input_ids", "attention_mask"]
        settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs}
        write_file(folder / TOKENIZER, _tokenizer_json(protos["source"], tokens))
    write_json(folder / VOCABULARY, table)
    write_json(folder / TOKENIZER_CONFIG, settings)


def _tokenizer_json(proto: ModelProto, tokens: SpecialTokens) -> str:
    """A vocabulary made here as Hugging Face tokenizers has it; M2M100's own class would put a language before the text."""
    if proto.trainer_spec.model_type != TrainerSpec.BPE or proto.normalizer_spec.name != "identity":
        raise UserError("transformers has no tokeniser for an M2M100 model without languages; export it to ctranslate2")
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == Piece.NORMAL}
    merges = [
        (piece[:i], piece[i:])
        for piece in sorted(scores, key=lambda piece: scores[piece], reverse=True)
        for i in range(1, len(piece))
        if piece[:i] in scores and piece[i:] in scores
    ]
    with optional("models"):
        from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
        from tokenizers.models import BPE
    pieces = [piece.piece for piece in proto.pieces]
    ids = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(BPE(ids, merges, unk_token=pieces[tokens.unknown], fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    eos = pieces[tokens.eos]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {eos}", special_tokens=[(eos, tokens.eos)])
    return tokenizer.to_str()
