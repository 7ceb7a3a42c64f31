"""The pages and the claims of BERT: numbers that follow from the tables of two tasks, and what is said where there is nothing."""

from dataclasses import replace
from itertools import product
from math import nan

import pandas as pd
import pytest
from specialized_heads.report.experiment import describe

from specialized_heads.report.claims import michel
from specialized_heads.report.claims.claim import Verdict, judge
from specialized_heads.report.claims.evidence import Evidence, NotTestable
from specialized_heads.report.claims.table import judged
from specialized_heads.report.claims.table import numbers as claims_of
from specialized_heads.report.classification import task_pruning, task_speed, tasks
from specialized_heads.report.michel import ablation, ablation_sets, alone, moments

CLAIMS = {claim.name: claim for claim in [*michel.claims(), *michel.claims_of_bert()]}
BERT = describe("baseline", corpus="Halves", seed=1)


NOISY = pd.DataFrame({"sentences": [64], "gain": 0.3, "gain_low": -0.2, "gain_high": 0.9, "device": "CPU, 1 thread"})


def single(loss: float = 0.1, *, best: float = 0.0, half: float = 0.5, sentences: int = 20_000) -> pd.DataFrame:
    """A model of accuracy 80 and 2 layers of 4 heads, intervals of `half` to both sides.

    Without head h of layer l it loses `loss` · h · l; alone in its layer, the best head changes `best` · l.
    """
    rows = []
    for layer, head in product((1, 2), range(1, 5)):
        for what, delta in (("without", -loss * head * layer), ("alone", head - 4.0 + best * layer)):
            row = {"what": what, "layer": layer, "head": head, "bleu": 80 + delta, "delta": delta}
            rows.append(row | {"delta_low": delta - half, "delta_high": delta + half})
    return pd.DataFrame(rows).assign(type="encoder", bleu_full=80.0, p_value=0.5, sentences=sentences)


def steps(*, safe: float = 0.5, floor: float = 50.0) -> pd.DataFrame:
    """Accuracy of 80 up to this share of removed heads, then in a line to chance."""
    rows = []
    for share in (tenth / 10 for tenth in range(11)):
        bleu = 80.0 if share <= safe else 80 - (80 - floor) * (share - safe) / (1 - safe)
        row = {"removed": round(8 * share), "share": share, "bleu": bleu, "p_value": 0.5 if share <= safe else 0.001}
        row |= {"bleu_low": bleu - 2, "bleu_high": bleu + 2}
        rows.append(row | {"delta": bleu - 80, "delta_low": bleu - 81, "delta_high": bleu - 79})
    return pd.DataFrame(rows).assign(pruned="all", heads=8, bleu_full=80.0, sentences=1000)


def finished(table: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """As the evidence holds it: of a model at the end of its training."""
    return table.assign(seed=seed, moment=pd.array([pd.NA] * len(table), dtype="Int64"))


def evidence(**changed: object) -> Evidence:
    speed = pd.DataFrame({"sentences": [1, 64, 64], "gain": [0.05, nan, 0.2], "device": "CPU, 1 thread"})
    speed = speed.assign(gain_low=speed["gain"] - 0.02, gain_high=speed["gain"] + 0.02)
    known = {"title": "Halves", "of": "classification", "majority": 50.0, "metric": "accuracy", "speed": speed}
    known |= {"scores": pd.DataFrame(), "heads": pd.DataFrame(), "least_arcs": 0, "stands_for": "", "pruned": True}
    tables = {"single": single(), "second": single(0.2), "systematic": steps()} | changed
    ablated = {name: finished(tables.pop(name)) for name in ("single", "second", "systematic")}
    return Evidence(**known | ablated | tables)


@pytest.mark.parametrize(
    ("name", "value", "changed"),
    [
        ("no_loss_bert", 0.0, {"systematic": steps(safe=0.1)}),
        ("bert_single", 0.0, {"single": single(0.5)}),
        ("bert_alone", 0.0, {"single": single(best=-1.1)}),
        ("bert_two_sets", 1.0, {"second": single(-0.1)}),
        ("bert_few", -0.8, {"systematic": steps(floor=75.0)}),
        ("bert_speed", 0.2, {"speed": NOISY}),
    ],
)
def test_claims_of_bert_are_judged_and_another_table_is_another_verdict(name: str, value: float, changed: dict) -> None:
    claim = CLAIMS[name]
    measured = claim.measure(evidence())
    assert measured.value == pytest.approx(value)
    assert judge(measured, claim.accepted) is Verdict.REPRODUCED
    assert judge(claim.measure(evidence(**changed)), claim.accepted) is not Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("no_loss_bert", {"majority": 77.0}, "less than 5 points better than the most frequent label"),
        ("bert_single", {"single": single()[:0]}, "single heads are not ablated here"),
        ("bert_speed", {"speed": pd.DataFrame()}, "speed of BERT is not measured here"),
        ("bert_speed", {"speed": NOISY.assign(sentences=32)}, "not measured at 64 sentences per batch"),
        ("bert_single", {"single": single(sentences=2000)}, "1.5 points could not .* only effects above 3.27 points"),
        ("bert_alone", {"single": single(half=1.0)}, "1.0 points could not reach .* only effects above 1.31 points"),
        ("bert_single", {"metric": "f1"}, "this task is scored by f1"),
        ("bert_two_sets", {"second": single()[:0]}, "no mismatched set .source.mismatched"),
        ("bert_two_sets", {"majority": 77.0}, "less than 5 points better than the most frequent label"),
        ("no_loss_bert", {"of": "translation"}, "applies to BERT only"),
    ],
)
def test_what_cannot_be_tested_says_why(name: str, changed: dict, reason: str) -> None:
    with pytest.raises(NotTestable, match=reason):
        CLAIMS[name].measure(evidence(**changed))


