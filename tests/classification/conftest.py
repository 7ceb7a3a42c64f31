"""A small vocabulary, and BERTs of transformers with random weights in folders as it saves them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from specialized_heads.classification import wordpiece
from specialized_heads.classification.wordpiece import Vocabulary

TOKENS = [*wordpiece.SPECIAL, *"abcdefgh", *(f"##{letter}" for letter in "abcdefgh")]
TOKENS += ["the", "dog", "##s", ".", "'", "[", "]"]


@pytest.fixture
def vocabulary_file(tmp_path: Path) -> Path:
    path = tmp_path / "vocabulary.json"
    wordpiece.write_vocabulary(path, TOKENS, wordpiece.Cleaning())
    return path


@pytest.fixture
def vocabulary(vocabulary_file: Path) -> Vocabulary:
    return wordpiece.read_vocabulary(vocabulary_file)


@pytest.fixture
def published(tmp_path: Path) -> Callable[..., tuple[torch.nn.Module, Path]]:
    """`published("BertForMaskedLM", num_hidden_layers=2, ...)`: a model of transformers, and its
    folder with a vocabulary."""

    def build(kind: str, **sizes: object) -> tuple[torch.nn.Module, Path]:
        import transformers

        defaults = {
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "hidden_size": 8,
            "intermediate_size": 12,
        }
        config = transformers.BertConfig(
            vocab_size=len(TOKENS), max_position_embeddings=32, **(defaults | sizes)
        )
        torch.manual_seed(1)
        model = getattr(transformers, kind)(config).eval()
        # so that forgetting a bias or a norm shows
        for name, parameter in model.named_parameters():
            parameter.data.normal_(
                float("LayerNorm.weight" in name), 0.3 if parameter.dim() > 1 else 0.2
            )
        folder = tmp_path / kind
        model.save_pretrained(folder)
        (folder / "vocab.txt").write_text(
            "".join(f"{token}\n" for token in TOKENS), encoding="utf-8"
        )
        return model, folder

    return build
