"""Runs a stage in a process of its own, as Snakemake does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_stage(
    module: str,
    *,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    **files: Path | list[Path],
) -> subprocess.CompletedProcess:
    """`run_stage("corpus.raw", settings={...}, resource=[path], output=path)`."""
    command = [sys.executable, "-m", f"specialized_heads.{module}", "--settings", json.dumps(settings or {})]
    for name, paths in files.items():
        command += [f"--{name.replace('_', '-')}", *map(str, paths if isinstance(paths, list) else [paths])]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}), check=False)