def test_each_claim_is_judged_on_what_it_is_about() -> None:
    rows = judged([evidence()])
    assert set(rows["claim"]) == {"no_loss_bert", *(claim.name for claim in michel.claims_of_bert())}
    assert not set(rows["claim"]) & {"last_cross", "encoder_wmt"}


def score(heads: int, delta: float) -> dict:
    ends = {"score_low": 79 + delta, "score_high": 81 + delta, "p_value": 0.001, "sentences": 500}
    return {"metric": "accuracy", "heads": heads, "total": 8, "test": {"score": 80 + delta, "delta": delta} | ends}


def test_both_methods_are_points_of_one_figure() -> None:
    pruned = {describe("pruned/all_lambda0.01", corpus="Halves", seed=1): score(2, -3.0)}
    points = task_pruning.numbers({BERT: steps()}, pruned)
    assert points.groupby("method").size().to_dict() == {"importance": 9, "gates": 1}
    gates = points[points["method"] == "gates"].iloc[0]
    assert (gates["share"], gates["bleu"], gates["delta"], gates["bleu_low"]) == (0.25, 77.0, -3.0, 76.0)
    whole = points[points["share"] == 1.0].iloc[0]
    assert (whole["heads"], whole["bleu"], whole["bleu_low"], whole["bleu_high"]) == (8, 80.0, 78.0, 82.0)
    assert len(task_pruning.draw(points, metric="accuracy").axes) == 2
    assert task_pruning.draw(task_pruning.numbers({}, {}), metric="accuracy").axes
    assert len(task_pruning.numbers({}, pruned)) == 1


def test_the_table_of_tasks_states_the_margin_over_the_better_baseline() -> None:
    bag = {"score": 61.0, "score_low": 60.0, "score_high": 62.0}
    others = {"Halves": {"test": {"majority": 50.0, "bag_of_words": bag}, "metric": "accuracy"}}
    rows = tasks.numbers(others, {BERT: score(8, 0.0)})
    assert rows["margin"].tolist() == [19.0] and rows["set"].tolist() == ["matched"]
    (line,) = tasks.shown(rows).to_dict("records")
    assert (line["BERT"], line["bag of words"], line["margin"]) == ("80.0 [79.0, 81.0]", "61.0 [60.0, 62.0]", "+19.0")


def test_the_table_of_speed_has_the_papers_gain() -> None:
    row = {"heads": 8, "total": 8, "sentences": 16, "parameters": 9, "device": "CPU"}
    row |= {"speed": 100.0, "speed_low": 99.0, "speed_high": 101.0}
    half = row | {"heads": 4, "speed": 110.0, "gain": 0.1, "gain_low": 0.09, "gain_high": 0.11}
    rows = task_speed.numbers({"Halves": pd.DataFrame([row, half])})
    (line,) = task_speed.shown(rows).to_dict("records")
    assert (line["gain"], line["paper"], line["4 heads"]) == ("+10.0% [+9.0%, +11.0%]", "+17.5%", "110 [99, 101]")


def test_the_pages_of_michel_take_encoder_heads_alone() -> None:
    tables = {BERT: single()}
    heads = ablation.numbers(tables | {describe("baseline", corpus="Shift", seed=1): single()})
    drawn = ablation.draw(heads, metric="accuracy")
    assert [axes.get_title() for axes in drawn.axes[:2]] == ["Halves", "Shift"]
    caption = ablation.caption(heads, metric="accuracy")
    assert caption.startswith("Accuracy without each single head, minus accuracy of the whole model")
    assert "accuracy" in ablation.shown(heads, metric="accuracy")
    table = alone.shown(alone.numbers(tables))
    assert list(table) == ["corpus", "layer", "encoder self-attention"]
    assert "no layer of BERT" in alone.caption(alone.numbers(tables), metric="accuracy")
    both = ablation_sets.numbers(tables, tables, second_names={"Halves": "mismatched test set"})
    assert "accuracy" in ablation_sets.draw(both, metric="accuracy").axes[0].get_xlabel()
    during = moments.numbers({BERT: steps()}, {})
    assert "accuracy" in moments.draw(during, metric="accuracy").axes[0].get_ylabel()


def test_a_second_seed_is_a_range() -> None:
    both = pd.concat([finished(single()), finished(single(0.5, best=-0.4), seed=2)], ignore_index=True)
    second = replace(evidence(), single=both)
    assert CLAIMS["bert_single"].measure(second).value == pytest.approx((0 + 5) / 16)
    alone = CLAIMS["bert_alone"].measure(second)
    assert (alone.value, alone.low, alone.n) == (pytest.approx(-0.4), pytest.approx(-0.9), 2)  # means of 0 and -0.8


def test_heads_on_held_out_examples_are_no_second_set() -> None:
    tables = {BERT: single()}
    others = {"test": {"majority": 50.0}, "metric": "accuracy"}
    for known, reasons in ((others, 1), (others | {"second": others["test"]}, 0)):
        rows = claims_of({}, {}, tables, tables, {}, {"Halves": known}, {}, corpora=[]).set_index("claim")
        assert ("no mismatched set" in rows.loc["bert_two_sets", "reason"]) == bool(reasons)


def test_moments_are_shares_of_what_was_learned() -> None:
    points, nothing = (moments.numbers({BERT: steps()}, {"Halves": {"test": {"majority": m}}}) for m in (60.0, 76.0))
    assert points.loc[points["removed"] == 8, "kept"].tolist() == [-0.5]  # 10 points below the majority, 20 learned
    assert nothing["kept"].isna().all()
