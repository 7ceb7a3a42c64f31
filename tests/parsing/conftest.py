"""Runs stages in processes of their own, as Snakemake does, and writes small analysis sets."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specialized_heads.corpus.pairs import Pairs, write_pairs


@pytest.fixture
def stage() -> Callable[..., subprocess.CompletedProcess]:
    """`stage("parse", settings={...}, text=path, ...)`."""

    def run(
        module: str, *, settings: Mapping[str, Any], environment: Mapping[str, str] | None = None, **files: Path
    ) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", f"specialized_heads.parsing.{module}", "--settings", json.dumps(settings)]
        for name, path in files.items():
            command += [f"--{name}", str(path)]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}))

    return run


@pytest.fixture
def analysis_file(tmp_path: Path) -> Callable[[list[str]], Path]:
    """`analysis_file(["Hi.", ...])`: write an analysis.parquet with these source sentences."""

    def write(texts: list[str]) -> Path:
        path = tmp_path / "analysis.parquet"
        write_pairs(path, Pairs(texts, ["–"] * len(texts), [str(i) for i in range(len(texts))]))
        return path

    return write
