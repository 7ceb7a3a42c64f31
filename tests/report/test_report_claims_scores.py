"""Claims of Voita et al. on scores and gates: for each rule of judgement a planted case on either
side of it."""

from dataclasses import astuple, replace
from functools import partial
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from claim_tables import ALL_TYPES, MEASURES, TARGETS, model, reason, scores, values, verdict

from specialized_heads.experiment.names import columns
from specialized_heads.report.claims import of_scores, of_survival
from specialized_heads.report.claims.claim import Measured, Unit, Verdict
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.data import with_ends


def at(left: float, **more: str):
    """BLEU with this share of the encoder heads, against λ 0."""
    return lambda evidence: of_scores.difference(evidence, scope="encoder", left=left, **more)


HALF, FIFTH, TWENTIETH = at(0.5), at(0.2), at(0.05)
SCRATCH = partial(of_scores.better_than, controls=["continued", "scratch"], scope="all")


def test_bleu_at_a_share_is_interpolated_between_two_models(evidence: Evidence) -> None:
    # The baseline's 30 BLEU less 0.2; λ 0 gains 0.1 and is the reference, whatever its interval.
    assert values(HALF(evidence)) == pytest.approx((-0.3, -0.7, 0.1))
    assert values(at(0.5, column="difference")(evidence)) == pytest.approx((-0.2, -0.7, 0.3))
    # A tenth of the way from 12 of 24 to the reference; half-way is too far from any model.
    assert values(at(0.55)(evidence)) == pytest.approx((-0.27, -0.63, 0.09))
    assert "largest pruned model has 50.0%" in reason(at(0.75), evidence)
    assert at(0.3125)(evidence).value == pytest.approx(-0.7)
    for gain in (-0.6, 0.6):  # also where λ 0 differs clearly from the baseline
        assert HALF(replace(evidence, scores=scores(gain=gain))).value == pytest.approx(-0.2 - gain)


def test_the_interval_of_a_mean_over_seeds_is_that_of_one_bootstrap(evidence: Evidence) -> None:
    """Resamples of sentences are the same for all seeds: noise of their own averages out, that of
    the sentences stays."""
    random = np.random.default_rng(1)
    shared, tables = random.normal(0, 0.1, 1000), []
    for seed in (1, 2, 3):
        table = scores(seed=seed)
        drawn = [
            shared + random.normal(0, 0.3, 1000) + value
            for value in table["counterpart_difference"]
        ]
        tables.append(table.assign(counterpart_difference_samples=drawn))
    several = replace(evidence, scores=pd.concat(tables, ignore_index=True))
    measured = HALF(several)
    deviation = (0.1**2 + 0.3**2 / 3) ** 0.5
    assert (measured.high - measured.low) / 2 == pytest.approx(1.96 * deviation, rel=0.1)
    assert measured.baselines == 3
    # An interval over sentences says nothing of other baselines: that over them widens it.
    several.scores.loc[several.scores["seed"] == 2, "counterpart_difference"] -= 3
    loss, over = HALF(several), 4.303 * 3 / 3
    assert (loss.low, loss.high) == pytest.approx((loss.value - over, loss.value + over), abs=0.01)
    assert f"over sentences [{Unit.DIFFERENCE.text(measured.low)}" in loss.note
    several.scores.loc[several.scores["seed"] == 2, "counterpart_difference"] += 3
    # Older tables have no resamples: the mean of the seeds' intervals is at least as wide.
    without = replace(several, scores=several.scores.drop(columns="counterpart_difference_samples"))
    assert values(HALF(without)) == pytest.approx((-0.3, -0.7, 0.1))
    # The oldest have no comparison at all.
    names = [name for name in several.scores if name.startswith("counterpart_")]
    oldest = several.scores[several.scores["seed"] < 3].drop(columns=names)
    found = HALF(replace(several, scores=oldest))
    assert isnan(found.low) and "sentences [" not in found.note


def test_seeds_whose_models_do_not_tell_are_named_and_left_out(evidence: Evidence) -> None:
    first, second = (scores(seed=seed) for seed in (1, 2))
    several = pd.concat([first, second[second["lam"] != 0.02]], ignore_index=True)
    measured = FIFTH(replace(evidence, scores=several))
    assert measured.value == FIFTH(evidence).value and measured.baselines == 1
    assert "smallest model of seed 2 has 50.0% of its heads left, not 20.0%" in measured.note


