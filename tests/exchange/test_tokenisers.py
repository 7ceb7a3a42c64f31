"""Tokenisers of published models give the ids that transformers gives."""

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from published import HEADS, WIDTHS, learned
from small import WORDS

from specialized_heads.corpus.tokens import encode
from specialized_heads.exchange.tokenisers import Tokenisers, read_tokenisers, write_tokenisers
from specialized_heads.stage import UserError

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

ENGLISH = [" ".join(WORDS[start : start + 5]) for start in range(0, 200, 2)]
GERMAN = [text[::-1] for text in ENGLISH]
CHINESE = ["北京", "北", "北 京", "ia北京 ib"] * 20  # of the target alone
TEXTS = [*ENGLISH[:10], *GERMAN[:10], "ﬁne 文 words", "  two   spaces ", "ai 北京 北", "京ai文北京"]


def pieces(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(number) for number in range(processor.vocab_size())]


Config = transformers.PretrainedConfig


def config(folder: Path, kind: str, size: int, **options: object) -> Config:
    """The configuration of a model, which is also written to its folder."""
    ids = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    described = transformers.AutoConfig.for_model(
        kind, vocab_size=size, **(WIDTHS | HEADS | ids | options)
    )
    described.save_pretrained(folder)
    return described


@pytest.fixture
def marian(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Config]:
    """Two models with one table of ids, in which some of their pieces are missing, as in
    OPUS-MT."""
    texts = {"source": ENGLISH, "target": GERMAN + CHINESE}
    kind = getattr(request, "param", "unigram")
    sides = {side: learned(lines, kind=kind, size=60) for side, lines in texts.items()}
    for side, processor in sides.items():
        (tmp_path / f"{side}.spm").write_bytes(processor.serialized_model_proto())
    every = [piece for processor in sides.values() for piece in pieces(processor)[4:]]
    kept = [piece for piece in reversed(every) if len(piece) % 5 != 3]
    tokens = dict.fromkeys(["</s>", "<unk>", ">>deu<<", *kept, "<pad>"])
    table = {token: number for number, token in enumerate(tokens)}
    (tmp_path / "vocab.json").write_text(json.dumps(table))
    pad = table["<pad>"]
    special = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad}
    return tmp_path, config(tmp_path, "marian", len(table), **special)


@pytest.fixture
def m2m(tmp_path: Path) -> tuple[Path, Config]:
    """One model for both sides, a table of ids, and languages behind it."""
    processor = learned(ENGLISH + GERMAN, kind="bpe", size=90)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(processor.serialized_model_proto())
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *reversed(pieces(processor)[3:-4])]
    ids = {token: number for number, token in enumerate(tokens)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    languages = list(m2m_tokenizer(tmp_path).lang_token_to_id)
    special = {"additional_special_tokens": languages}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(special))
    return tmp_path, config(tmp_path, "m2m_100", len(tokens) + len(languages))


def marian_tokenizer(folder: Path) -> transformers.MarianTokenizer:
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    return transformers.MarianTokenizer(*files)


def m2m_tokenizer(folder: Path, **options: object) -> transformers.M2M100Tokenizer:
    files = (str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    return transformers.M2M100Tokenizer(*files, src_lang="en", tgt_lang="de", **options)


def our_ids(read: Tokenisers, texts: list[str], side: str = "source") -> list[int]:
    ours = sentencepiece.SentencePieceProcessor(model_proto=getattr(read, side))
    return encode(texts, ours, read.tokens, side)[0].tolist()


def their_ids(theirs: Any, texts: list[str], side: str = "source") -> list[int]:
    rows = (theirs(texts) if side == "source" else theirs(text_target=texts))["input_ids"]
    return [number for row in rows for number in row[:-1]]  # the last is EOS


SIDES = pytest.mark.parametrize("side", ["source", "target"])


@SIDES
@pytest.mark.parametrize("marian", ["unigram", "bpe"], indirect=True)
def test_marian_ids(side: str, marian: tuple[Path, Config]) -> None:
    folder, described = marian
    read, theirs = read_tokenisers(folder, described), marian_tokenizer(folder)
    assert our_ids(read, TEXTS, side) == their_ids(theirs, TEXTS, side)
    assert read.tokens.unknown in our_ids(read, TEXTS, side)
    assert read.tokens.pad == read.tokens.start == described.vocab_size - 1
    assert read.tokens.eos == 0
    ours = sentencepiece.SentencePieceProcessor(model_proto=read.target)
    for row in theirs(text_target=GERMAN[:10])["input_ids"]:
        row = [number for number in row if number != 1]  # we show unknown pieces
        assert ours.decode(row) == theirs.decode(row, skip_special_tokens=True)


def test_a_language_of_many_goes_before_the_source(marian: tuple[Path, Config]) -> None:
    folder, described = marian
    read = read_tokenisers(folder, described, source_tag=">>deu<<")
    theirs = their_ids(marian_tokenizer(folder), [f">>deu<<{ENGLISH[0]}"])
    assert our_ids(read, ENGLISH[:1]) == theirs
    with pytest.raises(UserError, match="on its source alone; set source_tag, not target_tag"):
        read_tokenisers(folder, described, target_tag=">>deu<<")
    # A model of several target languages needs one.
    table = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps(table | {">>fra<<": len(table)}))
    described.vocab_size += 1
    with pytest.raises(UserError, match=r"set baseline\.source_tag, such as >>deu<<, >>fra<<"):
        read_tokenisers(folder, described)


