"""Claims of Voita et al. on heads: for each rule of judgement a planted case on either side of
it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from claim_tables import (
    ALL_TYPES,
    FUNCTIONAL,
    MEASURES,
    POSITIONAL,
    flags,
    planted,
    reason,
    seeds,
    verdict,
)

from specialized_heads.report.claims import of_heads
from specialized_heads.report.claims.claim import Verdict
from specialized_heads.report.claims.evidence import Evidence

# Functions of heads.


def test_margins_are_one_sided_and_means_over_baselines(three: Evidence) -> None:
    column, seed = "obj_head_to_dependent_margin", three.heads["seed"]
    for margins, expected in (
        ([0.30, 0.32, 0.31], Verdict.AFTER_SELECTION),
        ([0.95, 0.96, 0.97], Verdict.AFTER_SELECTION),  # better than the paper's heads
        ([0.14, 0.08, 0.12], Verdict.INCONCLUSIVE),
        # no better than the offset, for all that three baselines say
        ([0.30, 0.02, 0.05], Verdict.INCONCLUSIVE),
        ([0.0, 0.01, 0.02], Verdict.NOT_REPRODUCED),
    ):
        values_by_seed = seed.map(dict(enumerate(margins, start=1)))
        evidence = planted(
            three, **dict.fromkeys([column, f"{column}_low", f"{column}_high"], values_by_seed)
        )
        measured = MEASURES["obj_head_to_dependent"](evidence)
        assert (measured.value, measured.n) == (pytest.approx(np.mean(margins)), 302)
        assert verdict("obj_head_to_dependent", evidence) == expected
    assert "302 arcs" in reason(MEASURES["obj_head_to_dependent"], three, least_arcs=400)
    conjuncts = partial(of_heads.margin, relation="conj", direction="head_to_dependent")
    assert "heads.relations" in reason(conjuncts, three)


def test_the_measure_that_selected_the_recipe_is_counted_apart(make) -> None:
    five = seeds(make.heads(), *[ALL_TYPES] * 5)
    with_head = planted(five, positional_share=np.where(five.heads["head"].eq(3), 0.92, 0.3))
    assert verdict("positional", with_head) == Verdict.AFTER_SELECTION
    assert verdict("positional", planted(five, positional_share=0.89)) == Verdict.BY_OUR_THRESHOLD


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([True] * 5, Verdict.AFTER_SELECTION),
        ([True] * 3, Verdict.INCONCLUSIVE),  # Wilson's interval of 3 of 3 begins at 44%
        ([True, False, False], Verdict.INCONCLUSIVE),
        ([False] * 3, Verdict.INCONCLUSIVE),  # up to 56% of the baselines may have one
        ([False] * 5, Verdict.BY_OUR_THRESHOLD),
    ],
)
def test_that_something_exists_is_a_share_of_the_baselines(
    make, found: list[bool], expected: Verdict
) -> None:
    evidence = seeds(make.heads(), *[ALL_TYPES] * len(found))
    shares = evidence.heads["seed"].map(
        dict(enumerate([0.95 if it else 0.2 for it in found], start=1))
    )
    evidence = planted(evidence, **{"share_+1": shares})
    measured = MEASURES["positional_next"](evidence)
    assert (measured.value, measured.n) == (pytest.approx(np.mean(found)), len(found))
    assert verdict("positional_next", evidence) == expected


def test_positional_heads_that_are_fixed_confirm_nothing(three: Evidence) -> None:
    fixed = three.scores.assign(fixed_patterns=True)
    for name in ("positional", "positional_confidence"):
        MEASURES[name](replace(three, scores=three.scores.assign(fixed_patterns=False)))
        assert "fixed, not learned" in reason(MEASURES[name], three, scores=fixed)


def test_rare_words_are_one_claim(three: Evidence) -> None:
    first = three.heads["layer"].eq(1)
    evidence = planted(
        three, two_rarest=np.where(first, 0.37, 0.9), rarest=np.where(first, 0.2, 0.9)
    )
    measured = MEASURES["rare_words"](evidence)
    assert measured.value == pytest.approx(0.37) and "on the rarest token 20%" in measured.note
    assert verdict("rare_words", evidence) == Verdict.NOT_REPRODUCED
    assert verdict("rare_words", planted(three, two_rarest=0.6)) == Verdict.REPRODUCED


# Relevance and confidence.


def test_the_most_relevant_heads_have_functions(three: Evidence) -> None:
    labelled = flags(three, FUNCTIONAL)
    best, opposite, level = (
        planted(three, relevance=r) for r in (labelled * 1.0, -1.0 * labelled, three.heads["layer"])
    )
    measured = MEASURES["relevance_functions"](best)
    assert (measured.value, measured.n, measured.baselines) == (1.0, 3 * 7, 3)
    # Ranks in layers of 4, 2 and 1 heads with a function: (1 + 2 + 3 + 4) / 4 for four of them, and
    # so on.
    assert measured.note.startswith(f"mean rank {(4 * 2.5 + 2 * 1.5 + 1) / 7:.1f} of 8")
    # The most relevant heads have a function; the converse is claimed of positional ones alone.
    for name, otherwise in (
        ("relevance_positional", Verdict.NOT_REPRODUCED),
        ("relevance_top", Verdict.BY_OUR_THRESHOLD),
    ):
        assert verdict(name, best) == Verdict.REPRODUCED
        assert verdict(name, opposite) == otherwise
    for name in ("relevance_functions", "relevance_syntactic"):
        assert verdict(name, best) == Verdict.VALUE_ONLY
    # Ties count one half; the level of a layer does not matter.
    assert MEASURES["relevance_functions"](level).value == 0.5
    # By hand: in layer 3 head 4 has a function and beats heads 1 to 3, in layer 2 heads 5 and 6
    # beat 1 to 4.
    numbered = planted(three, relevance=three.heads["head"])
    wins, pairs = 3 + 2 * 4 + (0 + 0 + 0 + 3), 7 + 2 * 6 + 4 * 4
    assert MEASURES["relevance_functions"](numbered).value == pytest.approx(wins / pairs)
    none = [[] for _ in range(len(three.heads))]
    assert "no layer" in reason(
        MEASURES["relevance_functions"],
        three,
        heads=three.heads.assign(functions=none, relations=none),
    )


def test_relevance_that_follows_confidence_adds_nothing_to_it(three: Evidence) -> None:
    """A marginal association vanishes at equal confidence; one beyond confidence remains."""
    head, labelled = three.heads["head"], flags(three, FUNCTIONAL)
    noise = np.random.default_rng(3).normal(0, 0.06, len(head))
    confidence = 0.05 * head + 0.5 * labelled
    same, more = (
        planted(three, confidence=confidence, relevance=confidence + noise),
        planted(three, confidence=0.05 * head, relevance=0.05 * head + 0.5 * labelled),
    )
    assert MEASURES["relevance_functions"](same).value > 0.95
    assert MEASURES["confidence_functions"](same).value > 0.95
    assert abs(MEASURES["relevance_given_confidence"](same).value) < 0.25
    assert MEASURES["relevance_given_confidence"](more).value > 0.6
    assert verdict("relevance_given_confidence", more) == Verdict.VALUE_ONLY


def test_positional_heads_have_a_claim_of_their_own(three: Evidence) -> None:
    positional = planted(
        three, relevance=flags(three, POSITIONAL) * 1.0, confidence=flags(three, POSITIONAL) * 1.0
    )
    others = planted(
        three, relevance=flags(three, [p for p in FUNCTIONAL if p not in POSITIONAL]) * 1.0
    )
    for name in ("relevance_positional", "confidence_positional"):
        assert (
            MEASURES[name](positional).value == 1.0
            and verdict(name, positional) == Verdict.REPRODUCED
        )
    assert verdict("relevance_positional", others) != Verdict.REPRODUCED


def test_relevance_agrees_with_confidence_but_for_the_exception(three: Evidence) -> None:
    head = three.heads["head"]
    mixed = head.map(dict(enumerate([1, 6, 3, 8, 2, 5, 7, 4], start=1))) * three.heads["seed"].map(
        {1: 1, 2: -1, 3: 1}
    )
    for confidence, expected in (
        (head, Verdict.REPRODUCED),
        (-head, Verdict.NOT_REPRODUCED),
        (mixed, Verdict.INCONCLUSIVE),
    ):
        evidence = planted(three, relevance=head / 36, confidence=confidence / 10)
        assert verdict("relevance_confidence", evidence) == expected
    # A rare-words head that is the most relevant of layer 1 does not count: 7 + 8 + 8 heads of each
    # baseline.
    exception = three.heads["layer"].eq(1) & head.eq(8)
    low = planted(three, relevance=head / 36, confidence=(head / 10).where(~exception, 0.05))
    rare = low.heads["functions"].where(~exception, pd.Series([["rare words"]] * len(head)))
    measured = MEASURES["relevance_confidence"](planted(low, functions=rare))
    assert (measured.value, measured.n) == (pytest.approx(1.0), 3 * 23)
    # Without a function the same head counts.
    measured = MEASURES["relevance_confidence"](low)
    assert (measured.value < 0.9, measured.n) == (True, 3 * 24)


def test_few_heads_dominate_a_layer(three: Evidence) -> None:
    def with_relevance(*layers: list[float]) -> Evidence:
        heads = three.heads
        return planted(
            three,
            relevance=[
                layers[layer - 1][head - 1] for layer, head in zip(heads["layer"], heads["head"])
            ],
        )

    # top two of eight: 50% or 49%
    half, less = [0.3, 0.2, *[0.5 / 6] * 6], [0.29, 0.2, *[0.51 / 6] * 6]
    assert MEASURES["relevance_dominated"](with_relevance(half, half, half)).value == 1.0
    # 9 of 9 layers: at least 70%
    assert verdict("relevance_dominated", with_relevance(half, half, half)) == Verdict.INCONCLUSIVE
    top = MEASURES["relevance_top"](planted(three, relevance=flags(three, FUNCTIONAL) * 1.0))
    assert (top.value, top.n) == (1.0, 9) and top.note.startswith("of all heads 29%")
    # The threshold is ours, and a verdict that rests on it says so.
    assert (
        verdict("relevance_dominated", with_relevance(half, less, less)) == Verdict.BY_OUR_THRESHOLD
    )
    assert MEASURES["relevance_dominated"](with_relevance(half, half, less)).value == pytest.approx(
        2 / 3
    )
    # Layers with too few heads do not count: neither in the share nor in its interval.
    small = three.heads[(three.heads["layer"] == 1) | (three.heads["head"] < 4)]
    whole = MEASURES["relevance_dominated"](with_relevance(half, half, half))
    part = with_relevance(half, half, half)
    part = replace(part, heads=part.heads.loc[small.index])
    part = MEASURES["relevance_dominated"](part)
    assert (whole.n, part.n, part.value) == (9, 3, 1.0) and part.low < whole.low
    few = three.heads[three.heads["head"] < 4]
    assert "4 heads" in reason(MEASURES["relevance_dominated"], three, heads=few)
    far, near = [0.1] * 5 + [0.5, 0.24, 0.0], [0.1] * 5 + [0.5, 0.26, 0.0]
    assert verdict("relevance_first", with_relevance(far, half, half)) == Verdict.REPRODUCED
    assert MEASURES["relevance_first"](with_relevance(near, far, far)).value == pytest.approx(0.52)
    assert "relevance_rules" in reason(MEASURES["relevance_functions_weight_ratios"], three)


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([-0.3, -0.25], Verdict.INCONCLUSIVE),  # no interval
        ([-0.3, -0.25, -0.28], Verdict.REPRODUCED),
        ([-0.3, -0.25, 0.05], Verdict.INCONCLUSIVE),
        ([0.3, 0.25, 0.28], Verdict.NOT_REPRODUCED),
    ],
)
def test_the_exception_in_layer_1_needs_a_rare_words_head(
    make, gaps: list[float], expected: Verdict
) -> None:
    """Per seed, this gap in confidence between the most relevant head of layer 1 and the others."""
    made = seeds(make.heads(), *[ALL_TYPES] * len(gaps))
    heads = made.heads.assign(confidence=0.5, relevance=0.1)
    for seed, gap in enumerate(gaps, start=1):
        top = heads["seed"].eq(seed) & heads["layer"].eq(1) & heads["head"].eq(2)
        heads.loc[top, ["relevance", "confidence"]] = [0.4, 0.5 + gap]
    assert verdict("relevance_exception", replace(made, heads=heads)) == expected
    none = heads.assign(functions=[[] for _ in range(len(heads))])
    assert "needs a rare-words head" in reason(MEASURES["relevance_exception"], made, heads=none)


def test_relevance_and_the_effect_of_removal(three: Evidence) -> None:
    single = pd.concat([three.single.assign(seed=seed) for seed in (1, 2, 3)], ignore_index=True)
    encoder = single["type"].eq("encoder") & single["what"].eq("without")
    # the higher the number, the larger the loss
    single.loc[encoder, "delta"] = -single.loc[encoder, "head"]
    ablated = replace(three, single=single)
    assert MEASURES["relevance_effect"](
        planted(ablated, relevance=three.heads["head"])
    ).value == pytest.approx(1.0)
    assert MEASURES["confidence_effect"](
        planted(ablated, confidence=-three.heads["head"])
    ).value == pytest.approx(-1.0)
    assert "ablation.single" in reason(MEASURES["relevance_effect"], three, single=single[:0])


def test_claims_of_z_plus_are_of_z_plus_whichever_rule_comes_first(evidence: Evidence) -> None:
    """The column `relevance` is that of the first rule; with z⁺ alone, no column has its name."""
    measure, other = MEASURES["relevance_confidence"], 1 - evidence.heads["relevance"]
    alone = measure(evidence).value
    rules = {"relevance_epsilon": other, "relevance_z_plus": evidence.heads["relevance"]}
    first = replace(evidence, heads=evidence.heads.assign(relevance=other, **rules))
    assert measure(first).value == alone != 0
    only = evidence.heads.assign(relevance=other, relevance_epsilon=other)
    for name in ("relevance_confidence", "relevance_top", "relevance_first", "relevance_exception"):
        assert "relevance_z_plus is not measured" in reason(MEASURES[name], evidence, heads=only)


@pytest.mark.parametrize(
    ("relevance", "share"),
    [([-0.35, -0.2, *[0.075] * 6], 1.0), ([0.3, 0.19, *[0.085] * 5, -0.085], 0.0)],
)
def test_relevance_of_both_signs_dominates_by_its_size(three, relevance, share) -> None:
    values = three.heads["head"].map(dict(enumerate(relevance, start=1)))
    measured = MEASURES["relevance_dominated_weight_ratios"](
        planted(three, relevance_epsilon=values)
    )
    assert measured.value == share


def test_the_exception_is_compared_with_the_other_heads_of_its_layer(three: Evidence) -> None:
    top = flags(three, [(1, 1)])  # a rare-words head
    evidence = planted(three, relevance=np.where(top, 0.4, 0.1), confidence=np.where(top, 0.2, 0.6))
    assert MEASURES["relevance_exception"](evidence).value == pytest.approx(0.2 - 0.6)


def test_the_least_confident_positional_head_counts(three: Evidence) -> None:
    # Heads 2, 3 and 7 of layer 1 and head 6 of layer 2.
    numbered = planted(three, confidence=three.heads["head"] / 10)
    measured = MEASURES["positional_confidence"](numbered)
    assert (measured.value, measured.n) == (pytest.approx(0.2), 3 * len(POSITIONAL))
