"""Gates over time, and the controls of pruning beside each other."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import controls, gates
from specialized_heads.report.data import Tables

FULL = [8, 8]


@pytest.fixture
def logged(make):
    """`logged({name: log})`: the tables of one corpus with these logs of training."""
    return lambda logs, title="EN-FR": make.tables(models={title: [make.model()]}, logs={title: logs})


def test_gates_over_time(logged) -> None:
    first = pd.DataFrame({"update": [5, 9], "open_encoder": [[[0.9, 0.8]], [[0.7, 0.1]]]})
    # Of the second model, the first layer has no cross-attention.
    second = pd.DataFrame({"update": [5], "open_encoder": [[[0.9]]], "open_cross": [[[], [0.3, 0.4]]]})
    logs = {"baseline": first[["update"]], "pruned/encoder_lambda0.01": first, "pruned/all_heads3": second}
    table = gates.numbers(logged(logs | {"pruned/all_heads3/seed2": second}))
    assert table.drop(columns="corpus").fillna(-1).to_numpy().tolist() == [
        ["encoder", 0.01, -1, "encoder", 1, 1, 5, 0.9],
        ["encoder", 0.01, -1, "encoder", 1, 2, 5, 0.8],
        ["encoder", 0.01, -1, "encoder", 1, 1, 9, 0.7],
        ["encoder", 0.01, -1, "encoder", 1, 2, 9, 0.1],
        ["all", -1, 3, "encoder", 1, 1, 5, 0.9],
        ["all", -1, 3, "cross", 2, 1, 5, 0.3],
        ["all", -1, 3, "cross", 2, 2, 5, 0.4],
    ]


def test_a_long_sweep_shows_as_many_as_fit_both_ends_among_them_and_says_so(logged) -> None:
    log = pd.DataFrame({"update": [5], "open_encoder": [[[0.9]]], "open_cross": [[[0.9]]]})
    logs = {f"pruned/encoder_lambda{n / 1000}": log for n in range(1, 13)}
    table = gates.numbers(logged(logs | {"pruned/all_lambda0.5": log}))
    assert table["lam"].nunique() == 13
    figure = gates.draw(table)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[:5] == titles[5:10] == ["λ 0.001", "λ 0.004", "λ 0.007", "λ 0.009", "λ 0.012"]
    assert titles[10:] == ["λ 0.5", "λ 0.5"]
    assert "encoder only: 5 of 12 models shown" in figure.get_suptitle()


def test_a_panel_per_model_and_nothing_without_models(logged, make) -> None:
    log = pd.DataFrame({"update": [10], "open_encoder": [[[0.9] * 8] * 2]})
    figure = gates.draw(gates.numbers(logged({f"pruned/encoder_lambda{n}": log for n in (1, 2, 3)})))
    assert {"λ 1", "λ 2", "λ 3", "EN-FR: gates during pruning"} <= set(make.texts(figure))
    assert len(figure.axes) == 3 + 1  # and the colour bar
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["1", "2"]
    nothing = gates.numbers(logged({"baseline": log}))
    assert nothing.columns.tolist() == gates.COLUMNS and "no pruned models" in make.texts(gates.draw(nothing))[0]


def controlled(make, *seeds: int) -> Tables:
    rows = []
    for seed in seeds:
        rows.append(make.model(kept=[FULL] * 3, seed=seed, loss=-seed))
        rows.append(make.model("checkpoint/update5", [FULL] * 3, seed=seed))
        for number, kind in enumerate(("regularised", "count", "scratch", "soft", "pruned", "cut/x", "finetuned/x")):
            name = f"{kind}{'_' if '/' in kind else '/'}all"
            for target, loss in (("lambda0.01", 1 + number - 0.5 * seed), ("heads12", 5 + number)):
                kept = [[4, number], FULL, [1, 1]]
                rows.append(make.model(f"{name}_{target}", kept, seed=seed, loss=loss, p_value=0.1 * seed))
    return make.tables(models={"EN-FR": rows})


def test_controls_stand_beside_their_pruned_model(make) -> None:
    table = controls.shown(controls.numbers(controlled(make, 1)))
    assert table["model"].tolist() == ["baseline", *["pruned", "soft", "scratch", "count", "regularised"] * 2]
    assert table["target"].tolist() == ["", *["λ 0.01"] * 5, *["12 heads"] * 5]
    assert table["enc/dec/cross"].tolist()[:2] == ["16/16/16", "8/16/2"]
    assert table["BLEU"].tolist()[1] == "25.5 [24.5, 26.5]"
    assert "n" not in table


def test_controls_over_seeds(make) -> None:
    numbers = controls.numbers(controlled(make, 1, 2, 3))
    pruned = numbers[(numbers["kind"] == "pruned") & (numbers["lam"] == 0.01)].squeeze()
    assert pruned[["seeds", "bleu", "bleu_sd", "p_value"]].tolist() == pytest.approx([3, 26.0, 0.5, 0.3])
    [line] = controls.shown(numbers).query("model == 'pruned' and target == 'λ 0.01'").to_dict("records")
    assert (line["BLEU"], line["n"]) == ("26.0 ± 0.5", "3")
