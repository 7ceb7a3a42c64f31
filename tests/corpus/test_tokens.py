"""Stages bpe and tokens: ids, exact recovery of the text from pieces, the store on disk, and mistakes in the sizes."""

from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from safetensors.numpy import load_file

from specialized_heads.corpus.bpe import learn, load_bpe
from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.corpus.tokens import encode, load_tokens
from specialized_heads.corpus.vocabulary import BOS, EOS, PAD, UNKNOWN
from specialized_heads.stage import UserError


@pytest.fixture
def russian(everyday: Pairs) -> sentencepiece.SentencePieceProcessor:
    model = learn(everyday.target, size=120, name="target")
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def test_special_ids_and_size(russian: sentencepiece.SentencePieceProcessor) -> None:
    assert (russian.pad_id(), russian.unk_id(), russian.bos_id(), russian.eos_id()) == (PAD, UNKNOWN, BOS, EOS)
    assert (PAD, UNKNOWN, BOS, EOS) == (0, 1, 2, 3)
    assert russian.get_piece_size() == 120


@pytest.mark.parametrize(
    "text", ["кот видит а дом, номер 3.", "  два  пробела ", "ﬁ ½ Ⅷ no compatibility forms", "неизвестный знак 猫!"]
)
def test_joined_pieces_are_the_text(russian: sentencepiece.SentencePieceProcessor, text: str) -> None:
    pieces = russian.encode(text, out_type=str)
    assert "".join(pieces) == "\u2581" + text.replace(" ", "\u2581")


def test_learning_repeats(everyday: Pairs) -> None:
    assert learn(everyday.source, size=100, name="source") == learn(everyday.source, size=100, name="source")


def test_too_large_a_vocabulary_says_the_largest(everyday: Pairs) -> None:
    with pytest.raises(UserError, match=r"vocabulary\.source: 30000 .* set at most (\d+)") as caught:
        learn(everyday.source, size=30_000, name="source")
    largest = int(str(caught.value).rsplit(" ", 1)[1])
    model = sentencepiece.SentencePieceProcessor(model_proto=learn(everyday.source, size=largest, name="source"))
    assert model.get_piece_size() == largest


def test_too_small_a_vocabulary_says_the_smallest(everyday: Pairs) -> None:
    with pytest.raises(UserError, match=r"vocabulary\.target: 16 .* set at least (\d+)") as caught:
        learn(everyday.target, size=16, name="target")
    smallest = int(str(caught.value).rsplit(" ", 1)[1])
    learn(everyday.target, size=smallest, name="target")


def test_blocks_do_not_show(
    russian: sentencepiece.SentencePieceProcessor, everyday: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, offsets = encode(everyday.target, russian)
    monkeypatch.setattr("specialized_heads.corpus.tokens.BLOCK", 7)
    in_blocks, block_offsets = encode(everyday.target, russian)
    assert np.array_equal(ids, in_blocks)
    assert np.array_equal(offsets, block_offsets)


def test_stages_round_trip(tmp_path: Path, stage, everyday: Pairs) -> None:
    write_pairs(tmp_path / "train.parquet", everyday)
    models = {"source_model": tmp_path / "bpe.source.model", "target_model": tmp_path / "bpe.target.model"}
    settings = {"vocabulary": {"source": 100, "target": 120}}
    done = stage("bpe", settings=settings, train=tmp_path / "train.parquet", **models)
    assert done.returncode == 0, done.stderr
    for name in ("1", "2"):
        output = tmp_path / f"{name}.safetensors"
        done = stage("tokens", settings={}, text=tmp_path / "train.parquet", output=output, **models)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.safetensors").read_bytes() == (tmp_path / "2.safetensors").read_bytes()

    tokens = load_tokens(tmp_path / "1.safetensors")
    assert len(tokens) == len(everyday)
    assert (tokens.source.dtype, tokens.source_offsets.dtype) == (np.int32, np.int64)
    assert isinstance(tokens.target, np.memmap)
    source, target = load_bpe(models["source_model"]), load_bpe(models["target_model"])
    for row in range(len(tokens)):
        assert source.decode(tokens.source_ids(row).tolist()) == everyday.source[row]
        assert target.decode(tokens.target_ids(row).tolist()) == everyday.target[row]
        assert len(tokens.source_ids(row)) == tokens.source_lengths[row]
        assert len(tokens.target_ids(row)) == tokens.target_lengths[row]
    assert tokens.target.min() > EOS


def test_the_store_is_a_plain_safetensors_file(tmp_path: Path, stage, everyday: Pairs) -> None:
    write_pairs(tmp_path / "text.parquet", everyday)
    for name in ("source", "target"):
        (tmp_path / name).write_bytes(learn(getattr(everyday, name), size=100, name=name))
    files = {"source_model": tmp_path / "source", "target_model": tmp_path / "target"}
    stage("tokens", settings={}, text=tmp_path / "text.parquet", output=tmp_path / "t.safetensors", **files)
    tokens = load_tokens(tmp_path / "t.safetensors")
    for name, values in load_file(tmp_path / "t.safetensors").items():
        assert np.array_equal(getattr(tokens, name), values)
        assert getattr(tokens, name).dtype == values.dtype


def test_wrong_token_files_are_mistakes_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_tokens(tmp_path / "none.safetensors")
    (tmp_path / "text").write_text("this is not a token file")
    with pytest.raises(UserError, match="not a token file"):
        load_tokens(tmp_path / "text")
    with pytest.raises(UserError, match="no such file"):
        load_bpe(tmp_path / "none.model")
