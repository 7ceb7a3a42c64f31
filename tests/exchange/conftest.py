"""Models of transformers in folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from exporting import SETTINGS

from specialized_heads.exchange import export


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Path]:
    """Save a model as a folder."""

    def save(model: Any) -> Path:
        model.save_pretrained(tmp_path / "theirs")
        return tmp_path / "theirs"

    return save


@pytest.fixture
def lower(call, model_files: dict[str, Path], tmp_path: Path) -> Path:
    """An exported model of lower-case Moses tokens."""
    settings, output = SETTINGS | {"preprocess": "paper"}, tmp_path / "lower" / "model.json"
    call(export, settings=settings, **model_files, output=output)
    return tmp_path / "lower"


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
