"""The pages and the claims of BERT: numbers that follow from the tables of tasks, and what is said
where there is nothing."""

from dataclasses import replace
from itertools import product
from math import nan

import pandas as pd
import pytest

from specialized_heads.report.claims.claim import Verdict, claims, judge, judged, measure
from specialized_heads.report.claims.evidence import Evidence, NotTestable, evidence_of
from specialized_heads.report.data import Tables, renamed
from specialized_heads.report.figures import ablation, bert

CLAIMS = {claim.name: claim for claim in claims()}
SAME = {"metric": "accuracy", "kind": "baseline", "seed": 1, "bleu_full": 80.0}
SPEED = pd.DataFrame(
    {"sentences": [1, 64, 64], "gain": [0.05, nan, 0.2], "device": "CPU, 1 thread"}
)
SPEED = SPEED.assign(gain_low=SPEED["gain"] - 0.02, gain_high=SPEED["gain"] + 0.02)
NOISY = SPEED[2:].assign(gain=0.3, gain_low=-0.2, gain_high=0.9)


def single(
    loss: float = 0.1, *, best: float = 0.0, half: float = 0.5, sentences: int = 20_000, **more
) -> pd.DataFrame:
    """A model of accuracy 80 and 2 layers of 4 heads, intervals of `half` to both sides.

    Without head h of layer l it loses `loss` · h · l; alone in its layer, the best head changes
    `best` · l.
    """
    rows = []
    for layer, head in product((1, 2), range(1, 5)):
        for what, delta in (
            ("without", -loss * head * layer),
            ("alone", head - 4.0 + best * layer),
        ):
            row = {"what": what, "layer": layer, "head": head, "bleu": 80 + delta, "delta": delta}
            rows.append(row | {"delta_low": delta - half, "delta_high": delta + half})
    own = {
        "type": "encoder",
        "p_value": 0.5,
        "measured_on": "test",
        "systematic": False,
        "sentences": sentences,
    }
    return pd.DataFrame(rows).assign(**SAME | own | more)


def steps(*, safe: float = 0.4, floor: float = 50.0) -> pd.DataFrame:
    """Accuracy of 80 up to this share of removed heads, then in a line to chance."""
    rows = []
    for share in (tenth / 10 for tenth in range(11)):
        bleu = 80.0 if share <= safe else 80 - (80 - floor) * (share - safe) / (1 - safe)
        row = {
            "removed": round(8 * share),
            "share": share,
            "bleu": bleu,
            "bleu_low": bleu - 2,
            "bleu_high": bleu + 2,
        }
        rows.append(row | {"delta": bleu - 80, "delta_low": bleu - 80.5, "delta_high": bleu - 79.5})
    own = {
        "what": "all",
        "heads": 8,
        "sentences": 1000,
        "systematic": True,
        "measured_on": "test",
        "p_value": 0.5,
    }
    return (
        pd.DataFrame(rows)
        .assign(**SAME | own)
        .assign(update=pd.array([pd.NA] * len(rows), dtype="Int64"))
    )


@pytest.fixture
def task(make):
    """`task(majority=60)`: the tables of a task whose scores have changed so; a gated model has 2
    of 8 heads."""

    def tables(*, ablated: tuple[pd.DataFrame, ...] = (), **changed: object) -> Tables:
        known = {
            "metric": "accuracy",
            "majority": 50.0,
            "bag_of_words": 61.0,
            "bag_of_words_low": 60.0,
        }
        known |= {"bag_of_words_high": 62.0, "second_bleu": 70.0, "sentences": 500} | changed
        models = [make.model("baseline", [[4, 4], [], []], loss=-50.0, **known)]
        models.append(
            make.model(
                "pruned/all_lambda0.01",
                [[1, 1], [], []],
                loss=-47.0,
                **known | {"difference": -3.0},
            )
        )
        rows = pd.concat(
            ablated or (single(), single(0.2, measured_on="second"), steps()), ignore_index=True
        )
        return make.tables(models={"Halves": models}, ablation={"Halves": rows})

    return tables


@pytest.fixture
def evidence(task) -> Evidence:
    return evidence_of(task().of("Halves"), speed=SPEED)


@pytest.mark.parametrize(
    ("name", "value", "changed"),
    [
        ("no_loss_bert", 0.0, {"systematic": steps(safe=0.1)}),
        ("bert_single", 0.0, {"single": single(p_value=0.001)}),
        ("bert_two_sets", 1.0, {"second": single(-0.1)}),
        ("sharp_drop_bert", -1 / 3, {"systematic": steps(floor=75.0)}),
        ("bert_speed_1", 0.05, {"speed": SPEED.assign(gain=0.2, gain_low=0.18, gain_high=0.22)}),
        ("bert_speed_64", 0.2, {"speed": NOISY}),
    ],
)
def test_another_table_is_another_verdict(
    evidence: Evidence, name: str, value: float, changed: dict
) -> None:
    claim, measured = CLAIMS[name], measure(CLAIMS[name])
    assert measured(evidence).value == pytest.approx(value)
    # One pre-trained model reproduces nothing for sure, so that a clear case differs from any other
    # by its baselines alone.
    several = {"baselines": 3}
    assert judge(claim, replace(measured(evidence), **several)) is Verdict.REPRODUCED
    assert (
        judge(claim, replace(measured(replace(evidence, **changed)), **several))
        is not Verdict.REPRODUCED
    )


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("no_loss_bert", {"majority": 77.0}),  # less than 5 points learned
        ("bert_single", {"single": single()[:0]}),
        ("bert_single", {"single": single(half=1.2)}),  # 1.5 points could not be seen
        ("bert_single", {"metric": "f1"}),
        ("bert_alone", {"single": single(half=1.0)}),  # nor could 1 point
        ("bert_two_sets", {"second": single()[:0]}),
        ("bert_two_sets", {"majority": 77.0}),
        ("bert_speed_64", {"speed": pd.DataFrame()}),
        ("bert_speed_1", {"speed": NOISY}),
    ],
)
def test_what_the_evidence_cannot_show_is_not_judged(
    evidence: Evidence, name: str, changed: dict
) -> None:
    with pytest.raises(NotTestable):
        CLAIMS[name].measured(replace(evidence, **changed))


