"""Claims: each measure on tables whose answer is known."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
import pytest
from claim_tables import model, scores

from specialized_heads.report.claims import michel, of_ablation, of_heads, of_scores, voita
from specialized_heads.report.claims.claim import Measured, Untestable, Verdict, judge, proportion
from specialized_heads.report.claims.evidence import Evidence


@pytest.mark.parametrize(
    ("found", "accepted", "verdict"),
    [
        (Measured(0.5), (0.5, 1.0), Verdict.REPRODUCED),
        (Measured(2.0, 1.0, 3.0), (-inf, 2.0), Verdict.REPRODUCED),
        (Measured(2.1, 1.0, 3.0), (-inf, 2.0), Verdict.PARTLY),
        (Measured(2.1, 2.05, 3.0), (-inf, 2.0), Verdict.NOT_REPRODUCED),
        (Measured(0.4, 0.3, 0.6), (0.5, 1.0), Verdict.PARTLY),
        (Measured(0.4), (0.5, 1.0), Verdict.NOT_REPRODUCED),  # no interval, no doubt
        (Untestable("no data"), (0.5, 1.0), Verdict.NOT_TESTABLE),
    ],
)
def test_a_verdict_follows_from_the_value_its_interval_and_the_range(
    found: Measured | Untestable, accepted: tuple[float, float], verdict: Verdict
) -> None:
    assert judge(found, accepted) == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Measured(0.3, 0.1, 0.5), Verdict.REPRODUCED),
        (Measured(0.03, -0.68, 0.74), Verdict.PARTLY),
        (Measured(0.3), Verdict.PARTLY),  # no interval, no certainty
        (Measured(-0.1, -0.3, 0.1), Verdict.PARTLY),
        (Measured(-0.3, -0.5, -0.1), Verdict.NOT_REPRODUCED),
    ],
)
def test_that_one_thing_is_better_than_another_takes_the_whole_interval(found: Measured, verdict: Verdict) -> None:
    assert judge(found, (0.01, inf), directed=True) == verdict


def test_the_interval_of_a_share_is_wilson_s() -> None:
    found = proportion(3, 3, of="models")
    assert (found.value, found.high, found.n) == (1.0, 1.0, 3)
    assert found.low == pytest.approx(0.4385, abs=1e-4)  # 1 / (1 + z² / 3)
    half = proportion(8, 96, of="heads")
    assert (half.low, half.high) == pytest.approx((0.0428, 0.1559), abs=1e-4)


def test_bleu_at_a_share_lies_on_the_line_between_two_models(evidence: Evidence) -> None:
    found = of_scores.difference("encoder", 0.5)(evidence)
    assert (found.value, found.low, found.high) == pytest.approx((-0.2, -0.7, 0.3))
    between = of_scores.difference("encoder", 0.75)(evidence)  # half-way from the baseline to 12 of 24
    assert (between.value, between.low, between.high) == pytest.approx((-0.1, -0.35, 0.15))
    assert of_scores.difference("encoder", 0.3125)(evidence).value == pytest.approx(-0.6)
    untestable = of_scores.difference("encoder", 0.1)(evidence)
    assert "smallest model has 12% of its heads left, not 10%" in untestable.reason
    one = replace(evidence, scores=evidence.scores[evidence.scores["lam"] != 0.01])
    assert "no model between 12% and 100%" in of_scores.difference("encoder", 0.5)(one).reason
    weak = replace(evidence, scores=evidence.scores.assign(bleu=evidence.scores["bleu"] - 26))
    assert "less than 5 BLEU" in of_scores.difference("encoder", 0.5)(weak).reason
    two_seeds = replace(evidence, scores=pd.concat([evidence.scores, scores(seed=2).assign(difference=-0.4)]))
    assert of_scores.difference("encoder", 0.5)(two_seeds).value == pytest.approx((-0.2 - 0.4) / 2)
    none = replace(evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])
    assert isinstance(of_scores.difference("encoder", 0.5)(none), Untestable)


def test_scores_are_compared_on_the_paper_s_data_alone(evidence: Evidence) -> None:
    measure = of_scores.baseline_bleu("wmt")
    assert isinstance(measure(evidence), Untestable)
    assert isinstance(measure(replace(evidence, stands_for="opensubtitles")), Untestable)
    scored = evidence.scores.assign(bleu_tokenised_low=30.0, bleu_tokenised_high=33.0)
    assert measure(replace(evidence, stands_for="wmt", scores=scored)) == Measured(31.5, 30.0, 33.0, 1000, "sentences")


def test_pruned_models_against_twins(evidence: Evidence) -> None:
    measure = of_scores.better_than("scratch")
    assert "kind scratch" in measure(evidence).reason
    twins = [
        model("scratch", "all", 0.01, 1, 0.5, [[4, 2, 2], [8, 6, 4], [6, 8, 8]]),
        model("scratch", "all", 0.03, 1, 0.9, [[0, 0, 0], [2, 0, 0], [0, 1, 3]]),
    ]
    found = measure(replace(evidence, scores=scores(*twins)))
    half = (0.5**2 + 0.5**2) ** 0.5
    assert (found.value, found.low, found.high, found.n) == pytest.approx((0.3, 0.3 - half, 0.3 + half, 2))
    other = [model("scratch", "all", 0.01, 1, 20.0, [[0, 0, 0], [0, 0, 0], [1, 1, 2]]), twins[1]]
    assert measure(replace(evidence, scores=scores(*other))).n == 1  # a control with other heads is no equal
    assert "about as many heads" in measure(replace(evidence, scores=scores(other[0]))).reason
    short = [twin | {"updates": 899} for twin in twins]
    assert "for 899 updates, the baseline for 900" in measure(replace(evidence, scores=scores(*short))).reason


def test_types_and_layers_that_lose_heads(evidence: Evidence) -> None:
    first, last = (claim for claim in voita.claims() if claim.name in ("encoder_first", "cross_last"))
    assert (first.measure(evidence).value, last.measure(evidence).value) == (1.0, 1.0)
    tied = model("pruned", "all", 0.02, 1, 0.3, [[4, 2, 2], [4, 2, 2], [4, 2, 2]])
    mixed = replace(evidence, scores=scores(tied))
    assert (first.measure(mixed).value, first.measure(mixed).n) == (pytest.approx(2 / 3), 3)
    # Decoder heads 8/6/4 and 2/0/0 lie low, cross-attention 6/8/8 and 0/1/3 high.
    assert of_scores.centre("decoder", low=True)(evidence).value == 1.0
    assert of_scores.centre("decoder", low=False)(evidence).value == 0.0
    assert of_scores.centre("cross", low=False)(evidence).value == 1.0
    assert of_scores.centre("cross", low=False)(mixed).value == pytest.approx(2 / 3)
    columns = {f"{kind}_heads": [np.array([8])] * len(evidence.scores) for kind in ("encoder", "decoder", "cross")}
    flat = replace(evidence, scores=evidence.scores.assign(**columns))
    assert of_scores.centre("decoder", low=True)(flat).reason == "the model has one layer"
    whole = replace(evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])
    assert isinstance(of_scores.centre("cross", low=False)(whole), Untestable)


def test_functions_of_heads(evidence: Evidence) -> None:
    heads = evidence.baseline_heads()
    best = heads.loc[heads["nsubj_head_to_dependent"].idxmax()]
    found = of_heads.margin("nsubj", "head_to_dependent")(evidence)
    assert (found.value, found.n) == (pytest.approx(best["nsubj_head_to_dependent"] - 0.4), 301)
    assert found.high - found.low == pytest.approx(0.06)
    assert "302 arcs" in of_heads.margin("obj", "head_to_dependent")(replace(evidence, least_arcs=400)).reason
    assert isinstance(of_heads.margin("conj", "head_to_dependent")(evidence), Untestable)

    share = of_heads.positional_share(0.9)
    assert share(evidence).value == pytest.approx(heads["positional_share"].max())
    few = evidence.heads.assign(positional_share=0.5, positional_ceiling=0.885, positional_offset=-1)
    assert "88.5%" in share(replace(evidence, heads=few)).reason
    assert share(replace(evidence, heads=few.assign(positional_ceiling=0.95))).value == 0.5
    # Three tokens away there is less room than beside a token: that says nothing of how much there is beside it.
    assert share(replace(evidence, heads=few.assign(positional_offset=-3))).value == 0.5
    positional = heads[[("positional" in names) for names in heads["functions"]]]
    assert of_heads.positional_confidence(evidence).value == pytest.approx(positional["confidence"].min())
    first = heads.loc[heads["layer"] == 1, "rarest"]
    assert of_heads.rare_words("rarest")(evidence).value == pytest.approx(first.max())


def test_which_heads_survive(evidence: Evidence) -> None:
    # 7 of 24 heads have a function: all of them are among the 12 that are left first, one among the last 3.
    found = of_heads.specialised_last(evidence)
    assert found.value == pytest.approx((7 + 1) / 14 - (5 + 2) / 34)
    assert found.low < found.value < found.high
    assert found.n == 24  # a head counts once, however many models it survives in
    again = evidence.scores[evidence.scores["lam"].eq(0.01) & evidence.scores["scope"].eq("encoder")].assign(lam=0.011)
    heads = evidence.heads[evidence.heads["lam"].eq(0.01)].assign(lam=0.011)
    twice = of_heads.specialised_last(
        replace(evidence, scores=pd.concat([evidence.scores, again]), heads=pd.concat([evidence.heads, heads]))
    )
    assert twice.n == 24 and twice.high - twice.low > 0.8 * (found.high - found.low)
    assert of_heads.functions_kept(0.5)(evidence) == Measured(1.0, n=3, of="functions")
    # With 3 heads the model is near an eighth, and has positional heads alone; of a third of the heads it says nothing.
    assert of_heads.functions_kept(0.1)(evidence).value == pytest.approx(1 / 3)
    assert "about 35%" in of_heads.functions_kept(17 / 48)(evidence).reason
    # A smaller model that keeps every function tells the more: here 7 of 24 heads, where half are asked for.
    idle = evidence.heads["lam"].eq(0.01) & evidence.heads["functions"].str.len().eq(0)
    seven = replace(evidence, heads=evidence.heads[~idle])
    assert of_heads.functions_kept(0.5)(seven).value == of_heads.functions_kept(0.8)(seven).value == 1.0
    # Where no relation has enough arcs, the two heads that are syntactic alone have no function: 12 left have 5, 3 have 1.
    sparse = replace(evidence, least_arcs=400)
    assert of_heads.specialised_last(sparse).value == pytest.approx((5 + 1) / 10 - (7 + 2) / 38)
    assert of_heads.functions_kept(0.1)(sparse).value == pytest.approx(1 / 2)
    none = evidence.heads.assign(functions=[[] for _ in range(len(evidence.heads))])
    assert isinstance(of_heads.specialised_last(replace(evidence, heads=none)), Untestable)
    assert isinstance(of_heads.functions_kept(0.1)(replace(evidence, heads=none)), Untestable)


def test_ablation(evidence: Evidence) -> None:
    assert of_ablation.significant(evidence).value == pytest.approx(2 / 24)
    last = of_ablation.one_left(rank=False)(evidence)
    assert (last.value, last.low, last.high) == pytest.approx((-13 / 30, -13.3 / 30, -12.7 / 30))
    assert of_ablation.one_left(rank=True)(evidence) == Measured(1.0, n=9, of="layers")
    one_head = replace(evidence, single=evidence.single[evidence.single["head"] == 1])
    assert "one head, which is all of it" in of_ablation.one_left(rank=True)(one_head).reason
    assert of_ablation.two_sets(evidence).value == pytest.approx(1.0)
    other = replace(evidence, second=evidence.second.assign(delta=-evidence.second["delta"]))
    assert of_ablation.two_sets(other).value == pytest.approx(-1.0)
    empty = evidence.single.iloc[:0]
    for measure in (of_ablation.significant, of_ablation.two_sets, of_ablation.one_left(rank=True)):
        assert "ablation.single" in measure(replace(evidence, single=empty, second=empty)).reason


def test_nothing_is_said_of_a_model_that_cannot_translate(evidence: Evidence) -> None:
    weak = replace(evidence, scores=evidence.scores.assign(bleu=4.0))
    measures = [of_ablation.significant, of_ablation.one_left(rank=False), of_ablation.one_left(rank=True)]
    measures += [of_ablation.removed("cross", 0.8), of_ablation.redundant_at_the_end(0.9)]
    for measure in (*measures, of_ablation.more_redundant_than_early(0.9)):
        assert not isinstance(measure(evidence), Untestable)
        assert measure(weak).reason == "the baseline has less than 5 BLEU"


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (4.5, 2.6585), (30, 2.0423), (1e4, 1.9602)]
)
def test_quantiles_of_student_s_t(freedom: float, quantile: float) -> None:
    assert of_heads.student_quantile(freedom) == pytest.approx(quantile, abs=1e-3)


def test_pruning_in_order_of_importance(evidence: Evidence) -> None:
    found = of_ablation.removed("all", 0.55)(evidence)
    assert found.value == pytest.approx(-0.1)
    assert found.high - found.low == pytest.approx(0.6 / 30)
    assert of_ablation.removed("cross", 0.8)(evidence).value == pytest.approx(-0.8)
    assert of_ablation.redundant_at_the_end(0.9)(evidence).value == pytest.approx(0.5)
    # After 300 updates a tenth of the heads costs a tenth of BLEU; after 100 there is no BLEU to speak of.
    assert of_ablation.more_redundant_than_early(0.9)(evidence).value == pytest.approx(0.5 - 0.1)
    no_moment = replace(evidence, scores=evidence.scores.assign(updates=300))  # the last update is not early
    assert "ablation.moments" in of_ablation.more_redundant_than_early(0.9)(no_moment).reason
    end_alone = replace(evidence, systematic=evidence.systematic[evidence.systematic["moment"].isna()])
    assert "ablation.moments" in of_ablation.more_redundant_than_early(0.9)(end_alone).reason
    coarse = replace(evidence, systematic=evidence.systematic[evidence.systematic["share"].isin([0.0, 1.0])])
    assert "no model between 0% and 100%" in of_ablation.removed("cross", 0.8)(coarse).reason
    none = replace(evidence, systematic=evidence.systematic.iloc[:0])
    assert "ablation.systematic" in of_ablation.removed("all", 0.2)(none).reason


def test_the_papers_own_numbers_are_in_the_accepted_ranges() -> None:
    every = [*voita.claims(), *michel.claims()]
    assert len({claim.name for claim in every}) == len(every)
    assert all(claim.accepted[0] <= claim.accepted[1] for claim in every)
    ranges = {claim.name: claim.accepted for claim in every}
    for name, reported in {
        "baseline_wmt": 29.6,
        "encoder_wmt": -0.15,
        "encoder_opensubtitles": -0.25,
        "all_wmt_14_31_30": 0.02,
        "all_opensubtitles_6_9_13": -0.13,
        "obj_dependent_to_head": 0.38,
        "rarest_opensubtitles": 0.66,
        "two_rarest_wmt": 0.5,
        "scratch_size": 0.43,
        "cross_last": 6 / 7,
        "single": 8 / 96,
        "last_cross": -13.56 / 36.05,
        "few_decoder": 30 / 36.05 - 1,
        "redundant_late": 0.4,
    }.items():
        assert judge(Measured(reported), ranges[name]) == Verdict.REPRODUCED, name
