"""The tables are what docs/heads.md says, column by column; the examples there run, and so does the guide for a new function."""

import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pages import PACKAGE, ROOT, blocks
from small import ENVIRONMENT

from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.measure import measure
from specialized_heads.heads.rare_words import frequency_ranks
from specialized_heads.heads.table import head_rows, table_schema
from specialized_heads.heads.trees import Sentence
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.relations import DIRECTIONS, Arc

DOCUMENT = ROOT / "docs" / "heads.md"
RELATIONS = ["nsubj", "nmod:poss"]


def test_every_column_is_documented() -> None:
    described = re.findall(r"^\| `([^`]+)` \| ", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    described = described[described.index("type") : described.index("relations_certain") + 1]
    assert set(table_schema(RELATIONS).names) == {
        name.replace("<relation>", relation).replace("<direction>", direction)
        for name, relation, direction in product(described, RELATIONS, DIRECTIONS)
    }


@pytest.fixture
def table(tiny_model, store) -> pa.Table:
    """The table of a small model on four sentences of three words each, a word being a piece."""
    data = store([[5, 9, 4], [8, 6, 7], [6, 6, 12], [11, 5, 9]], [[4, 12], [7, 15, 9], [11], []])
    sentences = {number: Sentence([[0], [1], [2]], [[1.0]] * 3, [Arc("nsubj", 1, 0)]) for number in range(3)}
    settings = Heads(relations=RELATIONS, rare_cutoff=2)
    model = tiny_model()
    offsets = {("nsubj", "head_to_dependent"): -1, ("nsubj", "dependent_to_head"): 1}
    offsets |= {("nmod:poss", direction): None for direction in DIRECTIONS}
    ranks = frequency_ranks(data, vocabulary=20)
    counted = measure(model, data, sentences, offsets, ranks, settings)
    relevance = {(kind, layer, head): (0.5, 0.01) for kind in KINDS for layer in (1, 2) for head in (1, 2)}
    rows = head_rows(model, counted, relevance, settings, seed=1)
    return pa.Table.from_pylist(rows, schema=table_schema(RELATIONS))


def test_rows_have_what_exists_for_their_type(table: pa.Table) -> None:
    assert table.num_rows == 12
    frame = table.to_pandas()
    missing = {kind: set(frame.columns[frame[frame["type"] == kind].isna().all()]) for kind in KINDS}
    absent = {name for name in frame.columns if name.startswith("nmod:poss_") and not name.endswith("_arcs")}
    syntactic = {name for name in frame.columns if name.startswith(tuple(RELATIONS))}
    encoder_only = syntactic | {"rarest", "two_rarest", "relations", "relations_certain"}
    assert missing["encoder"] == absent
    assert missing["decoder"] == encoder_only | {"eos_weight", "share_+1"}
    assert missing["cross"] == encoder_only | {"positional_share_raw", "share_-1", "share_+0", "share_+1"}
    encoder = frame[frame["type"] == "encoder"]
    assert (encoder["nsubj_arcs"] == 3).all() and (encoder["nmod:poss_arcs"] == 0).all()
    assert (encoder["nsubj_head_to_dependent_baseline"] == 1.0).all()


def test_the_examples_answer_their_questions(table: pa.Table, tmp_path: Path, monkeypatch, capsys) -> None:
    keys = {"kind": "baseline", "model": "baseline", "corpus": "tatoeba_en_de", "title": "EN-DE", "seed": 1}
    keys |= {"scope": "", "lam": 0.1}
    pruned = keys | {"kind": "pruned", "model": "encoder_heads2", "scope": "encoder", "lam": None, "update": 50}
    gates = pruned | {"open_encoder": [[0.75, 0.75], [0.25]]}
    scores = {"encoder_heads": 4, "difference": -2.0, "difference_low": -3.0, "difference_high": -1.0}
    (tmp_path / "results/default/data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    relevance = [0.1, 0.9, 0.8, 0.2, *[0.5] * 8]
    heads = table.to_pandas().assign(**keys, relevance=relevance, functions=[["positional"], *[[]] * 11])
    left = heads[heads["head"] == 1].assign(**{name: value for name, value in pruned.items() if name != "update"})
    pd.concat([heads, left]).to_parquet("results/default/data/heads.parquet")
    pd.DataFrame([keys | scores, keys | scores | {"kind": "soft"}]).to_parquet("results/default/data/models.parquet")
    pd.DataFrame([gates]).to_parquet("results/default/data/logs.parquet")
    printed = []
    for code in blocks(DOCUMENT, "python"):
        exec(code, {})
        printed.append([line.split() for line in capsys.readouterr().out.splitlines()])
    heads, points, gates, survival = printed
    assert [row[:3] for row in heads] == [["layer", "head", "relevance"], ["1", "2", "0.9"], ["2", "1", "0.8"]]
    assert points[1:] == [["EN-DE", "0.1", "4", "-2.0", "-3.0", "-1.0"]]
    assert gates[-1] == ["50", "1.75"]
    # Of four encoder heads, the one with a function is left, and one of the others.
    assert [row[-2:] for row in survival[2:]] == [["0.333333", "3"], ["1.000000", "1"]]


CHECK = """
import pandas as pd
import torch
from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.functions import functions_of
from specialized_heads.heads.positional import Position
from specialized_heads.heads.shares import SHARES
from specialized_heads.heads.table import table_schema
from specialized_heads.report import style
from specialized_heads.report.figures import functions, survival
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.data import Tables

pieces = ["<unk>", "<s>", "</s>", "▁the", ",", "▁dog", "▁", "▁("]
best, queries = torch.tensor([[[1, 1, 2], [0, 1, 0]], [[0, 1, 0], [0, 0, 0]]]), torch.tensor([[True] * 3, [True, True, False]])
source = torch.tensor([[3, 4, 5], [3, 6, 2]])  # "the , dog", and without a mark "the _"
hits, number = SHARES[0].count(best, queries, source, ranks=None, cutoff=0, pieces=pieces)
assert (hits.tolist(), number) == ([[2, 1]], 3)
assert "punctuation" in table_schema(["nsubj"]).names
place = Position(0, 0.5, 0.5)
assert functions_of("encoder", place, margins={}, shares={"punctuation": 0.7}) == (["punctuation"], [])
assert functions_of("encoder", place, margins={}, shares={"punctuation": 0.69}) == ([], [])
assert style.FUNCTIONS["punctuation"]["facecolor"] == "#8FC29A"
assert "share at punctuation" in survival.SCORES
assert functions.PANELS["punctuation"] == "share at punctuation"
# The table shows the best share, and the number of heads beside it.
heads = pd.DataFrame({"corpus": "a", "kind": "baseline", "seed": 1, "type": "encoder", "layer": 1, "head": [1, 2]})
heads = heads.assign(punctuation=[0.235, 0.1], rarest=0.1, functions=[[], []], relations_certain=[[], []])
heads = heads.assign(**{"share_-1": 0.2, "share_+0": 0.2, "share_+1": 0.2, "obj_head_to_dependent_margin": 0.01})
heads = heads.assign(**{f"obj_head_to_dependent_margin_{end}": 0.01 for end in ("low", "high")}, positional_share=0.3)
models = pd.DataFrame([{"corpus": "a", "kind": "baseline", "seed": 1, "updates": 10, "dev_loss": 2.0, "metric": "BLEU"}])
tables = Tables(models, heads, *[pd.DataFrame({"corpus": [], "relation": []})] * 3)
line = functions.labels_shown(functions.labels_numbers(tables)).iloc[0]
assert (line["share at punctuation"], line["punctuation heads"]) == ("0.23", "0 of 2"), line
# Claims count a function of any name.
heads = heads.assign(functions=[["punctuation"], []], relations=[[], []], positional_offset=0)
assert Evidence().functions(heads) == [{"punctuation"}, set()]
"""


def test_a_head_function_takes_three_edits_and_its_definition(tmp_path: Path) -> None:
    """The guide in docs/extending.md, followed to the letter: it is measured, labelled and drawn."""
    shutil.copytree(PACKAGE, tmp_path / "specialized_heads", ignore=shutil.ignore_patterns("__pycache__"))
    module, share, row = [block for block in blocks(ROOT / "docs" / "extending.md", "python") if "unctuation" in block]
    (tmp_path / module.splitlines()[0].removeprefix("# src/")).write_text(module, encoding="utf-8")
    heads = tmp_path / "specialized_heads" / "heads"
    entries = {"shares.py": ("SHARES = (", share), "functions.py": ("FUNCTIONS = (", row)}
    for name, (registry, entry) in entries.items():
        text = (heads / name).read_text(encoding="utf-8").replace(registry, f"{registry}{entry.strip()}, ", 1)
        line = "from specialized_heads.heads.punctuation import punctuation_hits\n" * (name == "shares.py")
        (heads / name).write_text(line + text, encoding="utf-8")
    environment = ENVIRONMENT | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
