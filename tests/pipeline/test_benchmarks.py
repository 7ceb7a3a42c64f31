"""The benchmarks run: their code follows the interfaces of the engine. What they measure is not
tested."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path) -> str:
    """What a benchmark prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", *arguments, "--threads", "1"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_engine_is_measured(tmp_path: Path) -> None:
    size = ["--sizes", "d128", "--systems", "ours", "--rounds", "1", "--seconds", "0.1"]
    run("benchmarks.engine", *size, "--output", tmp_path / "engine")
    assert "this engine" in (tmp_path / "engine.csv").read_text(encoding="utf-8")


def test_an_update_of_the_time_to_quality_is_measured(smoke) -> None:
    assert (
        float(
            run(
                "benchmarks.quality", smoke.file("tatoeba_en_fr/corpus").resolve(), "--time", "ours"
            )
        )
        > 0
    )
