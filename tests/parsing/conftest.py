"""Finds test data that is not part of the project, runs stages as Snakemake does, and writes small analysis sets."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stages import run_stage

from specialized_heads.corpus.pairs import Pairs, write_pairs


@pytest.fixture
def stage() -> Callable[..., subprocess.CompletedProcess]:
    """`stage("parse", settings={...}, text=path, ...)`: run one stage in its own process."""
    return lambda module, **options: run_stage(f"parsing.{module}", **options)


@pytest.fixture
def analysis_file(tmp_path: Path) -> Callable[[list[str]], Path]:
    """`analysis_file(["Hi.", ...])`: write an analysis.parquet with these source sentences."""

    def write(texts: list[str]) -> Path:
        path = tmp_path / "analysis.parquet"
        write_pairs(path, Pairs(texts, ["–"] * len(texts), [str(i) for i in range(len(texts))]))
        return path

    return write
