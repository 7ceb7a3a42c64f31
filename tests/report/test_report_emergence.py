"""When functions emerge in training, and how far they have come at its end."""

import pandas as pd
import pytest
from specialized_heads.report.experiment import Model, describe

from specialized_heads.report.beyond import emergence, emergence_table, functions


def heads(*, previous: float, margin: float, rarest: float = 0.1) -> pd.DataFrame:
    """Two encoder heads, one at the previous token and one that follows objects, and a decoder head that must not count."""
    rows = [
        ("encoder", 1, 0.7, previous, 0.02, 0.03, rarest),
        ("encoder", 2, 0.3, 0.01, 0.04, 0.05, 0.05),
        ("decoder", 1, 1.0, 1.0, 0.0, None, None),
    ]
    columns = ["type", "head", "relevance", "share_-1", "share_+0", "share_+1", "rarest"]
    table = pd.DataFrame(rows, columns=columns).assign(layer=1)
    table["obj_head_to_dependent_margin"] = [-0.2, margin, None]
    table["obj_head_to_dependent_margin_low"] = table["obj_head_to_dependent_margin"] - 0.05
    table["obj_head_to_dependent_margin_high"] = table["obj_head_to_dependent_margin"] + 0.05
    table["functions"] = [["positional"] if previous >= 0.9 else [], [], []]
    table["relations_certain"] = [[], ["obj_head_to_dependent"] if margin > 0.1 else [], []]
    return table


def log(*losses: float) -> pd.DataFrame:
    updates = [10 ** (n + 1) for n in range(len(losses))]
    frame = pd.DataFrame({"update": updates, "loss": 9.0, "dev_loss": losses})
    return pd.concat([frame, pd.DataFrame({"update": [5], "loss": [9.0], "dev_loss": [None]})], ignore_index=True)


BASELINE = describe("baseline", corpus="C", seed=1)


def at(tables: dict[int, pd.DataFrame]) -> dict[Model, pd.DataFrame]:
    """Tables of heads by checkpoint, from the update at which it was kept."""
    return {describe(f"checkpoint/update{update}", corpus="C", seed=1): table for update, table in tables.items()}


Training = tuple[dict[Model, pd.DataFrame], dict[Model, pd.DataFrame]]


@pytest.fixture
def training() -> Training:
    """The heads of two checkpoints and of the finished model, and the log of its training."""
    checkpoints = at({10: heads(previous=0.1, margin=-0.3), 100: heads(previous=0.9, margin=-0.2)})
    return checkpoints | {BASELINE: heads(previous=0.95, margin=0.2)}, {BASELINE: log(5.0, 2.0, 1.5)}


def curve(points: pd.DataFrame, name: str) -> list[float]:
    return points[points["name"] == name]["value"].tolist()


def test_each_curve_follows_the_best_encoder_head(training: Training) -> None:
    points = emergence.numbers(*training)
    assert curve(points, "previous token") == [0.1, 0.9, 0.95]
    assert curve(points, "next token") == [0.05, 0.05, 0.05]
    assert curve(points, "obj, head → dependent") == [-0.2, -0.2, 0.2]  # before the last moment, the other head's
    assert curve(points, "layer 1") == [0.7, 0.7, 0.7]
    assert points.loc[points["name"] == "layer 1", "update"].tolist() == [10, 100, 1000]  # the last one of the log
    assert points[points["measure"] == "loss"]["value"].tolist() == [5.0, 2.0, 1.5]


def test_the_table_is_in_the_order_in_which_functions_come(training: Training) -> None:
    rows = emergence_table.numbers(*training).set_index("name")
    assert rows.at["previous token", "half"] == 100
    assert rows.at["obj, head → dependent", "half"] == 1000
    assert rows.at["", "half"] == 100  # the loss falls, and has fallen half its way by then
    assert rows["half"].is_monotonic_increasing
    assert "100" in emergence_table.shown(rows.reset_index())["half-way update"].tolist()


def test_a_loss_that_was_not_measured_at_the_first_checkpoint_has_no_half_way(training: Training) -> None:
    tables, records = training
    late = {of: log.replace({"dev_loss": {5.0: None}}) for of, log in records.items()}
    rows = emergence_table.numbers(tables, late)
    assert "loss" not in rows["measure"].tolist()
    assert len(rows) == len(emergence_table.numbers(tables, records)) - 1


def test_a_loss_that_was_measured_before_the_first_checkpoint_counts_from_there(training: Training) -> None:
    tables, records = training
    early = {
        of: pd.concat([log, pd.DataFrame({"update": [2], "loss": [9.0], "dev_loss": [50.0]})])
        for of, log in records.items()
    }
    assert emergence_table.numbers(tables, early).equals(emergence_table.numbers(tables, records))


def test_corpora_may_have_their_first_checkpoints_at_different_updates(training: Training) -> None:
    tables, records = training
    later = {
        describe(f"checkpoint/update{update}", corpus="D", seed=1): heads(previous=0.1, margin=0.0)
        for update in (50, 80)
    }
    rows = emergence_table.numbers(tables | later, records)
    assert set(rows["corpus"]) == {"C", "D"}


def test_a_curve_that_comes_and_goes_counts_only_once_it_stays() -> None:
    shares = {10: 0.0, 100: 0.9, 1000: 0.2, 10_000: 0.8}
    tables = {moment: heads(previous=share, margin=-0.3) for moment, share in shares.items()}
    rows = emergence_table.numbers(at(tables), {}).set_index("name")
    assert rows.at["previous token", "half"] == 10_000


def test_an_experiment_without_checkpoints_has_a_figure_that_says_so() -> None:
    figure = emergence.draw(emergence.numbers({}, {}), thresholds={})
    assert "no checkpoints" in figure.axes[0].texts[0].get_text()


def test_the_best_heads_of_a_baseline_and_its_labels() -> None:
    other = describe("baseline", corpus="C", seed=2)
    tables = {BASELINE: heads(previous=0.95, margin=0.2, rarest=0.6), other: heads(previous=0.5, margin=0.05)}
    rows = functions.numbers(tables, {BASELINE: log(5.0, 2.0), other: log(5.0, 2.5)})
    assert rows[["share_-1", "share_+0", "margin", "positional", "syntactic"]].values.tolist() == [
        [0.95, 0.04, 0.2, 1, 1],
        [0.5, 0.04, 0.05, 0, 0],
    ]
    [line] = functions.shown(rows).to_dict("records")
    assert line["dev loss"] == "2.000 to 2.500"
    assert line["syntactic margin, points"] == "+5 to +20"
    [alone] = functions.shown(rows[:1]).to_dict("records")
    assert alone["syntactic margin, points"] == "+20 [15, 25] obj, head → dependent"
    assert line["positional heads"] == "0 to 1 of 2"
