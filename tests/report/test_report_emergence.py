"""When functions emerge in training, and how far they have come at its end."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import emergence, emergence_table, functions
from specialized_heads.report.data import Tables


def heads(*, previous: float, margin: float, rarest: float = 0.1) -> pd.DataFrame:
    """Two encoder heads, one at the previous token and one that follows objects, and a decoder head that must not count."""
    rows = [
        ("encoder", 1, 0.7, previous, 0.02, 0.03, rarest, -0.2),
        ("encoder", 2, 0.3, 0.01, 0.04, 0.05, 0.05, margin),
        ("decoder", 1, 1.0, 1.0, 0.0, None, None, None),
    ]
    columns = [
        "type",
        "head",
        "relevance",
        "share_-1",
        "share_+0",
        "share_+1",
        "rarest",
        "obj_head_to_dependent_margin",
    ]
    table = pd.DataFrame(rows, columns=columns).assign(layer=1)
    for end, add in (("low", -0.05), ("high", 0.05)):
        table[f"obj_head_to_dependent_margin_{end}"] = table["obj_head_to_dependent_margin"] + add
    table["functions"] = [["positional"] if previous >= 0.9 else [], [], []]
    table["relations_certain"] = [[], ["obj_head_to_dependent"] if margin > 0.1 else [], []]
    return table


def log(*losses: float | None) -> pd.DataFrame:
    """Losses at updates 10, 100 and so on, and a record without one."""
    updates = [5, *(10 ** (n + 1) for n in range(len(losses)))]
    return pd.DataFrame({"update": updates, "loss": 9.0, "dev_loss": [None, *losses]}).astype({"dev_loss": float})


LOG = log(5.0, 2.0, 1.5)
TRAINING = {
    "checkpoint/update10": heads(previous=0.1, margin=-0.3),
    "checkpoint/update100": heads(previous=0.9, margin=-0.2),
    "baseline": heads(previous=0.95, margin=0.2),
}


@pytest.fixture
def trained(make):
    """`trained({"C": ...}, {"C": ...})`: the tables of these heads and logs."""

    def tables(heads: dict | None = None, logs: dict | None = None) -> Tables:
        heads = heads or {"C": TRAINING}
        relations = dict.fromkeys(heads, make.relations(relations=("obj",)))
        return make.tables(heads=heads, logs=logs or dict.fromkeys(heads, LOG), relations=relations)

    return tables


def curve(points: pd.DataFrame, name: str, column: str = "value") -> list[float]:
    return points[points["name"] == name][column].tolist()


def test_each_curve_follows_the_best_encoder_head(trained) -> None:
    points = emergence.numbers(trained())
    assert curve(points, "previous token") == [0.1, 0.9, 0.95]
    assert curve(points, "next token") == [0.05, 0.05, 0.05]
    assert curve(points, "obj, head → dependent") == [-0.2, -0.2, 0.2]  # before the last moment, the other head's
    assert curve(points, "obj, head → dependent", "threshold") == [0.1] * 3
    assert curve(points, "layer 1") == [0.7, 0.7, 0.7]
    assert curve(points, "layer 1", "update") == [10, 100, 1000]  # the last one of the log
    assert points[points["measure"] == "loss"]["value"].tolist() == [5.0, 2.0, 1.5]


def test_the_table_is_in_the_order_in_which_functions_come(trained) -> None:
    rows = emergence_table.numbers(trained())
    halves = rows.set_index("name")["half"]
    assert halves[["previous token", "obj, head → dependent"]].tolist() == [100, 1000]
    assert halves[""] == 100  # the loss falls, and has fallen half its way by then
    assert halves.is_monotonic_increasing
    assert "1,000" in emergence_table.shown(rows)["half-way update"].tolist()


def test_a_loss_counts_from_the_first_checkpoint_on(trained) -> None:
    rows = emergence_table.numbers(trained())
    late = emergence_table.numbers(trained(logs={"C": log(None, 2.0, 1.5)}))
    assert "loss" not in late["measure"].tolist() and len(late) == len(rows) - 1
    before = pd.concat([LOG, pd.DataFrame({"update": [2], "loss": [9.0], "dev_loss": [50.0]})])
    assert emergence_table.numbers(trained(logs={"C": before})).equals(rows)


def test_a_curve_that_comes_and_goes_counts_only_once_it_stays(trained) -> None:
    shares = {10: 0.0, 100: 0.9, 1000: 0.2, 10_000: 0.8}
    tables = {f"checkpoint/update{update}": heads(previous=share, margin=-0.3) for update, share in shares.items()}
    rows = emergence_table.numbers(trained({"C": tables}))
    assert rows.set_index("name").at["previous token", "half"] == 10_000


def test_the_best_heads_of_a_baseline_and_its_labels(trained) -> None:
    both = {"baseline": heads(previous=0.95, margin=0.2), "baseline/seed2": heads(previous=0.5, margin=0.05)}
    tables = trained({"C": both})
    tables.models["dev_loss"] = [2.0, 2.5]
    rows = functions.numbers(tables)
    assert rows[["share_-1", "share_+0", "margin", "positional", "syntactic"]].values.tolist() == [
        [0.95, 0.04, 0.2, 1, 1],
        [0.5, 0.04, 0.05, 0, 0],
    ]
    [line] = functions.shown(rows).to_dict("records")
    assert (line["dev loss"], line["positional heads"]) == ("2.000 to 2.500", "0 to 1 of 2")
    assert line["syntactic margin, points"] == "+5 to +20"
    [alone] = functions.shown(rows[:1]).to_dict("records")
    assert alone["syntactic margin, points"] == "+20 [15, 25] obj, head → dependent"
