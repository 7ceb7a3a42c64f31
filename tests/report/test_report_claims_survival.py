"""Claims of Voita et al. on the heads that survive pruning: for each rule of judgement a planted
case on either side of it."""

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
    WHOLE,
    flags,
    planted,
    reason,
    seeds,
    verdict,
)

from specialized_heads.report.claims import of_survival
from specialized_heads.report.claims.claim import Verdict, judged, shown
from specialized_heads.report.claims.evidence import Evidence


def test_survival_is_compared_within_layers(evidence: Evidence) -> None:
    measured = MEASURES["specialised_survive"](evidence)
    # Survival in two models. Layer 1: with a function 1/2, 1, 1/2, 1/2, without 1/2, 1, 1/2, 0;
    # layer 2: 1/2, 1/2 against 1/2, 1/2 and four times 0; layer 3: 1/2 against 1/2 and six times 0.
    gaps, weights = (
        np.array([0.625 - 0.5, 0.5 - 1 / 6, 0.5 - 1 / 14]),
        np.array([4 * 4 / 8, 2 * 6 / 8, 1 * 7 / 8]),
    )
    assert measured.value == pytest.approx((gaps * weights).sum() / weights.sum())
    assert measured.low < measured.value < measured.high and measured.n == 24  # a head counts once
    # All heads with a function in one layer, which survives: the layer may be the reason.
    functions = evidence.heads["layer"].map(lambda layer: ["positional"] if layer == 1 else [])
    confounded = evidence.heads.assign(functions=functions, relations=[[] for _ in functions])
    assert "do not differ" in reason(MEASURES["specialised_survive"], evidence, heads=confounded)
    # Where no relation has enough arcs, syntactic heads have no function.
    sparse = MEASURES["specialised_survive"](replace(evidence, least_arcs=400))
    assert sparse.value != pytest.approx(measured.value)


def test_a_claim_that_rests_on_one_head_says_so(evidence: Evidence) -> None:
    place = (
        evidence.heads["type"].eq("encoder")
        & evidence.heads["layer"].eq(1)
        & evidence.heads["head"].eq(1)
    )
    functions = [["positional"] if one else [] for one in place]
    alone = replace(
        evidence,
        heads=evidence.heads.assign(functions=functions, relations=[[] for _ in functions]),
    )
    rows = judged([alone]).set_index("claim")
    resting = ["relevance_functions", "relevance_given_confidence", "positional_confidence"]
    resting += ["specialised_survive", "survive_given_confidence"]
    assert rows.loc[resting, "note"].str.contains("rests on one head").all()
    assert not judged([evidence])["note"].str.contains("rests on one head").any()
    text = shown(rows.reset_index())
    assert "1 head with a function" in set(text["n"]) and "1 positional head" in set(text["n"])


SYNTACTIC = [place for place in FUNCTIONAL if place not in POSITIONAL]


@pytest.mark.parametrize(
    ("kept", "positional", "syntactic"),
    [
        (FUNCTIONAL, Verdict.REPRODUCED, Verdict.REPRODUCED),
        (POSITIONAL, Verdict.REPRODUCED, Verdict.INCONCLUSIVE),
        # the heads' interval within baselines is wide
        (SYNTACTIC, Verdict.INCONCLUSIVE, Verdict.REPRODUCED),
    ],
)
def test_positional_and_syntactic_heads_have_verdicts_of_their_own(
    make, monkeypatch, kept, positional, syntactic
) -> None:
    extra = [(1, 4), (2, 1), (3, 1)] if kept != FUNCTIONAL else []
    monkeypatch.setattr("claim_tables.ENCODER", {0.01: [*kept, *extra]})
    evidence = seeds(make.heads(), ALL_TYPES, ALL_TYPES, ALL_TYPES)
    found = verdict("positional_survive", evidence), verdict("syntactic_survive", evidence)
    assert found == (positional, syntactic)


def test_survival_counts_only_targets_that_every_seed_has(three: Evidence) -> None:
    """Seed 1 lacks the first λ: the other seeds' models with it would make their heads survive more
    often than its own."""
    lams = three.scores["lam"]
    apart = three.scores[lams.ne(0.01) | three.scores["seed"].ne(1)]
    alike = three.scores[lams.ne(0.01)]
    found, expected = (
        replace(three, scores=scores).survival("encoder")["survival"] for scores in (apart, alike)
    )
    assert found.tolist() == expected.tolist() != three.survival("encoder")["survival"].tolist()
    none = apart[apart["lam"].ne(0.02) | apart["seed"].eq(1)]
    assert "same λ" in reason(of_survival.survival, three, scores=none)


