"""The guide in docs/extending.md to a function of one's own, followed to the letter: the function
counts everywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pages import ROOT, blocks
from small import ENVIRONMENT

MEASURED = """
from test_constructed import constructed


def test_heads(constructed, corpus):
    def mark(number, piece):
        pieces = [corpus.bpe.id_to_piece(token) for token in corpus.source_ids[number]]
        marks = [
            place
            for place, text in enumerate(pieces)
            if text.strip("▁") and not any(map(str.isalnum, text))
        ]
        return marks[-1:] or [piece]

    rows, report = constructed(encoder=[mark, lambda number, piece: [piece]])
    pointed, own = rows["encoder"]
    assert (pointed["functions"], pointed["punctuation"]) == (["punctuation"], 1.0)
    assert "punctuation" not in own["functions"] and 0 < own["punctuation"] < 0.3
    assert 0 < report["share_queries"]["punctuation"] <= report["queries"]["encoder"]
"""
REPORTED = """
import importlib

import numpy as np
import pandas as pd
import pytest

from specialized_heads.experiment.figures import RESULTS
from specialized_heads.report import style
from specialized_heads.report.claims.claim import judged
from specialized_heads.report.claims.evidence import evidence_of

OWN = [(2, 2), (3, 3)]  # heads


def with_punctuation(heads):
    places = zip(heads["type"], heads["layer"], heads["head"])
    own = [tuple(place) in OWN and kind == "encoder" for kind, *place in places]
    shares = np.where(own, 0.8, 0.125)
    functions = [names + ["punctuation"] * has for names, has in zip(heads["functions"], own)]
    shares = np.where(heads["type"] == "encoder", shares, np.nan)
    return heads.assign(punctuation=shares, functions=functions)


@pytest.fixture
def both(make):
    \"\"\"The tables of the same experiment with and without heads that attend to punctuation.\"\"\"
    log = pd.DataFrame({"update": [5, 9], "loss": [4.0, 3.0], "dev_loss": [None, 2.0]})
    gates = log.assign(open_encoder=[[[0.5] * 8] * 3, [[0.9] * 8] * 3])
    logs = {"baseline": log, "pruned/encoder_lambda0.01": gates}
    known = {"logs": {"a": logs}, "relations": {"a": make.relations()}}

    def tables(change):
        heads = change(make.heads())
        # the survivors have one of the two
        kept = (heads["type"] != "encoder") | (heads["layer"] == 2)
        pruned = "pruned/encoder_lambda0.01"
        left = {"baseline": heads, "checkpoint/update5": heads, pruned: heads[kept]}
        models = [make.model(), make.model(pruned, [[0, 8, 0], [8] * 3, [8] * 3], loss=0.2)]
        return make.tables(models={"a": models}, heads={"a": left}, **known)

    return tables(with_punctuation), tables(lambda heads: heads.assign(punctuation=0.125))


def page(name):
    return importlib.import_module(f"specialized_heads.report.figures.{name}")


def test_figures_and_tables(both, make) -> None:
    with_it, without = both
    functions, choice, left, gates = map(page, ("functions", "choice", "heads_left", "gates"))
    line = functions.labels_shown(functions.labels_numbers(with_it)).iloc[0]
    assert (line["share at punctuation"], line["punctuation heads"]) == ("0.80", "2 of 24")
    emergence = functions.emergence_numbers(with_it)
    assert set(emergence.loc[emergence["measure"] == "punctuation", "value"]) == {0.8}
    labelled = [choice.survival_numbers(tables)["labelled"].iloc[-1] for tables in both]
    assert labelled[0] == labelled[1] + 2
    assert "share at punctuation" in choice.survival_numbers(with_it)
    cells = left.figure8_numbers(with_it)
    assert (cells["names"] == "punctuation").sum() == 3  # two before pruning, one after it
    assert "punctuation" in make.texts(left.figure8_draw(cells))
    assert "punctuation" in make.texts(gates.pruning_draw(gates.pruning_numbers(with_it)))
    colours = {look["facecolor"] for look in style.FUNCTIONS.values()}
    assert len(colours) == len(style.FUNCTIONS) == 5


def test_claims(both) -> None:
    claims = [judged([evidence_of(tables)]).set_index("claim") for tables in both]
    names = "relevance_functions", "functions_kept"
    heads, kept = ([each.loc[name] for each in claims] for name in names)
    assert heads[0]["n"] == heads[1]["n"] + 2
    assert kept[0]["value"] != kept[1]["value"]
"""


def test_three_edits_suffice(tmp_path: Path) -> None:
    """It is measured on real sentences, labelled, drawn, listed and judged; without its row, it is
    not."""
    for folder in ("src", "tests"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module, row = [
        block for block in blocks(ROOT / "docs" / "extending.md", "python") if "unctuation" in block
    ]
    (tmp_path / module.splitlines()[0].removeprefix("# ")).write_text(module, encoding="utf-8")
    registry = tmp_path / "src/specialized_heads/heads/functions.py"
    text = registry.read_text(encoding="utf-8").replace(
        ")\nBY_NAME", f"    {row.strip()},\n)\nBY_NAME"
    )
    imported = (
        "import numpy as np\n\nfrom specialized_heads.heads.punctuation import punctuation_hits\n"
    )
    registry.write_text(text.replace("import numpy as np\n", imported, 1), encoding="utf-8")
    for folder, test in (("heads", MEASURED), ("report", REPORTED)):
        (tmp_path / f"tests/{folder}/test_punctuation.py").write_text(test, encoding="utf-8")
    paths = (tmp_path / name for name in ("src", "tests/support", "tests/heads"))
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *tmp_path.glob("tests/*/test_punctuation.py"),
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
