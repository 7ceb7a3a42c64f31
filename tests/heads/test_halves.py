"""Labels on the halves of the analysis set, on counts whose answers are known."""

from collections.abc import Callable

import numpy as np
import pytest

from specialized_heads.config.sections import Heads
from specialized_heads.heads.halves import labels_on_halves
from specialized_heads.heads.measure import Counted
from specialized_heads.model.transformer import KINDS

SETTINGS = Heads(relations=["nsubj", "obj"], least_arcs=10)
CHANCE = np.array([30.0, 70.0, 100.0, 70.0, 30.0])  # queries with a key at positions -2 to 2, on either half


@pytest.fixture
def labels(tiny_model) -> Callable[..., list[tuple]]:
    """`labels(offsets=..., ...)`: the report on a model of one encoder head, whose counts are 0 where not given."""
    model = tiny_model(layers=1)
    model.keep_heads({"encoder": [[0]], "decoder": [[]], "cross": [[]]})

    def run(offsets=((0,) * 5,) * 2, rare=(0, 0), hits=(0, 0), arcs=(20, 20)) -> list[tuple]:
        empty = {kind: np.zeros((2, 0, 5), dtype=int) for kind in KINDS}
        arc_counts = np.zeros((2, 2, 2), dtype=int)
        arc_counts[:, 0] = np.array(arcs)[:, None]  # nsubj; sentence 0 is even, sentence 1 odd
        hit_counts = np.zeros((2, 1, 2, 2), dtype=int)
        hit_counts[:, 0, 0, 0] = hits
        counted = Counted(
            queries={},
            confidence={},
            entropy={},
            eos={},
            offsets=empty | {"encoder": np.array(offsets)[:, None]},
            visible={kind: np.stack([np.stack([CHANCE, CHANCE])] * 2) for kind in KINDS},
            rare=np.array(rare)[:, None, None].repeat(2, axis=1),
            rare_queries=np.array([100, 100]),
            sentences=np.array([0, 1]),
            hits=hit_counts,
            fixed=np.zeros((2, 2, 2), dtype=int),
            arcs=arc_counts,
        )
        rows = labels_on_halves(model, counted, SETTINGS)
        assert all((row["type"], row["layer"], row["head"]) == ("encoder", 1, 1) for row in rows)
        return [(row["label"], row["offset"], row["scores"], row["holds"]) for row in rows]

    return run


def test_a_label_on_both_halves_holds(labels) -> None:
    assert labels(offsets=[(0, 70, 10, 20, 0), (0, 63, 37, 0, 0)]) == [("positional", -1, [1.0, 0.9], [True, True])]
    assert labels(rare=(50, 60)) == [("rare words", None, [0.5, 0.6], [True, True])]
    assert labels(hits=(2, 3)) == [("nsubj_head_to_dependent", None, [0.1, 0.15], [True, True])]


def test_a_label_on_one_half_does_not_hold_on_the_other(labels) -> None:
    assert labels(offsets=[(0, 62, 38, 0, 0), (0, 63, 37, 0, 0)]) == [
        ("positional", -1, [pytest.approx(62 / 70), 0.9], [False, True])
    ]
    assert labels(rare=(50, 49)) == [("rare words", None, [0.5, 0.49], [True, False])]
    assert labels(hits=(2, 1)) == [("nsubj_head_to_dependent", None, [0.1, 0.05], [True, False])]


def test_relations_with_few_arcs_on_a_half_are_left_out(labels) -> None:
    assert labels(hits=(20, 9), arcs=(20, 9)) == []
    assert len(labels(hits=(20, 10), arcs=(20, 10))) == 1