def test_survival_at_equal_confidence(three: Evidence) -> None:
    """Heads survive for their confidence, or for their function: only the latter is left at equal
    confidence."""
    labelled = pd.Series(flags(three, FUNCTIONAL), index=three.heads.index)
    survives = of_survival.surviving(three, "encoder").set_index(["seed", "layer", "head"])[
        "survival"
    ]
    keys = three.heads[["seed", "layer", "head"]].itertuples(index=False, name=None)
    own = pd.Series([survives.get(key, 0.0) for key in keys], index=three.heads.index)
    by_confidence = planted(three, confidence=own)
    plain, given = (
        MEASURES[name](by_confidence)
        for name in ("specialised_survive", "survive_given_confidence")
    )
    assert abs(given.value) < abs(plain.value) / 2 and "heads permuted within layers" in given.note
    apart = planted(three, confidence=np.where(labelled, 0.0, three.heads["head"]))
    assert MEASURES["survive_given_confidence"](apart).value > plain.value / 2


def test_heads_of_smaller_models_among_those_of_larger_ones(three: Evidence) -> None:
    measured = MEASURES["nested"](three)
    # Of the three heads of the smaller model the larger one has two; 3 of 6 and 8 heads of layer 1
    # are 2.25 by chance.
    assert (measured.value, measured.n, measured.baselines) == (pytest.approx(2 / 3), 9, 3)
    assert "by chance 75%; order, dropout and gate noise are the same" in measured.note
    drawn = pd.Series(range(len(three.scores)), three.scores.index)
    for own, said in (
        (drawn, "drawn for each model"),
        (drawn * 0, "the same in all models of a baseline"),
        (drawn.where(three.scores["seed"] != 2), "the same in all models of seed 2"),
    ):
        assert (
            said
            in MEASURES["nested"](replace(three, scores=three.scores.assign(own_seed=own))).note
        )
    one = three.scores[three.scores["model"] != "encoder_lambda0.02"]
    assert "no baseline has two pruned models" in reason(MEASURES["nested"], three, scores=one)
    none_left = three.heads[three.heads["model"] != "encoder_lambda0.02"]
    assert "no encoder head left" in reason(MEASURES["nested"], three, heads=none_left)


def test_functions_kept_are_interpolated_and_compared_with_chance(evidence: Evidence) -> None:
    kept = partial(of_survival.functions_kept, left=0.5)
    assert kept(evidence).value == 1.0  # with 12 of 24 heads
    # With 3 heads an eighth is left, and one of three functions: a share of 0.3125 lies half-way
    # between 0.125 and 0.5.
    half_way = of_survival.functions_kept(evidence, left=0.3125)
    assert (
        half_way.value == pytest.approx((1 / 3 + 1) / 2)
        and "random heads, as many per layer, keep" in half_way.note
    )
    assert "smallest model has 12.5%" in reason(
        partial(of_survival.functions_kept, left=0.05), evidence
    )
    bare = [[] for _ in range(len(evidence.heads))]
    assert "no function" in reason(
        kept, evidence, heads=evidence.heads.assign(functions=bare, relations=bare)
    )


def test_functions_kept_are_shown_in_the_order_of_seeds(three: Evidence) -> None:
    """Seed 1 lacks the first λ, and the heads left in seed 3 have no function."""
    larger = three.scores["model"].eq("encoder_lambda0.01") & three.scores["seed"].eq(1)
    bare = three.heads["kind"].eq("pruned") & three.heads["seed"].eq(3)
    lists = {
        name: [[] if none else own for none, own in zip(bare, three.heads[name])]
        for name in ("functions", "relations")
    }
    changed = replace(three, scores=three.scores[~larger], heads=three.heads.assign(**lists))
    assert "; by seed 33%, 33%, 0%; " in of_survival.functions_kept(changed, left=0.125).note


def test_functions_that_random_heads_would_keep(evidence: Evidence) -> None:
    """By simulation: draws of as many heads per layer as a model has left."""
    whole = evidence.baseline_heads()
    left = whole[
        [
            place in [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]
            for place in zip(whole["layer"], whole["head"])
        ]
    ]
    names = pd.Series(evidence.functions(whole), index=whole.index)
    had, random = set().union(*names), np.random.default_rng(5)
    counts = []
    for _ in range(4000):
        drawn = [
            random.choice(same.index, {1: 2, 2: 1, 3: 2}[layer], replace=False)
            for layer, same in whole.groupby("layer")
        ]
        counts.append(len(set().union(*names[np.concatenate(drawn)])))
    expected = of_survival.by_chance(evidence, whole, left, had)
    assert expected == pytest.approx(np.mean(counts), abs=4 * np.std(counts) / 4000**0.5)


