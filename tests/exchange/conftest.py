"""Models of transformers in folders."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from published import SIZE
from small import WORDS


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Path]:
    """Save a model as a folder."""

    def save(model: Any) -> Path:
        model.save_pretrained(tmp_path / "theirs")
        return tmp_path / "theirs"

    return save


@pytest.fixture
def tokeniser(tmp_path: Path) -> Path:
    """A folder with a tokeniser for `published.marian`."""
    folder = tmp_path / "tokeniser"
    folder.mkdir()
    pieces = []
    for side, texts in (("source", WORDS[:200]), ("target", [word[::-1] for word in WORDS[:200]])):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=model, vocab_size=40, hard_vocab_limit=False, minloglevel=2
        )
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces += [processor.id_to_piece(number) for number in range(3, processor.vocab_size())]
    tokens = ["</s>", "<unk>", *list(dict.fromkeys(pieces))[: SIZE - 3]]
    table = {token: number for number, token in enumerate(tokens)} | {"<pad>": SIZE - 1}
    (folder / "vocab.json").write_text(json.dumps(table))
    return folder


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
