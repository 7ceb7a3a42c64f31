"""Gates over time, and the controls of pruning beside each other."""

import pandas as pd
import pytest

from specialized_heads.report.beyond import controls, gates

FULL = [8, 8]


def test_gates_over_time(make) -> None:
    first = pd.DataFrame({"update": [5, 9], "open_encoder": [[[0.9, 0.8]], [[0.7, 0.05]]]})
    # Of the second model, the first layer has no cross-attention.
    second = pd.DataFrame({"update": [5], "open_encoder": [[[0.9]]], "open_cross": [[[], [0.3, 0.4]]]})
    logs = {"baseline": first[["update"]], "pruned/encoder_lambda0.01": first, "pruned/all_heads3": second}
    logs |= {"pruned/all_heads3/seed2": second}
    table = gates.numbers(make.tables(heads={"EN-FR": make.heads(1, 2)}, logs={"EN-FR": logs}))
    assert table.drop(columns="corpus").fillna(-1).to_numpy().tolist() == [
        ["encoder", 0.01, -1, "encoder", 1, 1, 5, 0.9, "rare words"],
        ["encoder", 0.01, -1, "encoder", 1, 2, 5, 0.8, "positional"],
        ["encoder", 0.01, -1, "encoder", 1, 1, 9, 0.7, "rare words"],
        ["encoder", 0.01, -1, "encoder", 1, 2, 9, 0.05, "positional"],
        ["all", -1, 3, "encoder", 1, 1, 5, 0.9, "rare words"],
        ["all", -1, 3, "cross", 2, 1, 5, 0.3, ""],
        ["all", -1, 3, "cross", 2, 2, 5, 0.4, ""],
    ]
    written = make.texts(gates.draw(table))
    assert {"λ 0.01 choice: 9 still between: 1 of 2", "3 heads none closes still between: 2 of 2"} <= set(written)


def test_controls_stand_beside_their_pruned_model(make) -> None:
    rows = []
    for seed in (1, 2, 3):
        rows += [make.model(kept=[FULL] * 3, seed=seed), make.model("checkpoint/update5", [FULL] * 3, seed=seed)]
        for number, kind in enumerate(("regularised/", "count/", "scratch/", "pruned/", "cut/x_", "finetuned/x_")):
            for target, loss in (("lambda0.01", number - 0.5 * seed), ("heads12", 5 + number)):
                same = {"kept": [[4, number], FULL, [1, 1]], "seed": seed, "loss": loss, "p_value": 0.1 * seed}
                rows.append(make.model(f"{kind}all_{target}", **same))
    tables = make.tables(models={"EN-FR": rows})
    numbers = controls.numbers(tables)
    pruned = numbers[(numbers["kind"] == "pruned") & (numbers["lam"] == 0.01)].squeeze()
    assert pruned[["seeds", "bleu", "bleu_sd", "p_value"]].tolist() == pytest.approx([3, 28.0, 0.5, 0.3])
    text = controls.shown(numbers)
    assert text["model"].tolist() == ["baseline", *["pruned", "scratch", "count", "regularised"] * 2]
    assert text["target"].tolist() == ["", *["λ 0.01"] * 4, *["12 heads"] * 4]
    assert text.loc[1, ["enc/dec/cross", "BLEU", "n"]].tolist() == ["7/16/2", "28.0 ± 0.5", "3"]
    alone = controls.shown(controls.numbers(tables._replace(models=tables.models.query("seed == 1"))))
    assert alone.loc[1, "BLEU"] == "27.5 [26.5, 28.5]" and "n" not in alone