def test_without_models_near_a_share_a_loss_is_not_judged(evidence: Evidence) -> None:
    table = evidence.scores
    assert "smallest model has 12.5%" in reason(TWENTIETH, evidence)
    # Undecided models are left out, but not those pruned to a number, whose gates are fixed for
    # most of the training.
    some = table.assign(gates_decided=table["gates_decided"].where(table["lam"] != 0.02, 0.5))
    assert "smallest model has 50.0%" in reason(FIFTH, evidence, scores=some)
    HALF(replace(evidence, scores=table.assign(gates_decided=0.5, target_heads=3.0)))
    for changed in (
        table[table["lam"] != 0.01],  # too far apart
        table[table["kind"] == "baseline"],
        table.assign(gates_decided=nan),
    ):
        reason(HALF, evidence, scores=changed)
    # λ 0 of as many updates is needed; a seed without it does not count.
    shorter = table.assign(updates=table["updates"].where(table["lam"] != 0, 139))
    for changed in (table[(table["lam"] != 0) | (table["scope"] == "all")], shorter):
        assert "no model with λ 0" in reason(HALF, evidence, scores=changed)
    one_seed = pd.concat([table, table[table["lam"] != 0].assign(seed=2)], ignore_index=True)
    assert HALF(replace(evidence, scores=one_seed)) == HALF(evidence)
    measured = MEASURES["encoder_wmt"](replace(evidence, scores=one_seed))
    assert "seed 2 has no model with λ 0" in measured.note
    assert "against the baseline" in measured.note
    # A model that was scored without the comparison has a difference, but no interval.
    ends = ["counterpart_difference", *with_ends("counterpart_difference")[1:]]
    unscored = pd.concat([table, scores(seed=2).assign(**dict.fromkeys(ends, nan))])
    bare = HALF(replace(evidence, scores=unscored.reset_index(drop=True)))
    assert bare.baselines == 2 and bare.value == pytest.approx(HALF(evidence).value)
    assert (bare.low, bare.high) == (HALF(evidence).low, HALF(evidence).high)
    # A seed that is pruned with the other scope alone says nothing.
    other = pd.concat([table, scores(seed=2).query("scope != 'encoder'")], ignore_index=True)
    assert HALF(replace(evidence, scores=other)) == HALF(evidence)


def test_gates_must_be_decided(evidence: Evidence) -> None:
    kept = partial(of_survival.functions_kept, left=0.5)
    for measure in (HALF, kept, of_survival.survival, MEASURES["encoder_first"]):
        measure(replace(evidence, scores=scores(decided=0.8)))
        assert "at most 79% of the gates" in reason(measure, evidence, scores=scores(decided=0.79))
    measured = of_scores.gates_decided(evidence)
    assert (measured.value, measured.n) == (1.0, 2 * 24 + 2 * 72)
    table = evidence.scores
    of_encoder = table["scope"].eq("encoder") & table["lam"].gt(0)
    mixed = replace(
        evidence, scores=table.assign(gates_decided=table["gates_decided"].where(~of_encoder, 0.2))
    )
    assert of_scores.gates_decided(mixed).value == pytest.approx((2 * 24 * 0.2 + 2 * 72) / 192)
    for decided, expected in ((0.9, Verdict.AFTER_SELECTION), (0.89, Verdict.BY_OUR_THRESHOLD)):
        several = pd.concat(
            [scores(seed=seed, decided=decided) for seed in (1, 2, 3)], ignore_index=True
        )
        assert verdict("gates_decided", replace(evidence, scores=several)) == expected
    assert "fixes their gates" in reason(
        of_scores.gates_decided, evidence, scores=table.assign(target_heads=3.0)
    )


@pytest.mark.parametrize(("closing", "judged"), [(20, False), (49, False), (50, True)])
def test_gates_that_their_rate_forces_shut_are_not_decided_by_the_loss(
    evidence, closing: int, judged: bool
) -> None:
    # One model of two heads, whose first gate closes at this update; all others of the tables have
    # no log.
    run = columns("pruned/encoder_lambda0.01", 1)
    opened = [(0, 0.9), (closing - 1, 0.5), (closing, 0.09), (140, 0.01)]
    logs = pd.DataFrame(
        [run | {"update": update, "open_encoder": [[first, 0.95]]} for update, first in opened]
    )
    logged = replace(evidence, logs=logs.astype(TARGETS))
    if judged:
        # As tuples, in which NaN equals itself; data classes compare otherwise since Python 3.13.
        assert astuple(of_scores.gates_decided(logged)) == astuple(
            of_scores.gates_decided(evidence)
        )
    else:
        assert f"within {closing} updates: their rate forces" in reason(
            of_scores.gates_decided, logged
        )