def test_the_evidence_is_that_of_one_task(evidence: Evidence, task) -> None:
    assert set(judged([evidence])["claim"]) == {
        claim.name for claim in claims() if claim.finding == "BERT"
    }
    # Heads on held-out examples are no second set.
    with pytest.raises(NotTestable, match="no mismatched set"):
        measure(CLAIMS["bert_two_sets"])(
            evidence_of(task(second_bleu=nan).of("Halves"), speed=SPEED)
        )
    # With seed 2 both layers lose; a loss counts only if the paper's test could see it.
    for best, kept in ((-1.4, 2), (-0.4, 4)):
        other = single(0.5, best=best, seed=2, p_value=0.001)
        second = replace(evidence, single=pd.concat([single(), other], ignore_index=True))
        assert measure(CLAIMS["bert_single"])(second).value == pytest.approx((0 + 8) / 16)
        alone = measure(CLAIMS["bert_alone"])(second)
        assert (alone.value, alone.n) == (pytest.approx(kept / 4), 4)
        assert "at p < 0.01 alone, 2 of 4 lose nothing" in alone.note


def test_both_methods_are_points_of_one_figure(task) -> None:
    points = bert.pruning_numbers(task())
    assert points.groupby("method").size().to_dict() == {"importance": 9, "gates": 1}
    gates, whole = (
        points[points["method"] == "gates"].squeeze(),
        points[points["share"] == 1.0].squeeze(),
    )
    assert gates[["share", "bleu", "delta", "bleu_low"]].tolist() == [0.25, 77.0, -3.0, 76.0]
    assert whole[["heads", "bleu", "bleu_low", "bleu_high"]].tolist() == [8, 80.0, 78.0, 82.0]


def test_the_tables_of_tasks_and_of_speed_have_a_margin_and_the_papers_gain(task, tmp_path) -> None:
    [line] = bert.tasks_shown(bert.tasks_numbers(task(second_bleu=nan))).to_dict("records")
    assert (line["BERT"], line["bag of words"], line["margin"]) == (
        "80.0 [79.0, 81.0]",
        "61.0 [60.0, 62.0]",
        "+19.0",
    )
    row = {"heads": 8, "total": 8, "sentences": 16, "parameters": 9, "device": "CPU"}
    row |= {"speed": 100.0, "speed_low": 99.0, "speed_high": 101.0}
    half = row | {"heads": 4, "speed": 110.0, "gain": 0.1, "gain_low": 0.09, "gain_high": 0.11}
    pd.DataFrame([row, half]).to_parquet(tmp_path / "speed.parquet")
    [line] = bert.speed_shown(
        bert.speed_numbers(None, {"Halves": tmp_path / "speed.parquet"})
    ).to_dict("records")
    assert (line["gain"], line["paper"], line["4 heads"]) == (
        "+10.0% [+9.0%, +11.0%]",
        "+17.5%",
        "110 [99, 101]",
    )


def test_the_pages_of_michel_take_encoder_heads_alone(task, make) -> None:
    tables = task()
    heads, rows = ablation.single_numbers(tables), ablation.alone_numbers(tables)
    assert {"score", "score_full"} <= set(renamed(heads))
    assert len(ablation.single_draw(heads).axes) == 1 + 1  # and the colour bar
    assert list(ablation.alone_shown(rows)) == ["corpus", "layer", "encoder self-attention"]
    both = make.texts(ablation.sets_draw(ablation.sets_numbers(tables)))
    assert (
        "accuracy without the head − accuracy, test set" in both and "cross-attention" not in both
    )


def test_moments_are_shares_of_what_was_learned(task) -> None:
    points, nothing = (
        ablation.moments_numbers(task(majority=majority)) for majority in (60.0, 76.0)
    )
    # 10 points below the majority, 20 learned
    assert points.loc[points["removed"] == 8, "kept"].tolist() == [-0.5]
    assert nothing["kept"].isna().all()


@pytest.mark.parametrize(("half", "steady"), [(0.09, True), (0.11, False)])
def test_a_gain_in_speed_that_varies_between_rounds_is_weak_evidence(
    evidence: Evidence, half: float, steady: bool
) -> None:
    speed = SPEED.assign(gain_low=SPEED["gain"] - half, gain_high=SPEED["gain"] + half)
    measured = measure(CLAIMS["bert_speed_64"])(replace(evidence, speed=speed))
    assert measured.sufficient == steady
