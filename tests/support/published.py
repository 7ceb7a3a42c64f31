"""Models of transformers with random weights."""

import io
import json
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from specialized_heads.corpus.tokens import SpecialTokens

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SIZE = 60
MARIAN = SpecialTokens(pad=SIZE - 1, unknown=1, start=SIZE - 1, eos=0)
M2M = SpecialTokens(pad=1, unknown=3, start=2, eos=2)
WIDTHS = {"d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}


def marian(**options: Any) -> Any:
    config = {
        "vocab_size": SIZE,
        "decoder_vocab_size": SIZE,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "activation_function": "swish",
        "pad_token_id": MARIAN.pad,
        "eos_token_id": MARIAN.eos,
        "decoder_start_token_id": MARIAN.start,
        "forced_eos_token_id": None,
        "init_std": 0.3,
    }
    model = transformers.MarianMTModel(
        transformers.MarianConfig(**(config | WIDTHS | HEADS | options))
    )
    model.final_logits_bias = torch.randn_like(model.final_logits_bias)
    return vary(model)


def m2m(**options: Any) -> Any:
    config = {"vocab_size": SIZE, "encoder_layers": 2, "decoder_layers": 2, "init_std": 0.3}
    described = transformers.M2M100Config(**(config | WIDTHS | HEADS | options))
    return vary(transformers.M2M100ForConditionalGeneration(described))


def vary(model: Any) -> Any:
    """Draw biases and LayerNorms too, which a new model has at 0 and 1."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def copying(model: Any) -> Any:
    """The model, trained for a moment to copy its source, so that it ends its sentences."""
    random, optimizer = np.random.default_rng(2), torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(100):
        ids = torch.from_numpy(random.integers(3, SIZE - 1, (16, random.integers(2, 13))))
        ids[:, -1] = MARIAN.eos
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def learned(
    texts: Iterable[str], *, size: int, kind: str = "unigram"
) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    options = {"model_type": kind, "vocab_size": size, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, **options
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def write_tokeniser(folder: Path, texts: dict[str, list[str]]) -> None:
    """Two SentencePiece models and their joint table of `SIZE` ids, learned from the texts of each
    side, as MarianMT has them."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = []
    for side, lines in texts.items():
        processor = learned(lines, size=2 * SIZE)
        (folder / f"{side}.spm").write_bytes(processor.serialized_model_proto())
        pieces.append(
            [processor.id_to_piece(number) for number in range(3, processor.vocab_size())]
        )
    shared = dict.fromkeys(piece for pair in zip_longest(*pieces) for piece in pair if piece)
    tokens = ["</s>", "<unk>", *list(shared)[: SIZE - 3]]
    table = {token: number for number, token in enumerate(tokens)} | {"<pad>": SIZE - 1}
    (folder / "vocab.json").write_text(json.dumps(table))