@pytest.mark.parametrize(
    ("before", "after", "owner", "found"),
    [
        (0.0, 0.3, (2, 1), True),  # the owner is pruned in both models
        (0.0, 0.3, (2, 6), False),  # the owner is still there in the larger one
        (0.0, 0.3, [(2, 1), (2, 6)], False),  # another owner is
        (0.08, 0.12, (2, 1), False),  # it was close to the threshold before
        (0.04, 0.1, (2, 1), False),  # its gain is within the noise
    ],
)
def test_functions_of_pruned_heads_may_be_taken_over(
    three: Evidence, before, after, owner, found: bool
) -> None:
    """In the larger of two models, head 5 of layer 2 has a relation that another head had
    before."""
    name = "nsubj_head_to_dependent"
    heads, place = three.heads, list(zip(three.heads["layer"], three.heads["head"]))
    pruned = heads["lam"].eq(0.01) & heads["kind"].eq("pruned")
    own = np.array([it == (2, 5) for it in place])
    follows = (pruned & own) | (
        heads["kind"].eq("baseline")
        & np.array([it in np.atleast_2d(owner).tolist() for it in map(list, place)])
    )
    margins = np.select([pruned & own, own], [after, before], 0.0)
    columns = {
        f"{name}_margin": margins,
        f"{name}_margin_low": margins - 0.05,
        f"{name}_margin_high": margins + 0.05,
    }
    drifted = planted(three, relations=[[name] if it else [] for it in follows], **columns)
    measured = MEASURES["taken_over"](drifted)
    assert (measured.value, measured.n) == (float(found), 3)
    bare = heads.assign(**dict.fromkeys(("relations", "functions"), [[]] * len(heads)))
    reason(MEASURES["taken_over"], three, heads=bare)
    reason(MEASURES["drift"], three, heads=bare)


def test_functions_drift_if_a_head_has_two(three: Evidence) -> None:
    """A positional head of the larger of two models follows a relation too; one of the baseline
    does not count."""
    positional = three.heads["functions"].map(lambda names: "positional" in names)
    for chosen, share in (
        (three.heads["lam"].eq(0.01), 1.0),
        (three.heads["kind"].eq("baseline"), 0.0),
    ):
        relations = [["nsubj_head_to_dependent"] if both else [] for both in positional & chosen]
        drifted = planted(three, relations=relations)
        measured = MEASURES["drift"](drifted)
        assert (measured.value, measured.n) == (share, 3)
    # None of three is not "none": up to 56% of the baselines may have one.
    assert verdict("drift", drifted) == Verdict.INCONCLUSIVE
    reason(MEASURES["drift"], three, scores=three.scores[three.scores["kind"] == "baseline"])


# The order in which types and layers lose heads.

DIRECTIONS = ("encoder_first", "cross_last", "decoder_low", "cross_high")
OPPOSITE = {0.01: [[8, 8, 8], [2, 4, 8], [2, 1, 0]]}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([ALL_TYPES] * 3, {Verdict.REPRODUCED}),
        ([ALL_TYPES] * 2, {Verdict.PARTLY, Verdict.INCONCLUSIVE}),  # fewer than three baselines
        ([ALL_TYPES, ALL_TYPES, OPPOSITE], {Verdict.INCONCLUSIVE}),  # baselines disagree
        ([OPPOSITE] * 3, {Verdict.NOT_REPRODUCED}),
    ],
)
def test_a_direction_needs_three_baselines_that_agree(
    make, models: list[dict], expected: set[Verdict]
) -> None:
    evidence = seeds(make.heads(), *models)
    assert {verdict(name, evidence) for name in DIRECTIONS} <= expected


def test_a_direction_needs_removed_heads(make) -> None:
    def removed(*kept: list[int], count: int = 3) -> Evidence:
        return seeds(make.heads(), *[{0.01: list(kept)}] * count)

    measured = MEASURES["encoder_first"](removed([7, 7, 8], [8, 7, 8], [8, 8, 8]))
    # 2 + 1 of the encoder and the decoder in each seed
    assert (measured.n, measured.sufficient) == (9, False)
    assert MEASURES["encoder_first"](removed([5, 5, 5], [5, 5, 6], [8, 8, 8])).sufficient
    assert "lost some of its heads" in reason(MEASURES["cross_last"], removed(*WHOLE, count=1))
    assert "do not differ" in reason(
        MEASURES["decoder_low"], removed([4, 4, 4], *WHOLE[1:], count=1)
    )


def test_types_of_unequal_depth_are_not_compared(evidence: Evidence) -> None:
    MEASURES["encoder_first"](evidence)
    deeper = evidence.scores.assign(encoder_layers=[[8] * 6] * len(evidence.scores))
    for name in ("encoder_first", "cross_last"):
        assert "6 layers and the decoder 3" in reason(MEASURES[name], evidence, scores=deeper)
    MEASURES["decoder_low"](replace(evidence, scores=deeper))


def test_a_head_that_had_two_functions_from_the_start_has_not_drifted(three: Evidence) -> None:
    positional = three.heads["functions"].map(lambda names: "positional" in names)
    relations = [["nsubj_head_to_dependent"] if both else [] for both in positional]
    measured = MEASURES["drift"](planted(three, relations=relations))
    assert (measured.value, measured.n) == (0.0, 3)
