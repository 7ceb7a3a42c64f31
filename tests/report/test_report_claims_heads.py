"""Claims of Voita et al. on heads: for each rule of judgement a planted case on either side of it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from claim_tables import ALL_TYPES, CLAIMS, WHOLE, reason, seeds, values, verdict

from specialized_heads.report.claims import of_heads
from specialized_heads.report.claims.claim import Verdict
from specialized_heads.report.claims.evidence import Evidence, NotTestable

FUNCTIONAL = [(1, 1), (1, 2), (1, 3), (1, 7), (2, 5), (2, 6), (3, 4)]  # encoder heads of the tables, as in conftest


# Functions and relevance of heads


def test_the_best_head_for_a_function(evidence: Evidence) -> None:
    heads = evidence.baseline_heads()
    measured = of_heads.margin(evidence, relation="nsubj", direction="head_to_dependent")
    assert (measured.value, measured.n) == (pytest.approx(heads["nsubj_head_to_dependent"].max() - 0.4), 301)
    assert measured.high - measured.low == pytest.approx(0.06)
    objects, conjuncts = (partial(of_heads.margin, relation=r, direction="head_to_dependent") for r in ("obj", "conj"))
    assert "302 arcs" in reason(objects, evidence, least_arcs=400)
    assert "heads.relations" in reason(conjuncts, evidence)
    positional = heads[["positional" in names for names in heads["functions"]]]
    assert of_heads.positional_confidence(evidence).value == pytest.approx(positional["confidence"].min())
    first = heads.loc[heads["layer"] == 1, "rarest"]
    assert of_heads.rare_words(evidence, column="rarest").value == pytest.approx(first.max())
    # The most positional head decides, whatever the others do.
    for best, expected in ((0.92, Verdict.REPRODUCED), (0.9, Verdict.PARTLY), (0.89, Verdict.NOT_REPRODUCED)):
        shares = evidence.heads["positional_share"].clip(upper=best).where(evidence.heads["head"] != 3, best)
        planted = replace(evidence, heads=evidence.heads.assign(positional_share=shares))
        assert verdict("positional", planted) == expected


def test_positional_heads_that_are_fixed_confirm_nothing(evidence: Evidence) -> None:
    fixed = evidence.scores.assign(fixed_patterns=True)
    for measure in (of_heads.positional_share, of_heads.positional_confidence):
        measure(replace(evidence, scores=evidence.scores.assign(fixed_patterns=False)))
        assert "fixed, not learned" in reason(measure, evidence, scores=fixed)


def test_types_of_unequal_depth_are_not_compared(evidence: Evidence) -> None:
    CLAIMS["encoder_first"].measure(evidence)
    deeper = evidence.scores.assign(encoder_layers=[[8] * 6] * len(evidence.scores))
    for name in ("encoder_first", "cross_last"):
        assert "6 layers and the decoder 3" in reason(CLAIMS[name].measure, evidence, scores=deeper)
    CLAIMS["decoder_low"].measure(replace(evidence, scores=deeper))


def with_relevance(evidence: Evidence, *layers: list[float], **columns: object) -> Evidence:
    """The heads of each layer have these relevances."""
    heads = evidence.heads.assign(**columns)
    relevance = [layers[layer - 1][head - 1] for layer, head in zip(heads["layer"], heads["head"])]
    return replace(evidence, heads=heads.assign(relevance=relevance))


def test_few_heads_dominate_a_layer(evidence: Evidence) -> None:
    half, less = [0.3, 0.2, *[0.5 / 6] * 6], [0.29, 0.2, *[0.51 / 6] * 6]  # top two of eight: 50% or 49%
    # Three layers are few.
    assert verdict("relevance_dominated", with_relevance(evidence, half, half, half)) == Verdict.PARTLY
    assert verdict("relevance_dominated", with_relevance(evidence, half, less, less)) == Verdict.NOT_REPRODUCED
    measured = of_heads.dominated_layers(with_relevance(evidence, half, half, less))
    assert (measured.value, measured.n) == (pytest.approx(2 / 3), 3)
    reason(of_heads.dominated_layers, evidence, heads=evidence.heads[evidence.heads["head"] < 4])


def test_relevance_by_weight_ratios_and_of_the_first_layer(evidence: Evidence) -> None:
    for name in ("relevance_dominated_weight_ratios", "relevance_functions_weight_ratios"):
        assert "heads.relevance_rules" in reason(CLAIMS[name].measure, evidence)
        same = replace(evidence, heads=evidence.heads.assign(relevance_epsilon=evidence.heads["relevance"]))
        own = CLAIMS[name.removesuffix("_weight_ratios")].measure(evidence)
        assert CLAIMS[name].measure(same) == own
    far, near, flat = [0.1] * 5 + [0.5, 0.24, 0.0], [0.1] * 5 + [0.5, 0.26, 0.0], [0.125] * 8
    assert verdict("relevance_first", with_relevance(evidence, far, flat, flat)) == Verdict.REPRODUCED
    assert of_heads.second_of_layer_1(with_relevance(evidence, near, far, far)).value == pytest.approx(0.52)


def test_the_interval_of_a_margin_spans_those_of_the_seeds(make) -> None:
    both = seeds(make.heads(), ALL_TYPES, ALL_TYPES)
    column, one = "obj_head_to_dependent_margin", both.heads["seed"].eq(1)
    heads = both.heads.assign(**{column: 0.2, f"{column}_low": 0.1, f"{column}_high": 0.3})
    heads.loc[one, [column, f"{column}_low", f"{column}_high"]] = [0.0, -0.1, 0.1]
    measured = of_heads.margin(replace(both, heads=heads), relation="obj", direction="head_to_dependent")
    assert values(measured) == pytest.approx((0.1, -0.1, 0.3))


def test_relevance_agrees_with_confidence_but_for_the_exception(evidence: Evidence) -> None:
    rising, head = [0.01, 0.02, 0.03, 0.04, 0.1, 0.2, 0.3, 0.4], evidence.heads["head"]
    confidences = {Verdict.REPRODUCED: head / 10, Verdict.NOT_REPRODUCED: -head / 10}
    confidences[Verdict.INCONCLUSIVE] = head.map(dict(enumerate([1, 6, 3, 8, 2, 5, 7, 4], start=1)))
    for expected, confidence in confidences.items():
        planted = with_relevance(evidence, rising, rising, rising, confidence=confidence)
        assert verdict("relevance_confidence", planted) == expected
    # A rare-words head that is the most relevant of layer 1 does not count: 7 + 8 + 8 heads.
    exception = evidence.heads["layer"].eq(1) & head.eq(8)
    low = with_relevance(evidence, rising, rising, rising, confidence=(head / 10).where(~exception, 0.05))
    rare = low.heads["functions"].where(~exception, pd.Series([["rare words"]] * len(head)))
    measured = of_heads.relevance_and_confidence(replace(low, heads=low.heads.assign(functions=rare)))
    assert (measured.value, measured.n) == (pytest.approx(1.0), 23)
    # Without a function the same head counts.
    measured = of_heads.relevance_and_confidence(low)
    assert (measured.value < 0.9, measured.n) == (True, 24)


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([-0.3, -0.25], Verdict.INCONCLUSIVE),
        ([0.3, 0.25], Verdict.INCONCLUSIVE),
        ([-0.3, -0.25, -0.28], Verdict.REPRODUCED),
        ([-0.3, -0.25, 0.05], Verdict.INCONCLUSIVE),
        ([0.3, 0.25, 0.28], Verdict.NOT_REPRODUCED),
    ],
)
def test_the_exception_in_layer_1_needs_a_rare_words_head_and_three_seeds(make, gaps: list[float], expected) -> None:
    """Per seed, this gap in confidence between the most relevant head of layer 1 and the others."""
    made = seeds(make.heads(), *[ALL_TYPES] * len(gaps))
    heads = made.heads.assign(confidence=0.5, relevance=0.1)
    for seed, gap in enumerate(gaps, start=1):
        top = heads["seed"].eq(seed) & heads["layer"].eq(1) & heads["head"].eq(2)
        heads.loc[top, ["relevance", "confidence"]] = [0.4, 0.5 + gap]
    assert verdict("relevance_exception", replace(made, heads=heads)) == expected
    alike = of_heads.certain_over_seeds(pd.Series([0.25] * 3), sign=1)
    assert (alike.low, alike.high) == (0.25, 0.25)  # equal values have an interval too
    last = heads["functions"].where(heads["seed"].ne(len(gaps)), heads["functions"].map(lambda names: []))
    without = replace(made, heads=heads.assign(functions=last))
    assert of_heads.exception_of_layer_1(without).n == len(gaps) - 1
    none = heads.assign(functions=[[] for _ in range(len(heads))])
    assert "needs a rare-words head" in reason(of_heads.exception_of_layer_1, made, heads=none)


def test_the_most_relevant_heads_have_functions(evidence: Evidence) -> None:
    labelled = np.array([head in FUNCTIONAL for head in zip(evidence.heads["layer"], evidence.heads["head"])])
    layer, head = evidence.heads["layer"], evidence.heads["head"]
    opposite, level, best, numbered = (
        replace(evidence, heads=evidence.heads.assign(relevance=relevance))
        for relevance in (0.5 - 0.4 * labelled, layer / 10, 0.1 + 0.4 * labelled, head)
    )
    measured = of_heads.relevant_heads_have_functions(best)
    assert (measured.value, measured.n) == (1.0, 7)
    # Ranks in layers of 4, 2 and 1 heads with a function: (1 + 2 + 3 + 4) / 4 for four of them, and so on.
    assert measured.note == f"mean rank {(4 * 2.5 + 2 * 1.5 + 1) / 7:.1f} of 8"
    assert verdict("relevance_functions", best) == Verdict.REPRODUCED
    assert verdict("relevance_functions", opposite) == Verdict.NOT_REPRODUCED
    # Ties count one half; the level of a layer does not matter.
    assert of_heads.relevant_heads_have_functions(level).value == 0.5
    # By hand: in layer 3 head 4 has a function and beats heads 1 to 3, in layer 2 heads 5 and 6 beat 1 to 4.
    numbers = of_heads.relevant_heads_have_functions(numbered)
    wins, pairs = 3 + 2 * 4 + (0 + 0 + 0 + 3), 7 + 2 * 6 + 4 * 4
    assert numbers.value == pytest.approx(wins / pairs)
    assert numbers.low < numbers.value < numbers.high


# Which heads survive


def test_the_slope_within_strata() -> None:
    frame = pd.DataFrame({"seed": [1] * 4 + [2] * 4, "x": [0, 0, 1, 1] * 2, "y": [0, 0, 1, 0, 1, 0, 1, 1]})
    pooled = of_heads.slope(frame["x"], frame["y"], frame[["seed"]])
    # Mantel-Haenszel: both strata have a difference of 1/2. Variance: 1 · 3/4 / 3 in each, over (1 + 1)².
    half = 1.959964 * (0.5**0.5) / 2
    assert pooled[:3] == pytest.approx((0.5, 0.5 - half, 1.0), abs=1e-6)  # clipped
    assert pooled[3] == pytest.approx(0.1573, abs=1e-4)  # of z = √2
    # What differs between strata alone does not count.
    shifted = of_heads.slope(frame["x"], frame["y"] + 10 * frame["seed"], frame[["seed"]])
    assert shifted == pytest.approx(pooled)
    with pytest.raises(NotTestable, match="do not differ"):
        of_heads.slope(frame["seed"], frame["y"], frame[["seed"]])


def test_specialised_heads_survive_within_their_layers(evidence: Evidence) -> None:
    measured = of_heads.specialised_survive(evidence)
    # Survival in two models. Layer 1: with a function 1/2, 1, 1/2, 1/2, without 1/2, 1, 1/2, 0; layer 2: 1/2, 1/2
    # against 1/2, 1/2 and four times 0; layer 3: 1/2 against 1/2 and six times 0.
    gaps, weights = np.array([0.625 - 0.5, 0.5 - 1 / 6, 0.5 - 1 / 14]), np.array([4 * 4 / 8, 2 * 6 / 8, 1 * 7 / 8])
    assert measured.value == pytest.approx((gaps * weights).sum() / weights.sum())
    assert measured.low < measured.value < measured.high
    assert measured.n == 24  # a head counts once, however many models it survives in
    assert measured.note.startswith(f"AUC {(9.5 + 10 + 6.5) / (16 + 12 + 7):.2f}, p ")
    # All heads with a function in one layer, which survives: the layer may be the reason.
    functions = evidence.heads["layer"].map(lambda layer: ["positional"] if layer == 1 else [])
    confounded = evidence.heads.assign(functions=functions, relations=[[] for _ in functions])
    assert "no layer" in reason(of_heads.specialised_survive, evidence, heads=confounded)
    # Where no relation has enough arcs, syntactic heads have no function.
    sparse = of_heads.specialised_survive(replace(evidence, least_arcs=400))
    assert sparse.value != pytest.approx(measured.value)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (FUNCTIONAL, Verdict.REPRODUCED),
        ([(1, 1), (1, 2), (1, 4), (1, 5), (2, 1), (2, 6), (3, 4)], Verdict.INCONCLUSIVE),
        ([(1, 4), (1, 5), (1, 6), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)], Verdict.NOT_REPRODUCED),
    ],
)
def test_verdicts_on_the_survival_of_specialised_heads(make, monkeypatch, kept, expected) -> None:
    monkeypatch.setattr("claim_tables.ENCODER", {0.01: kept})
    assert verdict("specialised_survive", seeds(make.heads(), ALL_TYPES)) == expected


def test_functions_kept(evidence: Evidence) -> None:
    whole = of_heads.functions_kept(evidence, left=0.5)
    assert (whole.value, whole.n, whole.of, whole.note) == (1.0, 3, "functions", "with 12 heads")
    assert whole.low == pytest.approx(0.4385, abs=1e-4)  # Wilson: 3 / (3 + 1.96²)
    # With 3 heads the model is near an eighth, and has positional heads only; of a third of the heads it says nothing.
    assert of_heads.functions_kept(evidence, left=0.1).value == pytest.approx(1 / 3)
    assert "about 35%" in reason(partial(of_heads.functions_kept, left=17 / 48), evidence)
    # A smaller model that keeps every function counts: here 7 of 24 heads for a half.
    idle = evidence.heads["lam"].eq(0.01) & evidence.heads["functions"].str.len().eq(0)
    seven = replace(evidence, heads=evidence.heads[~idle])
    assert of_heads.functions_kept(seven, left=0.5).value == of_heads.functions_kept(seven, left=0.8).value == 1.0
    assert of_heads.functions_kept(replace(evidence, least_arcs=400), left=0.1).value == pytest.approx(1 / 2)


@pytest.mark.parametrize(("owner", "share", "expected"), [
    ((2, 1), 0.5, Verdict.REPRODUCED),  # pruned in both models
    ((2, 6), 0.0, Verdict.NOT_REPRODUCED),  # still there in the larger one
])  # fmt: skip
def test_functions_of_pruned_heads_may_be_taken_over(evidence: Evidence, owner, share: float, expected) -> None:
    """A head of the larger of two models has a relation that another head had before."""
    rows = evidence.heads[["type", "kind", "lam", "layer", "head"]].itertuples(index=False)
    follow = {("encoder", "baseline", owner), ("encoder", 0.01, (2, 5))}
    found = [(kind, lam if model == "pruned" else model, (layer, head)) for kind, model, lam, layer, head in rows]
    relations = [["nsubj_head_to_dependent"] if head in follow else [] for head in found]
    drifted = replace(evidence, heads=evidence.heads.assign(relations=relations))
    assert of_heads.taken_over(drifted).value == share
    assert verdict("taken_over", drifted) == expected
    bare = evidence.heads.assign(**dict.fromkeys(("relations", "functions"), [[]] * len(evidence.heads)))
    reason(of_heads.taken_over, evidence, heads=bare)
    reason(of_heads.two_functions, evidence, heads=bare)


def test_functions_drift_if_a_head_has_two(evidence: Evidence) -> None:
    """A positional head of the larger of two models follows a relation too; one of the baseline does not count."""
    positional = evidence.heads["functions"].map(lambda names: "positional" in names)
    for chosen, share, expected in (
        (evidence.heads["lam"].eq(0.01), 0.5, Verdict.REPRODUCED),
        (evidence.heads["kind"].eq("baseline"), 0.0, Verdict.NOT_REPRODUCED),
    ):
        relations = [["nsubj_head_to_dependent"] if both else [] for both in positional & chosen]
        drifted = replace(evidence, heads=evidence.heads.assign(relations=relations))
        assert of_heads.two_functions(drifted).value == share
        assert verdict("drift", drifted) == expected
    # A head that had both functions before pruning has not drifted.
    before = evidence.heads.assign(relations=[["nsubj_head_to_dependent"] if it else [] for it in positional])
    assert of_heads.two_functions(replace(evidence, heads=before)).value == 0.0
    reason(of_heads.two_functions, evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])


def test_without_functions_nothing_is_said_about_them(evidence: Evidence) -> None:
    empty = [[] for _ in range(len(evidence.heads))]
    kept = partial(of_heads.functions_kept, left=0.1)
    for measure in (kept, of_heads.specialised_survive, of_heads.relevant_heads_have_functions):
        reason(measure, evidence, heads=evidence.heads.assign(functions=empty, relations=empty))


# The order in which types and layers lose heads

DIRECTIONS = ("encoder_first", "cross_last", "decoder_low", "cross_high")
OPPOSITE = {0.01: [[8, 8, 8], [2, 4, 8], [2, 1, 0]]}
# Too few seeds, or one that disagrees.
FEW = dict.fromkeys(DIRECTIONS, Verdict.PARTLY) | {"cross_last": Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([ALL_TYPES] * 3, dict.fromkeys(DIRECTIONS, Verdict.REPRODUCED)),
        ([ALL_TYPES], FEW),  # one seed
        ([ALL_TYPES] * 2, dict.fromkeys(DIRECTIONS, Verdict.PARTLY)),
        ([*[ALL_TYPES] * 5, OPPOSITE], FEW),  # not every seed agrees
        ([OPPOSITE] * 3, dict.fromkeys(DIRECTIONS, Verdict.NOT_REPRODUCED)),
    ],
)
def test_a_direction_needs_the_same_sign_in_three_seeds(make, models: list[dict], expected: dict[str, Verdict]) -> None:
    evidence = seeds(make.heads(), *models)
    assert {name: verdict(name, evidence) for name in DIRECTIONS} == expected


def test_a_direction_needs_removed_heads_and_a_significant_difference(make) -> None:
    def removed(*kept: list[int], count: int = 3) -> Evidence:
        return seeds(make.heads(), *[{0.01: list(kept)}] * count)

    slight = removed([7, 7, 8], [8, 7, 8], [8, 8, 8])
    measured = CLAIMS["encoder_first"].measure(slight)
    assert (measured.n, measured.sufficient) == (9, False)  # 2 + 1 of the encoder and the decoder in each seed
    assert verdict("encoder_first", slight) == Verdict.INCONCLUSIVE
    # Ten removed heads or more, but as many in the decoder but for one.
    near = removed([5, 5, 5], [5, 5, 6], [8, 8, 8])
    assert CLAIMS["encoder_first"].measure(near).sufficient
    assert verdict("encoder_first", near) == Verdict.INCONCLUSIVE
    assert "lost some of its heads" in reason(CLAIMS["cross_last"].measure, removed(*WHOLE, count=1))
    assert "do not differ" in reason(CLAIMS["decoder_low"].measure, removed([4, 4, 4], *WHOLE[1:], count=1))
