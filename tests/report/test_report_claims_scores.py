"""Claims of Voita et al. on scores and gates: for each rule of judgement a planted case on either side of it."""

from dataclasses import astuple, replace
from functools import partial
from math import nan

import pandas as pd
import pytest
from claim_tables import ALL_TYPES, CLAIMS, TARGETS, model, reason, scores, values, verdict

from specialized_heads.experiment.names import columns
from specialized_heads.report.claims import of_heads, of_scores
from specialized_heads.report.claims.claim import Measured, Verdict
from specialized_heads.report.claims.evidence import Evidence

HALF, FIFTH, TENTH = (partial(of_scores.difference, scope="encoder", left=left) for left in (0.5, 0.2, 0.1))
SCRATCH = partial(of_scores.better_than, control="scratch", scope="all")


def test_bleu_at_a_share_is_interpolated_between_two_models(evidence: Evidence) -> None:
    assert values(HALF(evidence)) == pytest.approx((-0.2, -0.7, 0.3))
    # A tenth of the way from 12 of 24 to the reference; half-way is too far from any model.
    above, beyond = (partial(of_scores.difference, scope="encoder", left=left) for left in (0.55, 0.75))
    assert values(above(evidence)) == pytest.approx((-0.18, -0.63, 0.27))
    assert "largest pruned model has 50.0%" in reason(beyond, evidence)
    assert of_scores.difference(evidence, scope="encoder", left=0.3125).value == pytest.approx(-0.6)
    second = scores(seed=2)
    second.loc[second["lam"] > 0, "difference"] = -0.4
    two_seeds = replace(evidence, scores=pd.concat([evidence.scores, second], ignore_index=True))
    assert HALF(two_seeds).value == pytest.approx((-0.2 - 0.4) / 2)


def test_without_models_near_a_share_a_loss_is_not_judged(evidence: Evidence) -> None:
    table = evidence.scores
    assert "smallest model has 12.5%" in reason(TENTH, evidence)
    # Undecided models are left out, but not those pruned to a number, whose gates are fixed for most of the training.
    some = table.assign(gates_decided=table["gates_decided"].where(table["lam"] != 0.02, 0.5))
    assert "smallest model has 50.0%" in reason(FIFTH, evidence, scores=some)
    HALF(replace(evidence, scores=table.assign(gates_decided=0.5, target_heads=3.0)))
    for changed in (
        table[table["lam"] != 0.01],  # too far apart
        table[table["kind"] == "baseline"],
        table.assign(gates_decided=nan),
    ):
        reason(HALF, evidence, scores=changed)
    # λ 0 of as many updates is needed for every seed.
    shorter = table.assign(updates=table["updates"].where(table["lam"] != 0, 139))
    one_seed = pd.concat([table, table[table["lam"] != 0].assign(seed=2)], ignore_index=True)
    for changed in (table[(table["lam"] != 0) | (table["scope"] == "all")], shorter, one_seed):
        assert "no model with λ 0" in reason(HALF, evidence, scores=changed)
    # A seed that is pruned with the other scope alone says nothing.
    other = pd.concat([table, scores(seed=2).query("scope != 'encoder'")], ignore_index=True)
    assert HALF(replace(evidence, scores=other)) == HALF(evidence)


@pytest.mark.parametrize(
    ("gain", "expected", "note"),
    [
        # λ 0 has an interval of half a point to both sides. What updates cost is not the price of heads either.
        (0.49, (-0.2, -0.7, 0.3), "against the baseline (λ 0 does not differ from it)"),
        (0.51, (-0.71, -1.11, -0.31), "against λ 0 (it differs from the baseline)"),
        (-0.51, (0.31, -0.09, 0.71), "against λ 0 (it differs from the baseline)"),
    ],
)
def test_the_reference_is_the_baseline_if_it_is_converged_else_lambda_0(evidence, gain, expected, note) -> None:
    measured = HALF(replace(evidence, scores=scores(gain=gain)))
    assert (*values(measured), measured.note) == (*map(pytest.approx, expected), note)


def test_gates_must_be_decided(evidence: Evidence) -> None:
    kept, first = partial(of_heads.functions_kept, left=0.5), CLAIMS["encoder_first"].measure
    for measure in (HALF, kept, of_heads.specialised_survive, first):
        measure(replace(evidence, scores=scores(decided=0.8)))
        assert "at most 79% of the gates" in reason(measure, evidence, scores=scores(decided=0.79))
    measured = of_scores.gates_decided(evidence)
    assert (measured.value, measured.n) == (1.0, 2 * 24 + 2 * 72)
    table = evidence.scores
    of_encoder = table["scope"].eq("encoder") & table["lam"].gt(0)
    mixed = replace(evidence, scores=table.assign(gates_decided=table["gates_decided"].where(~of_encoder, 0.2)))
    assert of_scores.gates_decided(mixed).value == pytest.approx((2 * 24 * 0.2 + 2 * 72) / 192)
    for decided, expected in ((0.91, Verdict.REPRODUCED), (0.9, Verdict.PARTLY), (0.89, Verdict.NOT_REPRODUCED)):
        assert verdict("gates_decided", replace(evidence, scores=scores(decided=decided))) == expected
    assert "fixes their gates" in reason(of_scores.gates_decided, evidence, scores=table.assign(target_heads=3.0))