def test_special_tokens_have_the_same_ids_in_separate_vocabularies(
    marian: tuple[Path, Config],
) -> None:
    folder, described = marian
    table = json.loads((folder / "vocab.json").read_text())
    (folder / "target_vocab.json").write_text(json.dumps(table))
    described.share_encoder_decoder_embeddings = False
    (folder / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    read_tokenisers(folder, described)
    tokens = [token for token in table if token != "<unk>"]
    ids = {token: number for number, token in enumerate([*tokens, "<unk>"])}
    (folder / "target_vocab.json").write_text(json.dumps(ids))
    said = f"target_vocab.json: token <unk> has id {len(tokens)}, but 1 in vocab.json"
    with pytest.raises(UserError, match=said):
        read_tokenisers(folder, described)


@SIDES
def test_m2m_ids(side: str, m2m: tuple[Path, Config]) -> None:
    folder, described = m2m
    read = read_tokenisers(folder, described, source_tag="__en__", target_tag="__de__")
    assert our_ids(read, TEXTS, side) == their_ids(m2m_tokenizer(folder), TEXTS, side)
    assert read.tokens.unknown in our_ids(read, TEXTS, side)
    # What looks like a special token in text is text.
    hostile = our_ids(read, ["ai </s> b <pad> __de__ <unk>"])
    assert not {read.tokens.eos, read.tokens.pad, *read.tokens.target_tags} & {*hostile}
    with pytest.raises(UserError, match=r"no language tag eng_Latn; did you mean .*__en__"):
        read_tokenisers(folder, described, source_tag="eng_Latn", target_tag="__de__")


NLLB = {"source_tag": "eng_Latn", "target_tag": "deu_Latn"}


@pytest.fixture
def nllb(tmp_path: Path) -> tuple[Path, Config, transformers.NllbTokenizer]:
    """The files of NLLB: its table is inside tokenizer.json, one id behind SentencePiece's, and
    languages follow."""
    from transformers.convert_slow_tokenizer import SentencePieceExtractor
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    processor = learned(ENGLISH + GERMAN, kind="bpe", size=90)
    path = tmp_path / "sentencepiece.bpe.model"
    path.write_bytes(processor.serialized_model_proto())
    extracted = SentencePieceExtractor(str(path)).extract(None)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *pieces(processor)[3:]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    of_model = {name: extracted[name] for name in ("merges", "_spm_precompiled_charsmap")}
    of_model |= {"vocab": vocabulary, "additional_special_tokens": FAIRSEQ_LANGUAGE_CODES}
    tokenizer = transformers.NllbTokenizer(**of_model, src_lang="eng_Latn", tgt_lang="deu_Latn")
    tokenizer.save_pretrained(tmp_path)
    return tmp_path, config(tmp_path, "m2m_100", len(tokenizer)), tokenizer


@SIDES
def test_nllb_ids(side: str, nllb: tuple[Path, Config, transformers.NllbTokenizer]) -> None:
    folder, described, theirs = nllb
    read = read_tokenisers(folder, described, **NLLB)
    # as corpus stages leave them; transformers keeps a last space
    texts = [" ".join(text.split()) for text in TEXTS]
    assert our_ids(read, texts, side) == their_ids(theirs, texts, side)
    special = (read.tokens.pad, read.tokens.unknown, read.tokens.start, read.tokens.eos)
    assert special == (1, 3, 2, 2)


def test_a_piece_of_text_is_no_language_tag(nllb: tuple[Path, Config, object]) -> None:
    folder, described, tokenizer = nllb
    piece = next(piece for piece in tokenizer.get_vocab() if piece.isalpha())
    with pytest.raises(UserError, match=f"target_tag: the model has no language tag {piece}"):
        read_tokenisers(folder, described, **NLLB | {"target_tag": piece})


def test_an_nllb_folder_of_transformers_4_has_no_table(nllb: tuple[Path, Config, object]) -> None:
    folder, described, original = nllb
    expected = read_tokenisers(folder, described, **NLLB)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "NllbTokenizer", "legacy_behaviour": false}'
    )
    with pytest.raises(UserError, match="the model has no language tag eng_Latn"):
        read_tokenisers(folder, described, **NLLB)
    table = original.get_vocab().items()
    languages = {token: number for token, number in table if token[3:4] == "_" or token == "<mask>"}
    (folder / "added_tokens.json").write_text(json.dumps(languages))
    assert read_tokenisers(folder, described, **NLLB) == expected


