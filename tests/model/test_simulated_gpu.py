"""Everything that computes on a GPU, on one that is simulated in CPU memory: the same results, and
no wait of the host too many.

`support/simulated_gpu.py` finds tensors on the wrong device and counts waits. It cannot find faults
of real kernels, streams or memory.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch.utils.backend_registration
from small import ENVIRONMENT

SCRIPT = Path(__file__).parents[1] / "support" / "simulated_runs.py"
EXACT = ("translation", "ablation", "killed and resumed", "BERT prediction", "BERT ablation")
CLOSE = (
    "relevance",
    "importance",
    "analysis",
    "pruning to the written model",
    "BERT pre-training",
    "BERT fine-tuning",
)
CLOSE += tuple(
    f"training fp32 {optimizer} {name}"
    for optimizer in ("adam", "muon")
    for name in ("plain", "λ", "controller")
)
NARROW = tuple(f"training bf16 {optimizer} λ" for optimizer in ("adam", "muon"))


@pytest.fixture(scope="module")
def cases() -> dict[str, dict]:
    """What `simulated_runs.py` prints, by case."""
    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip(
            f"torch {torch.__version__} cannot have a device that Python implements; torch 2.9 or "
            f"later can"
        )
    found = subprocess.run(
        [sys.executable, str(SCRIPT)], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return {line.pop("case"): line for line in map(json.loads, found.stdout.splitlines())}


def test_the_results_are_those_of_the_cpu(cases: dict[str, dict]) -> None:
    assert set(cases) == {*EXACT, *CLOSE, *NARROW, "waits of relevance"}
    for names, most in ((EXACT, 0.0), (CLOSE, 2e-5), (NARROW, 0.2)):
        assert {
            name: cases[name]["apart"] for name in names if not cases[name]["apart"] <= most
        } == {}
    assert cases["killed and resumed"]["saved"]
    assert cases["pruning to the written model"]["same"]
    assert 0 < cases["pruning to the written model"]["kept"] < 4


def test_the_host_waits_for_the_device_only_where_it_must(cases: dict[str, dict]) -> None:
    """In an update not once, but that the controller of the number of heads reads one value until
    it fixes the gates."""
    waits = {name: case["waits"] for name, case in cases.items() if "training" in name}
    controlled = [1, 1, *[0] * 10]
    assert waits == {
        name: controlled if "controller" in name else [0] * len(found)
        for name, found in waits.items()
    }
    assert cases["waits of relevance"]["waits"] <= 8
