"""Claims of Voita et al.: for each rule of judgement a planted case on either side of it."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claim_tables import ALL_TYPES, WHOLE, model, scores, seeds

from specialized_heads.report.claims import of_heads, of_scores, voita
from specialized_heads.report.claims.claim import Claim, Measured, Verdict, judge
from specialized_heads.report.claims.evidence import Evidence, NotTestable

CLAIMS = {claim.name: claim for claim in voita.claims()}
FUNCTIONAL = [(1, 1), (1, 2), (1, 3), (1, 7), (2, 5), (2, 6), (3, 4)]  # encoder heads of the tables, as in conftest
HALF = partial(of_scores.difference, scope="encoder", left=0.5)


def verdict(name: str, evidence: Evidence) -> Verdict:
    claim: Claim = CLAIMS[name]
    return judge(claim.measure(evidence), claim.accepted, directed=claim.directed)


def reason(measure: object, evidence: Evidence) -> str:
    with pytest.raises(NotTestable) as error:
        measure(evidence)
    return str(error.value)


def values(measured: Measured) -> tuple[float, float, float]:
    return measured.value, measured.low, measured.high


# BLEU along the heads left


def test_bleu_at_a_share_is_interpolated_between_two_models(evidence: Evidence) -> None:
    assert values(HALF(evidence)) == pytest.approx((-0.2, -0.7, 0.3))
    between = of_scores.difference(evidence, scope="encoder", left=0.75)  # half-way from the reference to 12 of 24
    assert values(between) == pytest.approx((-0.1, -0.35, 0.15))
    assert of_scores.difference(evidence, scope="encoder", left=0.3125).value == pytest.approx(-0.6)
    tenth = partial(of_scores.difference, scope="encoder", left=0.1)
    assert "smallest model has 12.5% of its heads left, not 10.0%" in reason(tenth, evidence)
    one = replace(evidence, scores=evidence.scores[evidence.scores["lam"] != 0.01])
    assert "no model between 12% and 100%" in reason(HALF, one)
    weak = replace(evidence, scores=evidence.scores.assign(bleu=evidence.scores["bleu"] - 26))
    assert "less than 5 BLEU" in reason(HALF, weak)
    none = replace(evidence, scores=evidence.scores[evidence.scores["kind"] == "baseline"])
    assert reason(HALF, none) == "no model is pruned with scope encoder"
    second = scores(seed=2)
    second.loc[second["lam"] > 0, "difference"] = -0.4
    two_seeds = replace(evidence, scores=pd.concat([evidence.scores, second], ignore_index=True))
    assert HALF(two_seeds).value == pytest.approx((-0.2 - 0.4) / 2)


def test_the_share_left_is_that_of_all_heads_of_the_scope(evidence: Evidence) -> None:
    table = evidence.scores.copy()
    for kind in ("decoder", "cross"):
        table[f"{kind}_heads"] = [layers[0] for layers in table[f"{kind}_layers"]]
    [(shares, _)], _ = replace(evidence, scores=table).curve("all")
    model = table[(table["scope"] == "all") & (table["lam"] == 0.01)].squeeze()
    left = sum(model[f"{kind}_heads"] for kind in ("encoder", "decoder", "cross"))
    assert np.isclose(shares, left / (24 + 8 + 8)).any()


def test_the_reference_is_the_baseline_if_it_is_converged_else_lambda_0(evidence: Evidence) -> None:
    # λ 0 gains 0.49 or 0.51 with an interval of half a point to both sides.
    converged = HALF(replace(evidence, scores=scores(gain=0.49)))
    assert values(converged) == pytest.approx((-0.2, -0.7, 0.3))
    assert converged.note == "against the baseline (converged)"
    gaining = HALF(replace(evidence, scores=scores(gain=0.51)))
    assert values(gaining) == pytest.approx((-0.71, -0.71 - 0.5**0.5, -0.71 + 0.5**0.5))
    assert gaining.note == "against λ 0 (baseline not converged)"
    # What the updates cost without pruning is not the price of heads either.
    losing = HALF(replace(evidence, scores=scores(gain=-0.51)))
    assert losing.value == pytest.approx(-0.2 + 0.51)
    assert losing.note == "against λ 0 (baseline not converged)"


def test_without_lambda_0_of_as_many_updates_for_every_seed_a_loss_is_not_judged(evidence: Evidence) -> None:
    table = evidence.scores
    no_control = table[table["lam"] != 0]
    other_scope = table[(table["lam"] != 0) | (table["scope"] == "all")]
    shorter = table.assign(updates=table["updates"].where(table["lam"] != 0, 139))
    one_seed = pd.concat([table, no_control.assign(seed=2)], ignore_index=True)
    for changed in (no_control, other_scope, shorter, one_seed):
        assert reason(HALF, replace(evidence, scores=changed)).startswith("no model with λ 0 in scope encoder shows")


def test_models_whose_gates_are_undecided_are_not_judged(evidence: Evidence) -> None:
    kept, first = partial(of_heads.functions_kept, left=0.5), CLAIMS["encoder_first"].measure
    for measure in (HALF, kept, of_heads.specialised_survive, first):
        measure(replace(evidence, scores=scores(decided=0.8)))
        said = reason(measure, replace(evidence, scores=scores(decided=0.79)))
        assert said.startswith("at most 79% of the gates of a model are decided, not 80%")
    # Undecided models are left out of the curve.
    table = evidence.scores
    some = table.assign(gates_decided=table["gates_decided"].where(table["lam"] != 0.02, 0.5))
    fifth = partial(of_scores.difference, scope="encoder", left=0.2)
    assert "smallest model has 50.0%" in reason(fifth, replace(evidence, scores=some))
    to_a_number = table.assign(gates_decided=0.5, target_heads=3.0)
    HALF(replace(evidence, scores=to_a_number))  # whose gates are fixed for most of the training
    unknown = table.assign(gates_decided=np.nan)
    assert "do not record how many gates are decided" in reason(HALF, replace(evidence, scores=unknown))


def test_gates_end_closed_or_open(evidence: Evidence) -> None:
    measured = of_scores.gates_decided(evidence)
    assert (measured.value, measured.n) == (1.0, 2 * 24 + 2 * 72)
    table = evidence.scores
    of_encoder = table["scope"].eq("encoder") & table["lam"].gt(0)
    mixed = replace(evidence, scores=table.assign(gates_decided=table["gates_decided"].where(~of_encoder, 0.2)))
    assert of_scores.gates_decided(mixed).value == pytest.approx((2 * 24 * 0.2 + 2 * 72) / 192)
    for decided, expected in ((0.8, Verdict.REPRODUCED), (0.79, Verdict.NOT_REPRODUCED)):
        assert verdict("gates_decided", replace(evidence, scores=scores(decided=decided))) == expected
    assert "fixes their gates" in reason(
        of_scores.gates_decided, replace(evidence, scores=table.assign(target_heads=3.0))
    )


def test_scores_are_only_compared_on_the_paper_s_data(evidence: Evidence) -> None:
    measure = partial(of_scores.baseline_bleu, data="wmt")
    for data in ("", "opensubtitles"):
        assert reason(measure, replace(evidence, stands_for=data)) == "scores can only be compared on the same data"
    scored = evidence.scores.assign(bleu_tokenised_low=30.0, bleu_tokenised_high=33.0)
    assert measure(replace(evidence, stands_for="wmt", scores=scored)) == Measured(31.5, 30.0, 33.0, 1000, "sentences")


def test_pruned_models_against_controls_from_scratch(evidence: Evidence) -> None:
    measure = partial(of_scores.better_than, control="scratch", scope="all")
    assert "kind scratch" in reason(measure, evidence)
    twins = [model(f"scratch/all_lambda{lam}", ALL_TYPES[lam], loss=loss) for lam, loss in ((0.01, 0.5), (0.03, 0.9))]
    measured = measure(replace(evidence, scores=scores(*twins)))
    half = (0.5**2 + 0.5**2) ** 0.5
    assert (*values(measured), measured.n) == pytest.approx((0.3, 0.3 - half, 0.3 + half, 2))
    few = [[0, 0, 0], [0, 0, 0], [1, 1, 2]]
    other = [model("scratch/all_lambda0.01", few, loss=20.0), twins[1]]
    assert measure(replace(evidence, scores=scores(*other))).n == 1  # a control with fewer heads is left out
    assert "about as many heads" in reason(measure, replace(evidence, scores=scores(other[0])))
    short = [twin | {"updates": 899} for twin in twins]
    assert reason(measure, replace(evidence, scores=scores(*short))).endswith("899 updates, the pruned models for 900")
    # Those that are at least as good with fewer updates count: more could not turn the claim.
    ahead = [twin | {"bleu": twin["bleu"] + 1} for twin in short]
    measured = measure(replace(evidence, scores=scores(*ahead)))
    assert measured.value == pytest.approx(0.3 - 1)
    assert measured.note == "scope all; trained from scratch for 899 updates, the pruned models for 900"
    # If the baseline is not converged, the updates of pruning count too.
    said = reason(measure, replace(evidence, scores=scores(*twins, gain=0.6)))
    assert said.endswith("for 900 updates, the pruned models for 1,040")
    longer = [twin | {"updates": 1040} for twin in twins]
    assert measure(replace(evidence, scores=scores(*longer, gain=0.6))).n == 2
    # Pairs of another scope count only if there is none of the paper's.
    elsewhere = replace(evidence, scores=scores(*twins))
    assert measure(elsewhere).note == "scope all"
    assert of_scores.better_than(elsewhere, control="scratch", scope="encoder") == measure(elsewhere)


def test_numbers_of_one_of_the_papers_corpora_do_not_judge_the_other(evidence: Evidence) -> None:
    for name, data, other in (
        ("encoder_wmt", "wmt", "opensubtitles"),
        ("two_rarest_opensubtitles", "opensubtitles", "wmt"),
    ):
        claim = CLAIMS[name]
        assert claim.measure(replace(evidence, stands_for=data)) == claim.measure(evidence)
        assert (
            reason(claim.measure, replace(evidence, stands_for=other))
            == "the paper gives this corpus a value of its own"
        )


# Functions and relevance of heads


def test_accuracy_above_a_fixed_offset(evidence: Evidence) -> None:
    heads = evidence.baseline_heads()
    measured = of_heads.margin(evidence, relation="nsubj", direction="head_to_dependent")
    assert (measured.value, measured.n) == (pytest.approx(heads["nsubj_head_to_dependent"].max() - 0.4), 301)
    assert measured.high - measured.low == pytest.approx(0.06)
    objects, conjuncts = (partial(of_heads.margin, relation=r, direction="head_to_dependent") for r in ("obj", "conj"))
    assert "302 arcs" in reason(objects, replace(evidence, least_arcs=400))
    assert "heads.relations" in reason(conjuncts, evidence)


@pytest.mark.parametrize(("best", "expected"), [(0.9, Verdict.REPRODUCED), (0.89, Verdict.NOT_REPRODUCED)])
def test_the_most_positional_head_decides_whatever_the_others_do(evidence: Evidence, best: float, expected) -> None:
    for others in (0.0, 0.5):
        heads = evidence.heads.assign(positional_share=others)
        heads.loc[heads["type"].eq("encoder") & heads["layer"].eq(2) & heads["head"].eq(3), "positional_share"] = best
        assert verdict("positional", replace(evidence, heads=heads)) == expected


def test_confidence_of_positional_heads_and_rare_words(evidence: Evidence) -> None:
    heads = evidence.baseline_heads()
    positional = heads[["positional" in names for names in heads["functions"]]]
    assert of_heads.positional_confidence(evidence).value == pytest.approx(positional["confidence"].min())
    first = heads.loc[heads["layer"] == 1, "rarest"]
    assert of_heads.rare_words(evidence, column="rarest").value == pytest.approx(first.max())


def with_relevance(evidence: Evidence, *layers: list[float], **columns: object) -> Evidence:
    """The encoder heads of each layer have these relevances."""
    heads = evidence.heads.assign(**columns)
    for layer, relevance in enumerate(layers, start=1):
        for head, value in enumerate(relevance, start=1):
            heads.loc[heads["layer"].eq(layer) & heads["head"].eq(head), "relevance"] = value
    return replace(evidence, heads=heads)


def test_few_heads_dominate_a_layer(evidence: Evidence) -> None:
    half, less = [0.3, 0.2, *[0.5 / 6] * 6], [0.29, 0.2, *[0.51 / 6] * 6]  # top two of eight: 50% or 49%
    assert verdict("relevance_dominated", with_relevance(evidence, half, half, half)) == Verdict.REPRODUCED
    measured = of_heads.dominated_layers(with_relevance(evidence, half, half, less))
    assert (measured.value, measured.n) == (pytest.approx(2 / 3), 3)
    even = [1 / 8] * 8
    assert verdict("relevance_dominated", with_relevance(evidence, even, even, even)) == Verdict.NOT_REPRODUCED
    three = replace(evidence, heads=evidence.heads[evidence.heads["head"] < 4])
    assert "no encoder layer has 4 heads" in reason(of_heads.dominated_layers, three)


def test_relevance_agrees_with_confidence_but_for_the_exception(evidence: Evidence) -> None:
    rising = [0.01, 0.02, 0.03, 0.04, 0.1, 0.2, 0.3, 0.4]
    heads = evidence.heads
    same = with_relevance(evidence, rising, rising, rising, confidence=heads["head"] / 10)
    assert of_heads.relevance_and_confidence(same).value == pytest.approx(1.0)
    assert verdict("relevance_confidence", same) == Verdict.REPRODUCED
    # A rare-words head that is the most relevant of layer 1 does not count: 7 + 8 + 8 heads.
    exception = same.heads["layer"].eq(1) & same.heads["head"].eq(8)
    low = same.heads.assign(confidence=same.heads["confidence"].where(~exception, 0.05))
    rare = low["functions"].where(~exception, pd.Series([["rare words"]] * len(low)))
    measured = of_heads.relevance_and_confidence(replace(same, heads=low.assign(functions=rare)))
    assert (measured.value, measured.n) == (pytest.approx(1.0), 23)
    # Without a function the same head counts.
    measured = of_heads.relevance_and_confidence(replace(same, heads=low))
    assert (measured.value < 0.9, measured.n) == (True, 24)
    opposite = replace(same, heads=same.heads.assign(confidence=-heads["head"] / 10))
    assert verdict("relevance_confidence", opposite) == Verdict.NOT_REPRODUCED
    mixed = heads["head"].map(dict(enumerate([1, 6, 3, 8, 2, 5, 7, 4], start=1)))
    weak = with_relevance(evidence, rising, rising, rising, confidence=mixed)
    assert verdict("relevance_confidence", weak) == Verdict.PARTLY


def test_the_exception_in_layer_1_needs_a_rare_words_head_and_three_seeds(make: SimpleNamespace) -> None:
    def evidence(*gaps: float) -> Evidence:
        """One seed for each of these gaps in confidence between the most relevant head of layer 1 and the others."""
        made = seeds(make.heads(), *[ALL_TYPES] * len(gaps))
        heads = made.heads.assign(confidence=0.5, relevance=0.1)
        for seed, gap in enumerate(gaps, start=1):
            top = heads["seed"].eq(seed) & heads["layer"].eq(1) & heads["head"].eq(2)
            heads.loc[top, ["relevance", "confidence"]] = [0.4, 0.5 + gap]
        return replace(made, heads=heads)

    assert of_heads.exception_of_layer_1(evidence(-0.3)).value == pytest.approx(-0.3)
    assert verdict("relevance_exception", evidence(-0.3)) == Verdict.PARTLY
    assert verdict("relevance_exception", evidence(-0.3, -0.25)) == Verdict.PARTLY
    assert verdict("relevance_exception", evidence(-0.3, -0.25, -0.28)) == Verdict.REPRODUCED
    assert verdict("relevance_exception", evidence(-0.3, -0.25, 0.05)) == Verdict.PARTLY
    assert verdict("relevance_exception", evidence(0.3, 0.25, 0.28)) == Verdict.NOT_REPRODUCED

    def without_rare_words(made: Evidence, *, seed: int) -> Evidence:
        names = made.heads["functions"].map(lambda names: [name for name in names if name != "rare words"])
        other = made.heads["functions"].where(made.heads["seed"].ne(seed), names)
        return replace(made, heads=made.heads.assign(functions=other))

    assert "no rare-words head" in reason(of_heads.exception_of_layer_1, without_rare_words(evidence(-0.3), seed=1))
    assert of_heads.exception_of_layer_1(without_rare_words(evidence(-0.3, 0.1), seed=2)).n == 1


def test_the_most_relevant_heads_have_functions(evidence: Evidence) -> None:
    labelled = [head in FUNCTIONAL for head in zip(evidence.heads["layer"], evidence.heads["head"])]

    def with_ranks(relevance: object) -> Evidence:
        heads = evidence.heads.assign(relevance=relevance)
        return replace(evidence, heads=heads)

    best = with_ranks(np.where(labelled, 0.5, 0.1))
    measured = of_heads.relevant_heads_have_functions(best)
    assert (measured.value, measured.n) == (1.0, 7)
    # Ranks in layers of 4, 2 and 1 heads with a function: (1 + 2 + 3 + 4) / 4 for four of them, and so on.
    assert measured.note == f"mean rank {(4 * 2.5 + 2 * 1.5 + 1) / 7:.1f} of 8"
    assert verdict("relevance_functions", best) == Verdict.REPRODUCED
    assert verdict("relevance_functions", with_ranks(np.where(labelled, 0.1, 0.5))) == Verdict.NOT_REPRODUCED
    # Ties count one half; the level of a layer does not matter.
    level = with_ranks(evidence.heads["layer"] / 10)
    assert of_heads.relevant_heads_have_functions(level).value == 0.5
    # By hand: in layer 3 head 4 has a function and beats heads 1 to 3, in layer 2 heads 5 and 6 beat 1 to 4.
    numbers = of_heads.relevant_heads_have_functions(with_ranks(evidence.heads["head"] / 100))
    wins, pairs = 3 + 2 * 4 + (0 + 0 + 0 + 3), 7 + 2 * 6 + 4 * 4
    assert numbers.value == pytest.approx(wins / pairs)
    assert numbers.low < numbers.value < numbers.high
    none = replace(
        evidence, heads=evidence.heads.assign(functions=[[]] * len(labelled), relations=[[]] * len(labelled))
    )
    assert "no layer" in reason(of_heads.relevant_heads_have_functions, none)


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
    layer = evidence.heads["layer"].eq(1)
    functions = [["positional"] if first else [] for first in layer]
    confounded = replace(evidence, heads=evidence.heads.assign(functions=functions, relations=[[] for _ in layer]))
    assert "no layer" in reason(of_heads.specialised_survive, confounded)
    # Where no relation has enough arcs, syntactic heads have no function.
    sparse = of_heads.specialised_survive(replace(evidence, least_arcs=400))
    assert sparse.value != pytest.approx(measured.value)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (FUNCTIONAL, Verdict.REPRODUCED),
        ([(1, 1), (1, 2), (1, 4), (1, 5), (2, 1), (2, 6), (3, 4)], Verdict.PARTLY),
        ([(1, 4), (1, 5), (1, 6), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)], Verdict.NOT_REPRODUCED),
    ],
)
def test_verdicts_on_the_survival_of_specialised_heads(make, monkeypatch, kept: list[tuple[int, int]], expected):
    monkeypatch.setattr("claim_tables.ENCODER", {0.01: kept})
    assert verdict("specialised_survive", seeds(make.heads(), ALL_TYPES)) == expected


def test_functions_kept(evidence: Evidence) -> None:
    assert of_heads.functions_kept(evidence, left=0.5) == Measured(1.0, n=3, of="functions")
    # With 3 heads the model is near an eighth, and has positional heads only; of a third of the heads it says nothing.
    assert of_heads.functions_kept(evidence, left=0.1).value == pytest.approx(1 / 3)
    assert "about 35%" in reason(partial(of_heads.functions_kept, left=17 / 48), evidence)
    # A smaller model that keeps every function counts: here 7 of 24 heads for a half.
    idle = evidence.heads["lam"].eq(0.01) & evidence.heads["functions"].str.len().eq(0)
    seven = replace(evidence, heads=evidence.heads[~idle])
    assert of_heads.functions_kept(seven, left=0.5).value == of_heads.functions_kept(seven, left=0.8).value == 1.0
    assert of_heads.functions_kept(replace(evidence, least_arcs=400), left=0.1).value == pytest.approx(1 / 2)
    empty = [[] for _ in range(len(evidence.heads))]
    none = replace(evidence, heads=evidence.heads.assign(functions=empty, relations=empty))
    assert "no function" in reason(partial(of_heads.functions_kept, left=0.1), none)
    assert "no layer" in reason(of_heads.specialised_survive, none)


# The order in which types and layers lose heads

DIRECTIONS = ("encoder_first", "cross_last", "decoder_low", "cross_high")
OPPOSITE = {0.01: [[8, 8, 8], [2, 4, 8], [2, 1, 0]]}
SLIGHT = {0.01: [[7, 7, 8], [8, 7, 8], [8, 8, 8]]}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([ALL_TYPES] * 3, Verdict.REPRODUCED),
        ([ALL_TYPES], Verdict.PARTLY),  # one seed
        ([ALL_TYPES] * 2, Verdict.PARTLY),
        ([*[ALL_TYPES] * 5, OPPOSITE], Verdict.PARTLY),  # not every seed agrees
        ([OPPOSITE] * 3, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_direction_needs_the_same_sign_in_three_seeds(make, models: list[dict], expected: Verdict) -> None:
    evidence = seeds(make.heads(), *models)
    assert {name: verdict(name, evidence) for name in DIRECTIONS} == dict.fromkeys(DIRECTIONS, expected)


def test_a_direction_needs_removed_heads_and_a_significant_difference(make: SimpleNamespace) -> None:
    evidence = seeds(make.heads(), *[SLIGHT] * 3)
    measured = CLAIMS["encoder_first"].measure(evidence)
    assert measured.note.startswith("same sign in 3 of 3 seeds, p ") and not measured.sufficient
    assert measured.n == 9  # 2 + 1 removed heads of the encoder and the decoder in each seed
    assert verdict("encoder_first", evidence) == Verdict.PARTLY
    # Ten removed heads or more, but as many in the decoder but for one.
    near = {0.01: [[5, 5, 5], [5, 5, 6], [8, 8, 8]]}
    assert CLAIMS["encoder_first"].measure(seeds(make.heads(), *[near] * 3)).sufficient
    assert verdict("encoder_first", seeds(make.heads(), *[near] * 3)) == Verdict.PARTLY
    whole = {0.01: WHOLE}
    assert "lost some of its heads" in reason(CLAIMS["cross_last"].measure, seeds(make.heads(), whole))
    flat = {0.01: [[4, 4, 4], [8, 8, 8], [8, 8, 8]]}
    assert reason(CLAIMS["decoder_low"].measure, seeds(make.heads(), flat)) == "the heads compared do not differ"
