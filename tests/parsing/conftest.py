"""Writes small analysis sets."""

from collections.abc import Callable
from pathlib import Path

import pytest
from parallel_text import Pairs, write_pairs


@pytest.fixture
def analysis_file(tmp_path: Path) -> Callable[[list[str]], Path]:
    """`analysis_file(["Hi.", ...])`: write an analysis.parquet with these source sentences."""

    def write(texts: list[str]) -> Path:
        path = tmp_path / "analysis.parquet"
        write_pairs(path, Pairs(texts, ["–"] * len(texts), [str(i) for i in range(len(texts))]))
        return path

    return write
