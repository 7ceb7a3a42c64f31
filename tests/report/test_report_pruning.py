"""Gates over time, dead heads, and the controls of pruning beside each other."""

import json

import pandas as pd
import pytest

from specialized_heads.pruning import dead_heads as stage_dead_heads
from specialized_heads.report.beyond import controls, dead_heads, gates
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import read_log
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


@pytest.fixture
def dead(call, tmp_path):
    """`dead({...}, ...)`: what the stage writes of these gates.json, read back."""

    def run(*values: dict) -> list[dict]:
        paths = []
        for number, value in enumerate(values):
            paths.append(tmp_path / f"gates{number}.json")
            paths[-1].write_text(json.dumps(value), encoding="utf-8")
        rows = [{"model": f"pruned/{number}", "seed": 1} for number in range(len(values))]
        call(stage_dead_heads, settings={"rows": rows}, gates=paths, output=tmp_path / "dead.json")
        return json.loads((tmp_path / "dead.json").read_text(encoding="utf-8"))

    return run


def gate(kind: str, layer: int, head: int, kept: bool) -> dict:
    return {"type": kind, "layer": layer, "head": head, "log_alpha": 0.0, "p_open": 0.5, "soft": 0.5, "kept": kept}


DECIDED = {"expected": 2.04, "decided": 0.75, "loss_hard": 1.25, "loss_soft": 1.2}
ENCODER = {"scope": "encoder", "penalty": 0.01, "heads": None, "collapse": None} | DECIDED
ALL = {"scope": "all", "penalty": None, "heads": 2, "collapse": "a sentence"} | DECIDED


def test_dead_heads(dead) -> None:
    kept = [gate("encoder", 1, 1, False), gate("encoder", 1, 2, True), gate("encoder", 2, 2, False)]
    every = [gate(kind, 1, head, head == 2) for kind in ("encoder", "decoder", "cross") for head in (1, 2)]
    first, second = dead({**ENCODER, "rows": kept}, {**ALL, "rows": every})
    gone = [{"layer": 1, "head": 1}, {"layer": 2, "head": 2}]
    assert first["dead"] == {"encoder": gone, "decoder": [], "cross": []}
    assert first["gated"] == {"encoder": 3, "decoder": 0, "cross": 0}
    assert (first["model"], first["scope"], first["penalty"], first["heads"]) == ("pruned/0", "encoder", 0.01, None)
    assert second["dead"]["cross"] == [{"layer": 1, "head": 1}]
    assert second["collapse"] == "a sentence"


def test_table_of_dead_heads(dead, stage, write) -> None:
    kept = [gate("encoder", 1, 1, False), gate("encoder", 1, 2, False), gate("encoder", 2, 2, False)]
    every = [gate(kind, 1, head, kind != "cross") for kind in ("encoder", "decoder", "cross") for head in (1, 2)]
    models = dead({**ENCODER, "rows": kept}, {**ALL, "rows": every})
    stem = stage("dead_heads", {"titles": ["EN-FR"]}, dead=[write("d.json", models)])
    table = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert r"| EN-FR | encoder | λ 0.01 | 1: 1 2; 2: 2 \[3/3\] | – | – | 2.0 | 75% | 1.250 / 1.200 |  |" in table
    cells = r"\[0/2\] | \[0/2\] | 1: 1 2 \[2/2\] | 2.0 | 75% | 1.250 / 1.200"
    assert f"| EN-FR | all | 2 heads | {cells} | a sentence |" in table
    numbers = pd.read_csv(stem.with_suffix(".csv"))
    assert list(numbers) == dead_heads.COLUMNS
    assert len(numbers) == 5
    assert numbers["remark"].fillna("").tolist() == [""] * 3 + ["a sentence"] * 2
    assert numbers[["type", "layer", "head"]].to_numpy().tolist()[2:4] == [["encoder", 2, 2], ["cross", 1, 1]]


def test_no_dead_heads_at_all(dead, stage, write) -> None:
    open_ = [gate("encoder", 1, 1, True)]
    models = dead({**ENCODER, "rows": open_, "collapse": "no gate closed"}, {**ALL, "rows": [], "collapse": None})
    stem = stage("dead_heads", {"titles": ["EN-FR"]}, dead=[write("d.json", models)])
    numbers = pd.read_csv(stem.with_suffix(".csv"))
    assert numbers["scope"].tolist() == ["encoder", "all"]
    assert numbers[["type", "layer", "head"]].isna().all(axis=None)
    assert numbers["remark"].fillna("").tolist() == ["no gate closed", ""]


def test_remarks_are_a_column_where_there_are_any(dead) -> None:
    models = dead({**ENCODER, "rows": [gate("encoder", 1, 1, False)]})
    assert "remark" not in dead_heads.shown(dead_heads.numbers({"EN-FR": models}))
    both = dead_heads.numbers({"EN-FR": models + dead({**ALL, "rows": []})})
    assert dead_heads.shown(both)["remark"].tolist() == ["", "a sentence"]


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
