"""The tables are what docs/heads.md says, column by column; the examples there run."""

import re
from itertools import product

import pandas as pd
import pyarrow as pa
import pytest
from pages import ROOT, blocks

from specialized_heads.heads.analyse import head_rows, measure, table_schema
from specialized_heads.heads.functions import frequency_ranks
from specialized_heads.heads.syntactic import Sentence
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.relations import DIRECTIONS, Arc

DOCUMENT = ROOT / "docs" / "heads.md"
RELATIONS = ["nsubj", "nmod:poss"]


def test_every_column_is_documented() -> None:
    described = re.findall(
        r"^\| `([^`]+)` \| ", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    described = described[described.index("type") : described.index("relations_certain") + 1]
    assert set(table_schema(RELATIONS).names) == {
        name.replace("<relation>", relation).replace("<direction>", direction)
        for name, relation, direction in product(described, RELATIONS, DIRECTIONS)
    }


@pytest.fixture
def table(tiny_model, store) -> pa.Table:
    """The table of a small model on four sentences of three words each, a word being a piece."""
    data = store([[5, 9, 4], [8, 6, 7], [6, 6, 12], [11, 5, 9]], [[4, 12], [7, 15, 9], [11], []])
    sentences = {
        number: Sentence([[0], [1], [2]], [[1.0]] * 3, [Arc("nsubj", 1, 0)]) for number in range(3)
    }
    model = tiny_model()
    offsets = {("nsubj", "head_to_dependent"): -1, ("nsubj", "dependent_to_head"): 1}
    offsets |= {("nmod:poss", direction): None for direction in DIRECTIONS}
    ranks = frequency_ranks(data.source, vocabulary=20)
    counted = measure(model, data, sentences, offsets, ranks=ranks, cutoff=2)
    relevance = {
        (kind, layer, head): (0.5, 0.01) for kind in KINDS for layer in (1, 2) for head in (1, 2)
    }
    rows = head_rows(model, counted, relevance, RELATIONS, seed=1)
    return pa.Table.from_pylist(rows, schema=table_schema(RELATIONS))


def test_rows_have_what_exists_for_their_type(table: pa.Table) -> None:
    assert table.num_rows == 12
    frame = table.to_pandas()
    missing = {
        kind: set(frame.columns[frame[frame["type"] == kind].isna().all()]) for kind in KINDS
    }
    absent = {
        name
        for name in frame.columns
        if name.startswith("nmod:poss_") and not name.endswith("_arcs")
    }
    syntactic = {name for name in frame.columns if name.startswith(tuple(RELATIONS))}
    encoder_only = syntactic | {"rarest", "two_rarest", "relations", "relations_certain"}
    assert missing["encoder"] == absent
    assert missing["decoder"] == encoder_only | {"eos_weight", "share_+1"}
    expected = encoder_only | {"positional_share_raw", "share_-1", "share_+0", "share_+1"}
    assert missing["cross"] == expected
    encoder = frame[frame["type"] == "encoder"]
    assert (encoder["nsubj_arcs"] == 3).all() and (encoder["nmod:poss_arcs"] == 0).all()
    assert (encoder["nsubj_head_to_dependent_baseline"] == 1.0).all()


def test_the_examples_answer_their_questions(table, tmp_path, monkeypatch, capsys) -> None:
    keys = {"kind": "baseline", "model": "baseline", "corpus": "tatoeba_en_de", "title": "EN-DE"}
    keys |= {"seed": 1}
    keys |= {"scope": "", "lam": 0.1}
    pruned = keys | {
        "kind": "pruned",
        "model": "encoder_heads2",
        "scope": "encoder",
        "lam": None,
        "update": 50,
    }
    gates = pruned | {"open_encoder": [[0.75, 0.75], [0.25]]}
    scores = {
        "encoder_heads": 4,
        "difference": -2.0,
        "difference_low": -3.0,
        "difference_high": -1.0,
    }
    (tmp_path / "results/default/data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    relevance = [0.1, 0.9, 0.8, 0.2, *[0.5] * 8]
    heads = table.to_pandas().assign(
        **keys, relevance=relevance, functions=[["positional"], *[[]] * 11]
    )
    left = heads[heads["head"] == 1].assign(
        **{name: value for name, value in pruned.items() if name != "update"}
    )
    pd.concat([heads, left]).to_parquet("results/default/data/heads.parquet")
    pd.DataFrame([keys | scores, keys | scores | {"kind": "soft"}]).to_parquet(
        "results/default/data/models.parquet"
    )
    pd.DataFrame([gates]).to_parquet("results/default/data/logs.parquet")
    printed = []
    for code in blocks(DOCUMENT, "python"):
        exec(code, {})
        printed.append([line.split() for line in capsys.readouterr().out.splitlines()])
    heads, points, gates, survival = printed
    expected = [["layer", "head", "relevance"], ["1", "2", "0.9"], ["2", "1", "0.8"]]
    assert [row[:3] for row in heads] == expected
    assert points[1:] == [["EN-DE", "0.1", "4", "-2.0", "-3.0", "-1.0"]]
    assert gates[-1] == ["50", "1.75"]
    # Of four encoder heads, the one with a function is left, and one of the others.
    assert [row[-2:] for row in survival[2:]] == [["0.333333", "3"], ["1.000000", "1"]]