def test_a_type_without_heads_has_no_gates_to_close() -> None:
    gone = columns("pruned/all_lambda0.01", 1) | dict.fromkeys(("open_encoder", "open_cross"))
    logs = pd.DataFrame(
        [
            gone | {"update": update, "open_decoder": [[left]]}
            for update, left in ((5, 0.9), (9, 0.01))
        ]
    )
    assert of_scores.updates_until_closed(logs.astype(TARGETS)).tolist() == [9]


def test_numbers_of_one_of_the_papers_corpora_do_not_judge_other_data(evidence: Evidence) -> None:
    measure = partial(of_scores.baseline_bleu, data="wmt")
    for data in ("", "opensubtitles"):
        assert "same data" in reason(measure, evidence, stands_for=data)
    scored = evidence.scores.assign(bleu_tokenised_low=30.0, bleu_tokenised_high=33.0)
    assert measure(replace(evidence, stands_for="wmt", scores=scored)) == Measured(
        31.5, 30.0, 33.0, 1000, "sentences"
    )
    measure = MEASURES["encoder_wmt"]
    assert measure(replace(evidence, stands_for="wmt")) == measure(evidence)
    assert "a value of its own" in reason(measure, evidence, stands_for="opensubtitles")


def test_pruned_models_against_controls_from_scratch(evidence: Evidence) -> None:
    def measured(*twins: dict, **more: object) -> Measured:
        return SCRATCH(replace(evidence, scores=scores(*(twin | more for twin in twins))))

    def twins(kind: str) -> list[dict]:
        pairs = ((0.01, 0.5), (0.03, 0.9))
        return [
            model(f"{kind}/all_lambda{lam}", ALL_TYPES[lam], loss=loss, updates=1040)
            for lam, loss in pairs
        ]

    # As many updates in as many decays: the number of heads alone differs.
    fair = measured(*twins("continued"))
    assert (*values(fair), fair.n, fair.confounded) == pytest.approx((0.3, -0.1, 0.7, 2, False))
    assert measured(*twins("continued"), updates=900).confounded
    one_decay = measured(*twins("scratch"))
    assert one_decay.confounded and "in one decay" in one_decay.note
    assert (
        verdict("scratch", replace(evidence, scores=scores(*twins("scratch"))))
        == Verdict.CONFOUNDED
    )
    # Where there are both, the control with the same schedule counts.
    assert measured(*twins("scratch"), *twins("continued")) == fair
    few = model(
        "continued/all_lambda0.01", [[0, 0, 0], [0, 0, 0], [1, 1, 2]], loss=20.0, updates=1040
    )
    assert measured(few, twins("continued")[1]).n == 1  # a control with fewer heads is left out
    assert "about as many heads" in reason(SCRATCH, evidence, scores=scores(few))
    assert "kind continued or scratch" in reason(SCRATCH, evidence)
    # The gates of a control decide in its first part.
    gated = twins("regularised")
    second = [*twins("continued_regularised"), *[row | {"gates_decided": 0.2} for row in gated[:1]]]
    several = replace(evidence, scores=scores(*second, gated[1] | {"gates_decided": 0.9}))
    found = of_scores.better_than(several, controls=["continued_regularised"], scope="all")
    assert (found.n, found.value) == (1, pytest.approx(0.2))
    # Pairs of another scope count only if there is none of the paper's.
    given = replace(evidence, scores=scores(*twins("continued")))
    elsewhere = of_scores.better_than(given, controls=["continued"], scope="encoder")
    assert elsewhere == fair and "scope all" in elsewhere.note


@pytest.mark.parametrize(("fewer", "pairs"), [(3, 2), (4, 1)])  # 5% of 72 heads are 3.6
def test_a_control_has_about_as_many_heads(evidence: Evidence, fewer: int, pairs: int) -> None:
    first = [*ALL_TYPES[0.01][:2], [6 - fewer, 8, 8]]
    controls = [
        model(f"continued/all_lambda{lam}", kept, loss=0.5, updates=1040)
        for lam, kept in ((0.01, first), (0.03, ALL_TYPES[0.03]))
    ]
    assert SCRATCH(replace(evidence, scores=scores(*controls))).n == pairs
