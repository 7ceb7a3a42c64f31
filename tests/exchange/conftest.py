"""Models of transformers in folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from published import write_tokeniser
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
    words = list(WORDS[:200])
    write_tokeniser(tmp_path / "tokeniser", {"source": words, "target": [word[::-1] for word in words]})
    return tmp_path / "tokeniser"


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
