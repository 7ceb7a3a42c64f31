"""Gates over time, dead heads, and the controls of pruning beside each other."""

import pandas as pd
import pytest
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import read_log

from specialized_heads.report.beyond import controls, gates
from specialized_heads.stage import UserError

NAN = float("nan")
FULL = [8, 8]


def record(update: int, values: dict[str, list[float]]) -> dict:
    return {"update": update, "loss": 1.0, "open": values}


def series(make, count: int, log: pd.DataFrame) -> dict[Model, pd.DataFrame]:
    return make.by_model({f"pruned/encoder_lambda{(1 + n) / 1000}/seed1": log for n in range(count)})


def test_gates_over_time(make) -> None:
    first = pd.DataFrame([record(5, {"encoder.1": [0.9, 0.8]}), record(9, {"encoder.1": [0.7, 0.1]})])
    second = pd.DataFrame([record(5, {"encoder.1": [0.9], "cross.2": [0.3, 0.4]})])
    logs = {"pruned/encoder_lambda0.01/seed1": first, "pruned/all_heads3/seed1": second}
    table = gates.numbers(make.by_model(logs))
    assert table.fillna(-1).to_numpy().tolist() == [
        ["encoder", 0.01, -1, "encoder", 1, 1, 5, 0.9],
        ["encoder", 0.01, -1, "encoder", 1, 2, 5, 0.8],
        ["encoder", 0.01, -1, "encoder", 1, 1, 9, 0.7],
        ["encoder", 0.01, -1, "encoder", 1, 2, 9, 0.1],
        ["all", -1, 3, "encoder", 1, 1, 5, 0.9],
        ["all", -1, 3, "cross", 2, 1, 5, 0.3],
        ["all", -1, 3, "cross", 2, 2, 5, 0.4],
    ]


def test_a_long_sweep_shows_as_many_as_fit_both_ends_among_them_and_says_so(make) -> None:
    log = pd.DataFrame([record(5, {"encoder.1": [0.9], "cross.1": [0.9]})])
    table = gates.numbers(series(make, 12, log) | make.by_model({"pruned/all_lambda0.5/seed1": log}))
    assert table["lam"].nunique() == 13
    figure = gates.draw(table, title="EN-FR")
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[:5] == titles[5:10] == ["λ 0.001", "λ 0.004", "λ 0.007", "λ 0.009", "λ 0.012"]
    assert titles[10:] == ["λ 0.5", "λ 0.5"]
    assert figure.get_suptitle() == "EN-FR: gates during pruning; encoder only: 5 of 12 models shown"


def test_panels_of_gates(make) -> None:
    log = pd.DataFrame([record(10, {f"encoder.{n}": [0.9] * 8 for n in (1, 2)})])
    figure = gates.draw(gates.numbers(series(make, 3, log)), title="EN-FR")
    written = make.texts(figure)
    assert {"λ 0.001", "λ 0.002", "λ 0.003", "EN-FR: gates during pruning"} <= set(written)
    assert len(figure.axes) == 3 + 1  # and the colour bar
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["1", "2"]


def test_without_pruned_models_the_gates_say_so(stage, make) -> None:
    stem = stage("gates", {"title": "EN-FR", "runs": []}, records=[])
    assert stem.with_suffix(".csv").read_text(encoding="utf-8") == ",".join(gates.COLUMNS) + "\n"
    assert "no pruned models" in " ".join(make.texts(gates.draw(gates.numbers({}), title="EN-FR")))


def test_a_log_without_gates_is_a_mistake(tmp_path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"update": 5, "loss": 1.0}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"log\.jsonl: has no column open"):
        read_log(path, column="open")
    with pytest.raises(UserError, match=r"none\.jsonl: cannot be read"):
        read_log(tmp_path / "none.jsonl")


def scores(make, seeds: tuple[int, ...] = (1,)) -> pd.DataFrame:
    rows = []
    for seed in seeds:
        rows.append(make.score_row("baseline", "", NAN, seed, 30.0 + seed, [FULL, FULL, FULL]))
        for number, kind in enumerate(("regularised", "count", "scratch", "soft", "pruned", "cut", "finetuned")):
            kept = [[4, number], FULL, [1, 1]]
            rows.append(make.score_row(kind, "all", 0.01, seed, 29.0 - number + 0.5 * seed, kept))
            rows.append(make.score_row(kind, "all", NAN, seed, 25.0 - number, kept, asked=12))
        rows.append(make.score_row("checkpoint", "", NAN, seed, 20.0, [FULL, FULL, FULL]))
    return pd.DataFrame(rows)


def test_controls_stand_beside_their_pruned_model(make) -> None:
    numbers = controls.numbers({"EN-FR": scores(make)})
    table = controls.shown(numbers)
    assert table["model"].tolist() == ["baseline", *["pruned", "soft", "scratch", "count", "regularised"] * 2]
    assert table["target"].tolist() == ["", *["λ 0.01"] * 5, *["12 heads"] * 5]
    assert table["enc/dec/cross"].tolist()[:2] == ["16/16/16", "8/16/2"]
    assert table["BLEU"].tolist()[1] == "25.5 [24.8, 26.2]"
    assert "n" not in table
    assert numbers["bleu"].tolist()[1] == 25.5 and numbers["bleu_sd"].isna().all()


def test_controls_over_seeds(make, stage, write) -> None:
    frame = scores(make, seeds=(1, 2, 3))
    numbers = controls.numbers({"EN-FR": frame})
    pruned = numbers[(numbers["kind"] == "pruned") & (numbers["lam"] == 0.01)].squeeze()
    assert (pruned["seeds"], pruned["bleu"], pruned["bleu_sd"]) == (3, 26.0, pytest.approx(0.5))
    own = frame[(frame["kind"] == "pruned") & (frame["lam"] == 0.01)]
    assert pruned["p_value"] == own["p_value"].max()
    stem = stage("controls", {"titles": ["EN-FR"]}, scores=[write("scores.parquet", frame)])
    assert "| pruned | 8/16/2 | 900 | 26.0 ± 0.5 | 3 |" in stem.with_suffix(".md").read_text(encoding="utf-8")


def test_controls_of_nothing(stage) -> None:
    assert pd.read_csv(stage("controls", {"titles": []}, scores=[]).with_suffix(".csv")).empty
