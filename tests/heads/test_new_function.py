"""The guide for a new head function in docs/extending.md, followed to the letter: it is measured, labelled and drawn."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pages import blocks

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "specialized_heads"
CHECK = """
import torch
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.functions import functions_of
from specialized_heads.heads.positional import Position
from specialized_heads.heads.shares import SHARES
from specialized_heads.heads.table import table_schema
from specialized_heads.report import style
from specialized_heads.report.beyond import emergence, survival

best, queries = torch.tensor([[[0, 0, 2], [0, 1, 0]]]), torch.tensor([[True, True, True]])
hits, number = SHARES[0].count(best, queries, torch.tensor([[5, 6, 7]]), ranks=None, cutoff=0)
assert (hits.tolist(), number) == ([[1, 1]], 2)
assert "first_token" in table_schema(["nsubj"]).names
place = Position(0, 0.5, 0.5)
assert functions_of("encoder", place, margins={}, shares={"first_token": 0.7}) == (["first token"], [])
assert functions_of("encoder", place, margins={}, shares={"first_token": 0.69}) == ([], [])
assert style.FUNCTIONS["first token"].colour == "#8FC29A"
assert "share at the first token" in survival.SCORES
assert emergence.PANELS["first token"] == "share at the first token"
"""


def test_a_head_function_takes_four_edits(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "specialized_heads", ignore=shutil.ignore_patterns("__pycache__"))
    module, share, row = [block for block in blocks(ROOT / "docs" / "extending.md", "python") if "irst_token" in block]
    (tmp_path / module.splitlines()[0].removeprefix("# src/")).write_text(module, encoding="utf-8")
    heads = tmp_path / "specialized_heads" / "heads"
    entries = {"shares.py": ("SHARES = (", share), "functions.py": ("FUNCTIONS = (", row)}
    for name, (registry, entry) in entries.items():
        text = (heads / name).read_text(encoding="utf-8").replace(registry, f"{registry}{entry.strip()}, ", 1)
        line = "from specialized_heads.heads.first_token import first_token_hits\n" * (name == "shares.py")
        (heads / name).write_text(line + text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
