"""Survival of heads with a function, beside chance."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from specialized_heads.report.claims import of_survival
from specialized_heads.report.claims.evidence import evidence_of
from specialized_heads.report.claims.inference import newcombe
from specialized_heads.report.figures import choice


@pytest.mark.parametrize(
    "survivors, heads, true", [(4, 24, 0.76), (20, 24, 0.76), (4, 24, 0.5), (24, 48, 0.9)]
)
def test_intervals_hold_the_true_area_as_often_as_they_say(
    survivors: int, heads: int, true: float
) -> None:
    """Scores are normal, those of survivors higher by what makes the area the true one."""
    random = np.random.default_rng(3)
    shift = math.sqrt(2) * NormalDist().inv_cdf(true)
    inside = 0
    for _ in range(1000):
        scores = random.normal(size=heads)
        scores[:survivors] += shift
        own, others = scores[:survivors, None], scores[survivors:]
        low, high = newcombe((own > others).mean(), [(survivors, heads - survivors)])
        inside += low <= true <= high
    assert 0.93 <= inside / 1000 <= 0.99


def test_intervals_of_strata_are_narrower_than_those_of_each() -> None:
    alone, together = (newcombe(0.76, [(8, 16)] * count) for count in (1, 4))
    assert alone[0] < together[0] < 0.76 < together[1] < alone[1]
    spread = [high - low for low, high in (alone, together)]
    assert spread[0] / spread[1] == pytest.approx(2, rel=0.1)  # four times as much: half as wide
    low, high = newcombe(1.0, [(4, 20)])
    assert 0.5 < low < 0.9 and high == 1.0


def test_survival_of_each_model_and_of_those_that_the_claims_count(make) -> None:
    """Two seeds of a model with half of its heads, one without encoder heads, and one with
    undecided gates."""
    heads, decided = {}, []
    for seed in (1, 2):
        whole = make.heads(seed=seed)
        keep = {
            "encoder_lambda0": 24,
            "encoder_lambda0.01": 10,
            "encoder_lambda0.1": 0,
            "all_heads58": 12,
        }
        left = {
            f"pruned/{name}": make.without(whole, heads)
            for name, heads in (keep | {"all_lambda0.2": 5}).items()
        }
        left |= {"baseline": whole}
        heads |= {f"{name}/seed{seed}": table for name, table in left.items()}
        decided += [0.5 if name == "pruned/all_lambda0.2" else 1.0 for name in left]
    tables = make.tables(heads={"EN-FR": heads})
    tables = tables._replace(models=tables.models.assign(gates_decided=decided))
    rows = choice.survival_numbers(tables)
    of_encoder = rows[rows["scope"] == "encoder"]
    assert of_encoder["lam"].fillna(-1).tolist() == [0.01, 0.01, 0.1, 0.1, -1]
    assert of_encoder["left"].fillna(-1).tolist() == [10, 10, 0, 0, -1]
    one, every = of_encoder.iloc[0], of_encoder.iloc[-1]
    claimed = of_survival.survival(evidence_of(tables))
    assert every[["heads", "difference", "low", "high"]].tolist() == [
        48,
        claimed.value,
        claimed.low,
        claimed.high,
    ]
    assert (
        one["labelled_survival"] * one["labelled"] + one["other_survival"] * (24 - one["labelled"])
        == 10
    )
    assert one["relevance"] > 0.5 > abs(one["low entropy"])  # the most relevant heads are left
    assert of_encoder.loc[of_encoder["lam"] == 0.1, "difference"].isna().all()
    of_all = rows[rows["scope"] == "all"]
    assert of_all["counted"].tolist() == [False, False, True, True, True]
    text = choice.survival_shown(rows)
    names = [*["λ 0.01"] * 2, *["λ 0.1"] * 2, "all", *["λ 0.2*"] * 2, *["58 heads"] * 2, "all"]
    assert text["model"].tolist() == names
    assert text.loc[2, ["left", "difference", "relevance", "nested"]].tolist() == [
        "0",
        "–",
        "–",
        "0 of 0 (0.0)",
    ]
    left = [text.loc[0, name].split("/") for name in choice.LEFT.values()]
    assert np.sum(np.array(left, int), axis=0).tolist() == [10, 24]
    written = make.texts(choice.survival_draw(rows))
    assert {
        "λ 0.01, seed 1: 10 left",
        "EN-FR, encoder heads pruned",
        "no difference to measure",
    } <= set(written)


def test_nested_heads_beside_chance(make) -> None:
    """In layers of 8 heads, a model with 6, 6 and 0 left, then one with 2, 2 and 0, of which one is
    new."""
    whole = make.heads()
    encoder, columns = whole["type"] == "encoder", ["layer", "head"]
    kept = {
        0.1: [(layer, head) for layer in (1, 2) for head in range(1, 7)],
        0.3: [(1, 1), (1, 2), (2, 1), (2, 8)],
    }
    models = {"baseline": whole}
    for lam, heads in kept.items():
        models[f"pruned/encoder_lambda{lam}"] = whole[
            ~encoder | whole[columns].apply(tuple, axis=1).isin(heads)
        ]
    rows = choice.survival_numbers(make.tables(heads={"EN-FR": models}))
    assert rows["in_larger"].fillna(-1).tolist() == [-1, 3, 3]
    assert rows["by_chance"].fillna(-1).tolist() == [-1, (2 * 6 + 2 * 6) / 8, 3]
    assert choice.survival_shown(rows)["nested"].tolist() == ["–", "3 of 4 (3.0)", "3 of 4 (3.0)"]

    # Heads make the order, not λ; a model with undecided gates does not count.
    models["pruned/encoder_lambda0.1"], models["pruned/encoder_lambda0.3"] = list(models.values())[
        :0:-1
    ]
    tables = make.tables(heads={"EN-FR": models})
    assert choice.survival_shown(choice.survival_numbers(tables))["nested"].tolist() == [
        "3 of 4 (3.0)",
        "–",
        "3 of 4 (3.0)",
    ]
    tables = tables._replace(models=tables.models.assign(gates_decided=0.5))
    rows = choice.survival_numbers(tables)
    assert choice.survival_shown(rows)["nested"].tolist() == ["3 of 4 (3.0)", "–", "–"]
    assert "no model with decided gates" in make.texts(choice.survival_draw(rows))
