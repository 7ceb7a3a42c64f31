"""Claims of Michel et al. on tables whose answer is known: ablation of single heads, and pruning in
order of importance."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest

from specialized_heads.report.claims import of_ablation
from specialized_heads.report.claims.evidence import Evidence, NotTestable

CROSS = partial(of_ablation.removed, pruned="cross", share=0.8)
END, LATER = (
    of_ablation.redundant_at_the_end,
    partial(of_ablation.more_redundant_than_early, kept=0.9),
)


def test_ablation(evidence: Evidence) -> None:
    last, largest = of_ablation.one_left(evidence), of_ablation.largest_loss(evidence)
    assert (last.value, last.low, last.high) == pytest.approx((-13 / 30, -13.3 / 30, -12.7 / 30))
    assert (largest.value, largest.n, largest.note) == (1.0, 1, "rank by seed 1 of 9 layers")
    assert of_ablation.two_sets(evidence).value == pytest.approx(1.0)
    other = replace(evidence, second=evidence.second.assign(delta=-evidence.second["delta"]))
    assert of_ablation.two_sets(other).value == pytest.approx(-1.0)


@pytest.mark.parametrize(("half", "seen"), [(0.380, True), (0.381, False), (0.0, False)])
def test_few_single_heads_matter_only_if_the_test_set_could_show_it(
    evidence, half: float, seen: bool
) -> None:
    """With half an interval of h, an effect needs 2.576 h / 1.96 to reach p < 0.01: 0.5 BLEU if h
    is 0.3804."""
    single = evidence.single
    single = single.assign(delta_low=single["delta"] - half, delta_high=single["delta"] + half)
    with nullcontext() if seen else pytest.raises(NotTestable):
        assert of_ablation.significant(replace(evidence, single=single)).value == pytest.approx(
            2 / 24
        )


def test_single_heads_whose_removal_raises_bleu(evidence: Evidence) -> None:
    losing, single = of_ablation.gains(evidence), evidence.single
    encoder = (single["what"] == "without") & (single["type"] == "encoder")
    first = single.index[encoder & (single["p_value"] < 0.01)][0]
    winning = replace(
        evidence, single=single.assign(delta=single["delta"].where(single.index != first, 0.5))
    )
    assert [(found.value, found.n) for found in (losing, of_ablation.gains(winning))] == [
        (0.0, 2),
        (0.5, 2),
    ]
    with pytest.raises(NotTestable, match="no encoder head changes the score"):
        of_ablation.gains(replace(evidence, single=single.assign(p_value=0.5)))


def test_pruning_in_order_of_importance(evidence: Evidence) -> None:
    measured = of_ablation.removed(evidence, pruned="all", share=0.55)
    assert measured.value == pytest.approx(-0.1)
    assert measured.high - measured.low == pytest.approx(0.6 / 30)
    assert CROSS(evidence).value == pytest.approx(-0.8)
    # 80% ± 1% of BLEU are left without 60% of the heads, all of it without half.
    for kept, ends in ((0.9, (0.5, 0.5, 0.5)), (0.805, (0.5, 0.5, 0.6)), (0.795, (0.6, 0.5, 0.6))):
        end = END(evidence, kept=kept)
        assert (end.value, end.low, end.high) == pytest.approx(ends)
    # After 300 updates a tenth of the heads costs a tenth of BLEU; after 100 there is too little
    # BLEU.
    assert LATER(evidence).value == pytest.approx(0.5 - 0.1)


def test_what_cannot_be_tested_says_why(evidence: Evidence) -> None:
    steps, single = evidence.systematic, evidence.single
    none = {"single": single.iloc[:0], "second": single.iloc[:0]}
    cases = [
        (measure, none, "ablation.single")
        for measure in (of_ablation.significant, of_ablation.two_sets, of_ablation.one_left)
    ]
    cases += [
        (
            of_ablation.one_left,
            {"single": single[single["head"] == 1]},
            "one head, which is all of it",
        ),
        (of_ablation.two_sets, {"second": single.iloc[:0]}, "on a second set"),
        (LATER, {"scores": evidence.scores.assign(updates=300)}, "does not yet translate"),
        (
            LATER,
            {"systematic": steps[steps["update"].isna()]},
            "at the end of training only .ablation.moments",
        ),
        (LATER, {"systematic": steps.iloc[:0]}, "ablation.systematic"),
        (CROSS, {"systematic": steps[steps["share"].isin([0, 1])]}, "between 0% and 100%"),
        (CROSS, {"systematic": steps.iloc[:0]}, "ablation.systematic"),
    ]
    for measure, changed, reason in cases:
        with pytest.raises(NotTestable, match=reason):
            measure(replace(evidence, **changed))


def with_loss(evidence: Evidence, share: float, loss: float) -> Evidence:
    """The evidence with this loss of BLEU at one step of the finished model."""
    steps = evidence.systematic
    here = steps["share"].eq(share) & steps["update"].isna()
    changed = {name: steps[name].mask(here, -loss) for name in of_ablation.DELTA}
    return replace(evidence, systematic=steps.assign(**changed))


def test_a_lucky_step_beyond_a_loss_does_not_count(evidence: Evidence) -> None:
    assert END(with_loss(evidence, 0.8, 0.0), kept=0.9).value == pytest.approx(0.5)


def test_up_to_a_share_the_step_that_loses_most_counts(evidence: Evidence) -> None:
    removed = partial(of_ablation.removed, with_loss(evidence, 0.1, 3.0), pruned="all", share=0.2)
    assert (removed().value, removed(up_to=True).value) == pytest.approx((0.0, -0.1))


def test_layers_that_gain_or_may_lose_by_chance_lose_nothing(evidence: Evidence) -> None:
    single = evidence.single
    first = single["what"].eq("alone") & single["layer"].eq(1)
    gain, chance = first & single["type"].eq("encoder"), first & single["type"].eq("decoder")
    changed = single.assign(
        delta=single["delta"].mask(gain, 0.5), p_value=single["p_value"].mask(chance, 0.01)
    )
    tables = (single, changed)
    shares = [of_ablation.one_is_enough(replace(evidence, single=each)).value for each in tables]
    assert shares == pytest.approx([0, 2 / 9])


@pytest.mark.parametrize(("half", "enough"), [(0.213, True), (0.214, False)])
def test_single_heads_are_weak_evidence_if_only_large_effects_could_be_seen(
    evidence: Evidence, half: float, enough: bool
) -> None:
    """The median of the paper's effects, 0.28 BLEU, reaches p < 0.01 if half an interval is
    0.2131."""
    single = evidence.single
    single = single.assign(delta_low=single["delta"] - half, delta_high=single["delta"] + half)
    changed = replace(evidence, single=single)
    for measure in (of_ablation.significant, of_ablation.two_sets):
        assert measure(changed).sufficient == enough


def test_heads_of_other_types_do_not_count_among_those_that_raise_bleu(evidence: Evidence) -> None:
    single = evidence.single
    others = single["type"].ne("encoder")
    raising = single.assign(
        delta=single["delta"].mask(others, 0.5), p_value=single["p_value"].mask(others, 0.001)
    )
    found = of_ablation.gains(replace(evidence, single=raising))
    assert (found.value, found.n) == (0.0, 2)
