"""Orders of heads: which ones are ranked, which is best, and what becomes of ties and missing values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specialized_heads.model.architecture import Architecture
from specialized_heads.pruning.criteria import at_random, best_first, values_of
from specialized_heads.pruning.scopes import heads_of, remove_heads
from specialized_heads.stage import UserError

NAN = float("nan")


@pytest.fixture
def uneven() -> Architecture:
    """Heads with their original numbers, from 0, and a layer without any."""
    sizes = {"source_vocabulary": 20, "target_vocabulary": 20, "width": 8, "feed_forward": 8, "head_width": 4}
    return Architecture(**sizes, encoder=((0, 3), (), (2,)), decoder=((1,), (), ()), cross=((), (0,), (5, 7)))


def table(tmp_path: Path, rows: list[tuple[str, int, int, float]]) -> Path:
    path = tmp_path / "heads.parquet"
    pd.DataFrame(rows, columns=["type", "layer", "head", "relevance"]).to_parquet(path)
    return path


def test_values_are_found_by_type_layer_and_head_whatever_the_order_of_the_table(tmp_path: Path) -> None:
    rows = [("cross", 1, 1, 0.7), ("encoder", 2, 1, 0.1), ("encoder", 1, 2, 0.5), ("encoder", 1, 1, NAN)]
    path = table(tmp_path, rows)
    wanted = [("encoder", 1, 1), ("encoder", 1, 2), ("encoder", 2, 1)]
    values = values_of(path, wanted, column="relevance")
    assert list(values) == wanted
    assert list(values.values())[1:] == [0.5, 0.1]
    assert np.isnan(values["encoder", 1, 1])


def test_mistakes_in_tables_are_named(tmp_path: Path) -> None:
    path = table(tmp_path, [("encoder", 1, 1, 0.5), ("encoder", 1, 1, 0.5)])
    with pytest.raises(UserError, match="encoder head 1 of layer 1 has 2 rows instead of one"):
        values_of(path, [("encoder", 1, 1)], column="relevance")
    with pytest.raises(UserError, match="encoder head 2 of layer 1 has 0 rows"):
        values_of(path, [("encoder", 1, 2)], column="relevance")
    with pytest.raises(UserError, match=r"heads\.parquet: column importance is missing"):
        values_of(path, [("encoder", 1, 1)], column="importance")
    with pytest.raises(UserError, match=r"none\.parquet: no such file"):
        values_of(tmp_path / "none.parquet", [], column="relevance")


def test_the_largest_value_is_best_ties_stay_in_order_and_heads_without_a_value_are_last() -> None:
    a, b, c, d, e = (("encoder", 1, head) for head in range(1, 6))
    values = {a: 0.1, b: NAN, c: 0.5, d: 0.1, e: -2.0}
    assert best_first(values, origin="x") == [c, a, d, e, b]


def test_a_type_without_any_value_is_an_error() -> None:
    values = {("encoder", 1, 1): 0.4, ("decoder", 1, 1): NAN, ("decoder", 1, 2): NAN}
    with pytest.raises(UserError, match="heads.parquet: confidence: no decoder head has a value"):
        best_first(values, origin="heads.parquet: confidence")


def test_random_orders_are_nested_and_differ_by_seed(uneven: Architecture) -> None:
    heads = heads_of(uneven, scope="all")
    first = at_random(heads, seed=1)
    assert sorted(first) == sorted(heads)
    assert first == at_random(heads, seed=1)
    assert len({tuple(at_random(heads, seed=seed)) for seed in range(20)}) > 15
    # Every head comes first for some seed: the order of types does not show.
    assert {at_random(heads, seed=seed)[0] for seed in range(100)} == set(heads)


def test_heads_of_a_scope_have_the_numbers_from_before_any_pruning(tiny_model) -> None:
    model = tiny_model(heads=3, width=12)
    model.keep_heads({"encoder": [[1], [0, 2]], "decoder": [[], [1, 2]], "cross": [[0, 2], []]})
    encoder = [("encoder", 1, 2), ("encoder", 2, 1), ("encoder", 2, 3)]
    assert heads_of(model.architecture, scope="encoder") == encoder
    others = [("decoder", 2, 2), ("decoder", 2, 3), ("cross", 1, 1), ("cross", 1, 3)]
    assert heads_of(model.architecture, scope="all") == encoder + others
    remove_heads(model, {("encoder", 2, 1), ("cross", 1, 3), ("cross", 2, 1)})
    assert model.architecture.encoder == ((1,), (2,))
    assert model.architecture.decoder == ((), (1, 2))
    assert model.architecture.cross == ((0,), ())