@pytest.mark.parametrize(("closing", "judged"), [(20, False), (49, False), (50, True)])
def test_gates_that_their_rate_forces_shut_are_not_decided_by_the_loss(evidence, closing: int, judged: bool) -> None:
    # One model of two heads, whose first gate closes at this update; all others of the tables have no log.
    run = columns("pruned/encoder_lambda0.01", 1)
    opened = [(0, 0.9), (closing - 1, 0.5), (closing, 0.09), (140, 0.01)]
    logs = pd.DataFrame([run | {"update": update, "open_encoder": [[first, 0.95]]} for update, first in opened])
    logged = replace(evidence, logs=logs.astype(TARGETS))
    if judged:
        # As tuples, in which NaN equals itself; data classes compare otherwise since Python 3.13.
        assert astuple(of_scores.gates_decided(logged)) == astuple(of_scores.gates_decided(evidence))
    else:
        assert f"within {closing} updates: their rate forces" in reason(of_scores.gates_decided, logged)


def test_a_type_without_heads_has_no_gates_to_close() -> None:
    gone = columns("pruned/all_lambda0.01", 1) | dict.fromkeys(("open_encoder", "open_cross"))
    logs = pd.DataFrame([gone | {"update": update, "open_decoder": [[left]]} for update, left in ((5, 0.9), (9, 0.01))])
    assert of_scores.updates_until_closed(logs.astype(TARGETS)).tolist() == [9]


def test_numbers_of_one_of_the_papers_corpora_do_not_judge_other_data(evidence: Evidence) -> None:
    measure = partial(of_scores.baseline_bleu, data="wmt")
    for data in ("", "opensubtitles"):
        assert "same data" in reason(measure, evidence, stands_for=data)
    scored = evidence.scores.assign(bleu_tokenised_low=30.0, bleu_tokenised_high=33.0)
    assert measure(replace(evidence, stands_for="wmt", scores=scored)) == Measured(31.5, 30.0, 33.0, 1000, "sentences")
    pairs = {"encoder_wmt": "opensubtitles", "two_rarest_opensubtitles": "wmt"}
    for name, other in pairs.items():
        claim = CLAIMS[name]
        measured = claim.measure(replace(evidence, stands_for=name.split("_")[-1]))
        assert astuple(measured) == astuple(claim.measure(evidence))
        assert "a value of its own" in reason(claim.measure, evidence, stands_for=other)


def test_pruned_models_against_controls_from_scratch(evidence: Evidence) -> None:
    def measured(*twins: dict, gain: float = 0.1, **more: object) -> Measured:
        return SCRATCH(replace(evidence, scores=scores(*(twin | more for twin in twins), gain=gain)))

    twins = [model(f"scratch/all_lambda{lam}", ALL_TYPES[lam], loss=loss) for lam, loss in ((0.01, 0.5), (0.03, 0.9))]
    assert (*values(measured(*twins)), measured(*twins).n) == pytest.approx((0.3, -0.1, 0.7, 2))
    few = model("scratch/all_lambda0.01", [[0, 0, 0], [0, 0, 0], [1, 1, 2]], loss=20.0)
    assert measured(few, twins[1]).n == 1  # a control with fewer heads is left out
    assert "about as many heads" in reason(SCRATCH, evidence, scores=scores(few))
    assert "kind scratch" in reason(SCRATCH, evidence)
    short = [twin | {"updates": 899} for twin in twins]
    assert reason(SCRATCH, evidence, scores=scores(*short)).endswith("899 updates, the pruned models for 900")
    # Those that are at least as good with fewer updates count: more could not turn the claim.
    ahead = measured(*(twin | {"bleu": twin["bleu"] + 1} for twin in short))
    assert ahead.value == pytest.approx(0.3 - 1) and "899 updates" in ahead.note
    # If the baseline is not converged, the updates of pruning count too.
    assert "models for 1,040" in reason(SCRATCH, evidence, scores=scores(*twins, gain=0.6))
    assert measured(*twins, gain=0.6, updates=1040).n == 2
    # Pairs of another scope count only if there is none of the paper's.
    elsewhere = of_scores.better_than(replace(evidence, scores=scores(*twins)), control="scratch", scope="encoder")
    assert elsewhere == measured(*twins) and elsewhere.note == "scope all"
