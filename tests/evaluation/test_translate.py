"""The translation stage: one line per sentence in the order of the set, whatever the batches."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece

from specialized_heads.corpus.bpe import learn
from specialized_heads.evaluation import translate
from specialized_heads.model import decoding
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer

SETTINGS = {"decoding": {"beam": 3, "length_penalty": 1.0, "max_length_ratio": 2.0}, "device": "cpu"}


@pytest.fixture
def files(token_file, sentences, tiny_model: Callable[..., Transformer], tmp_path: Path) -> dict[str, Path]:
    words = [f"{a}{b} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    model = learn(words, size=60, name="target")
    (tmp_path / "bpe.model").write_bytes(model)
    sources, targets = sentences(30, vocabulary=59)
    sources[4] = []
    save(tiny_model(vocabulary=59), tmp_path / "model.safetensors", training={})
    return {
        "model": tmp_path / "model.safetensors",
        "tokens": token_file("test", sources, targets),
        "bpe": tmp_path / "bpe.model",
        "output": tmp_path / "translation.txt",
    }


@pytest.mark.parametrize("tokens", [1, 25, 2000])
def test_lines_are_in_the_order_of_the_set(
    call: Callable[..., None], files: dict[str, Path], sentences, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translate, "TOKENS", tokens)
    call(translate, settings=SETTINGS, **files)
    lines = files["output"].read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 30
    model, bpe = load(files["model"]), sentencepiece.SentencePieceProcessor(model_file=str(files["bpe"]))
    sources, _ = sentences(30, vocabulary=59)
    sources[4] = []
    for line, source in zip(lines, sources, strict=True):
        assert line == bpe.decode(decoding.translate(model, [source], **SETTINGS["decoding"])[0])
    assert len(set(lines)) > 10