def test_the_old_order_of_tags_is_refused(nllb: tuple[Path, Config, object]) -> None:
    folder, described, _ = nllb
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"legacy_behaviour": True}))
    with pytest.raises(UserError, match="legacy_behaviour True; only False is supported"):
        read_tokenisers(folder, described, **NLLB)


def test_an_nllb_folder_of_transformers_5_needs_the_sentencepiece_model_of_the_original(
    nllb,
) -> None:
    folder, described, _ = nllb
    (folder / "sentencepiece.bpe.model").unlink()
    with pytest.raises(UserError, match="transformers 5 saves only tokenizer.json; copy it from"):
        read_tokenisers(folder, described, **NLLB)


def written(folder: Path, read: Tokenisers, *, marian: bool) -> transformers.AutoTokenizer:
    """What transformers makes of the tokenisers that we write."""
    folder.mkdir()
    write_tokenisers(read.source, read.target, folder, tokens=read.tokens, marian=marian)
    described = {"model_type": "marian" if marian else "m2m_100"}
    (folder / "config.json").write_text(json.dumps(described))
    return transformers.AutoTokenizer.from_pretrained(folder)


M2M = {"source_tag": "__zu__", "target_tag": "__af__"}


@pytest.mark.parametrize(("kind", "tags"), [("marian", {}), ("m2m", M2M), ("nllb", NLLB)])
def test_transformers_reads_an_exported_tokeniser(
    kind: str, tags: dict, request, tmp_path: Path
) -> None:
    folder, described, *_ = request.getfixturevalue(kind)
    read = read_tokenisers(folder, described, **tags)
    theirs = written(tmp_path / "out", read, marian=kind == "marian")
    texts = [" ".join(text.split()) for text in TEXTS]
    for side in ("source", "target"):
        assert our_ids(read, texts, side) == their_ids(theirs, texts, side)
        first, *_ = (theirs(texts) if side == "source" else theirs(text_target=texts))["input_ids"]
        assert first[-1] == read.tokens.eos
        # Without the language.
        ours = sentencepiece.SentencePieceProcessor(model_proto=getattr(read, side))
        known = [number for number in first if number != read.tokens.unknown]
        assert theirs.decode(first, skip_special_tokens=True) == ours.decode(known) != ""
    assert read_tokenisers(tmp_path / "out", described, **tags).tokens == read.tokens


def test_languages_that_transformers_would_number_otherwise_are_not_exported(m2m, tmp_path) -> None:
    folder, described = m2m
    (folder / "special_tokens_map.json").unlink()
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "M2M100Tokenizer", "language_codes": "wmt21"}'
    )
    read = read_tokenisers(folder, described, source_tag="__en__", target_tag="__de__")
    with pytest.raises(UserError, match="numbers M2M100's languages otherwise; export the model"):
        written(tmp_path / "out", read, marian=False)
