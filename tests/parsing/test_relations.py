"""Stage relations: arcs, histograms and the fixed-offset baseline agree with hand counts."""

from collections import Counter
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.parsing import relations
from specialized_heads.parsing.relations import Arc, arcs, offset_baseline, relation_table
from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.stage import UserError


def tree(*words: tuple[str, int, str]) -> list[Word]:
    """Words from (form, head, relation), with one space between them."""
    found, start = [], 0
    for form, head, relation in words:
        found.append(Word(form, start, start + len(form), head, relation, "X"))
        start += len(form) + 1
    return found


# Two subjects before the verb (one of them passive), one after it.
CATS = tree(
    ("Cats", 2, "nsubj"),
    ("like", 0, "root"),
    ("big", 4, "amod"),
    ("mice", 2, "obj"),
    (".", 2, "punct"),
)
MICE = tree(("Mice", 3, "nsubj:pass"), ("are", 3, "aux:pass"), ("eaten", 0, "root"))
HERE = tree(("Here", 2, "advmod"), ("come", 0, "root"), ("cats", 2, "nsubj"))


def counted(*trees: list[Word], relations: list[str]) -> list[dict]:
    """The rows of the table of these sentences."""
    return relation_table([arcs(words, relations) for words in trees], relations).to_pylist()


STANFORD = tree(
    ("Mice", 3, "nsubjpass"), ("are", 3, "auxpass"), ("eaten", 0, "root"), ("cats", 3, "dobj")
)
LIGHT = tree(("Take", 0, "root"), ("part", 1, "comp:obj@lvc"))  # Surface-Syntactic UD
PARTICLE = tree(("Bond", 2, "nn"), ("gave", 0, "root"), ("up", 2, "prt"))
CLAUSE = tree(("a", 2, "advcl"), ("b", 0, "root"))


@pytest.mark.parametrize(
    ("words", "relations", "expected"),
    [
        (CATS, ["nsubj", "obj", "amod"], [Arc("nsubj", 1, 0), Arc("amod", 3, 2), Arc("obj", 1, 3)]),
        # Subtypes count with their main type, longer names do not; a subtype counts alone, and
        # beside its main type.
        (MICE, ["nsubj"], [Arc("nsubj", 2, 0)]),
        (CLAUSE, ["adv", "advmod"], []),
        (MICE, ["nsubj", "nsubj:pass"], [Arc("nsubj", 2, 0), Arc("nsubj:pass", 2, 0)]),
        (LIGHT, ["comp", "comp:obj"], [Arc("comp", 0, 1), Arc("comp:obj", 0, 1)]),
        # Stanford's names mean the same on both sides.
        (CATS, ["dobj"], [Arc("dobj", 1, 3)]),
        (PARTICLE, ["nn", "prt"], [Arc("nn", 1, 0), Arc("prt", 1, 2)]),
        (STANFORD, ["nsubj:pass", "nsubjpass"], [Arc("nsubj:pass", 2, 0), Arc("nsubjpass", 2, 0)]),
    ],
)
def test_arcs(words: list[Word], relations: list[str], expected: list[Arc]) -> None:
    """Arcs are positions in the list of words."""
    assert arcs(words, relations) == expected


def test_table_counts_both_directions() -> None:
    rows = counted(CATS, MICE, HERE, CATS, relations=["nsubj", "iobj"])
    both = product(["nsubj", "iobj"], ["head_to_dependent", "dependent_to_head"])
    assert [(row["relation"], row["direction"]) for row in rows] == list(both)
    assert rows[0] == {
        "relation": "nsubj",
        "direction": "head_to_dependent",
        "arcs": 4,
        "baseline_offset": -1,
        "baseline_accuracy": 0.5,
        "offsets": [-2, -1, 1],
        "counts": [1, 2, 1],
    }
    expected = (1, [-1, 1, 2], [1, 2, 1])
    assert (rows[1]["baseline_offset"], rows[1]["offsets"], rows[1]["counts"]) == expected
    assert rows[2]["arcs"] == 0 and rows[2]["baseline_accuracy"] is None
    assert rows[2]["offsets"] == []


def test_equally_frequent_offsets() -> None:
    assert offset_baseline(Counter({3: 2, -1: 2, 1: 2, 2: 1})) == (-1, 2 / 7)
    assert offset_baseline(Counter({-3: 2, 2: 2})) == (2, 0.5)
    assert offset_baseline(Counter()) == (None, None)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {"parses": tmp_path / "parses.parquet", "output": tmp_path / "relations.parquet"}


def test_stage_writes_the_table_and_names_what_does_not_occur(call, caplog, files) -> None:
    settings = {"relations": ["nsubj", "vocative"]}
    write_parses(files["parses"], [CATS, [], HERE])
    call(relations, settings=settings, **files)
    assert pq.read_table(files["output"]).to_pylist() == counted(
        CATS, HERE, relations=["nsubj", "vocative"]
    )
    assert "no arc of 'vocative'; the parses contain advmod, amod, nsubj, obj, punct" in caplog.text


def test_stage_stops_where_no_relation_occurs_and_says_what_does(call, files) -> None:
    write_parses(files["parses"], [CATS, MICE])
    there = "amod, aux:pass, nsubj, nsubj:pass, obj, punct"
    with pytest.raises(UserError, match=rf"'nsbj', 'zzz'; the parses contain {there}$"):
        call(relations, settings={"relations": ["nsbj", "zzz"]}, **files)
    with pytest.raises(UserError, match="obj and dobj are one relation"):
        call(relations, settings={"relations": ["obj", "nsubj", "dobj"]}, **files)
    assert not files["output"].exists()
