"""The image builds, and the smoke experiment in it has the results of a run outside."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from workflows import Workflow

SCRIPT = Path(__file__).with_name("container.sh")


def test_the_smoke_experiment_runs_in_the_image(tmp_path: Path, smoke: Workflow) -> None:
    if "SPECIALIZED_HEADS_CONTAINER" not in os.environ:
        pytest.skip("takes 20 GB and a quarter of an hour; SPECIALIZED_HEADS_CONTAINER='' (options of buildah) runs it")
    for program in ("buildah", "mmdebstrap"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (apt install {program})")
    options = os.environ["SPECIALIZED_HEADS_CONTAINER"].split()
    done = subprocess.run([SCRIPT, tmp_path / "box", *options], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    for name in ("claims.csv", "tables/table2.csv", "tatoeba_en_fr/models/baseline/seed1/model.safetensors"):
        assert (tmp_path / "box/results/smoke" / name).read_bytes() == smoke.file(name).read_bytes(), name
