"""Stages bpe and tokens: ids, exact recovery of the text from pieces, the store on disk, and
mistakes in the sizes."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from parallel_text import Pairs, write_pairs

from specialized_heads.corpus import pairs, preprocess, tokens
from specialized_heads.corpus.tokens import (
    BOS,
    EOS,
    PAD,
    UNKNOWN,
    encode_ids,
    learn,
    load_bpe,
    load_tokens,
)
from specialized_heads.stage import UserError

LANGUAGES = {"source_language": "en", "target_language": "ru"}


def test_text_never_yields_a_special_id(everyday: Pairs) -> None:
    russian = sentencepiece.SentencePieceProcessor(
        model_proto=learn(everyday.target, size=120, name="target")
    )
    texts = ["</s> кот", "<pad>", "猫", "кот</s>"]
    expected = (PAD, UNKNOWN, BOS, EOS)
    assert (russian.pad_id(), russian.unk_id(), russian.bos_id(), russian.eos_id()) == expected
    assert (PAD, UNKNOWN, BOS, EOS) == (0, 1, 2, 3)
    assert UNKNOWN in russian.encode("</s>")
    assert encode_ids(texts, russian) == russian.encode(texts)


@pytest.mark.parametrize(("size", "bound"), [(30_000, "most"), (16, "least")])
def test_a_size_that_does_not_fit_says_the_nearest_that_does(everyday, size, bound) -> None:
    said = rf"vocabulary\.target: {size} .* set at {bound} (\d+)"
    with pytest.raises(UserError, match=said) as caught:
        learn(everyday.target, size=size, name="target")
    nearest = int(str(caught.value).rsplit(" ", 1)[1])
    model = sentencepiece.SentencePieceProcessor(
        model_proto=learn(everyday.target, size=nearest, name="target")
    )
    assert model.get_piece_size() == nearest


def test_long_sentences_are_learned_from(everyday: Pairs) -> None:
    long = [" ".join(f"zyx{'w' * (n % 9)}" for n in range(1000))] * 20
    assert len(long[0].encode()) > 4192
    model = sentencepiece.SentencePieceProcessor(
        model_proto=learn([*everyday.source, *long], size=100, name="source")
    )
    assert UNKNOWN not in model.encode("zyxwww")


def test_a_large_corpus_is_sampled_alike_whatever_the_blocks(
    tmp_path: Path, everyday: Pairs, monkeypatch
) -> None:
    write_pairs(tmp_path / "train.parquet", everyday)

    def sampled() -> list[str]:
        return list(chain.from_iterable(tokens.sample(tmp_path / "train.parquet", "target")))

    assert sampled() == everyday.target
    monkeypatch.setattr(tokens, "SAMPLE", 100)
    drawn = sampled()
    monkeypatch.setattr(pairs, "READ", 7)
    assert sampled() == drawn
    # The rows that models were made with when all sentences were held at once.
    rows = [everyday.target.index(text) for text in drawn]
    assert rows == sorted(np.random.default_rng(1).choice(500, 100, replace=False).tolist())


@pytest.fixture
def made(tmp_path: Path, call: Callable[..., None], everyday: Pairs) -> Callable[..., Path]:
    """`made("1.safetensors", preprocess="paper")`: both stages on the everyday corpus, whose models
    stay beside."""
    write_pairs(tmp_path / "train.parquet", everyday)

    def run(name: str, *, mode: preprocess.Mode = "none") -> Path:
        models = {f"{side}_model": tmp_path / f"bpe.{side}.model" for side in tokens.SIDES}
        settings = {"vocabulary": {"source": 100, "target": 120, "preprocess": mode}} | LANGUAGES
        call(tokens.bpe, settings=settings, train=tmp_path / "train.parquet", **models)
        files = {"text": tmp_path / "train.parquet", "output": tmp_path / "tokens" / name}
        call(tokens, settings={"preprocess": mode} | LANGUAGES, **files, **models)
        return files["output"]

    return run


@pytest.mark.parametrize("mode", ["none", "paper"])
def test_stages_round_trip(tmp_path, made, everyday, mode) -> None:
    store = load_tokens(made("train.safetensors", mode=mode))
    assert len(store) == len(everyday)
    assert (store.source.dtype, store.source_offsets.dtype) == (np.int32, np.int64)
    source = load_bpe(tmp_path / "bpe.source.model")
    target = load_bpe(tmp_path / "bpe.target.model")
    sources = preprocess.apply(everyday.source, language="en", mode=mode)
    targets = preprocess.apply(everyday.target, language="ru", mode=mode)
    assert (sources == everyday.source) == (mode == "none")
    for row in range(len(store)):
        assert source.decode(store.source_ids(row).tolist()) == sources[row]
        assert target.decode(store.target_ids(row).tolist()) == targets[row]
    assert store.target.min() > EOS
    pieces = "".join(source.id_to_piece(piece) for piece in range(EOS + 1, 100))
    assert (pieces == pieces.lower()) == (mode == "paper")  # the text that was learned from


def test_blocks_do_not_show(made: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made("whole.safetensors").read_bytes()
    monkeypatch.setattr(pairs, "READ", 7)
    assert made("blocks.safetensors").read_bytes() == whole


def test_a_missing_or_broken_file_is_named(tmp_path: Path, made: Callable[..., Path]) -> None:
    tokens_file = made("train.safetensors")
    for path, load in ((tokens_file, load_tokens), (tmp_path / "bpe.source.model", load_bpe)):
        path.write_bytes(path.read_bytes()[:1000])
        with pytest.raises(UserError, match=rf"{path.name}: .*delete it and run again"):
            load(path)
        path.unlink()
        with pytest.raises(UserError, match=f"{path.name}: (no such file|missing)"):
            load(path)
