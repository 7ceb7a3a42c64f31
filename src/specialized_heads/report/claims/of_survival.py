"""Measures on pruned models: which heads survive, and which functions the heads left have."""

from collections.abc import Callable
from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd

from specialized_heads.heads.functions import BY_NAME, POSITIONAL, SYNTACTIC
from specialized_heads.model.architecture import KINDS
from specialized_heads.report.claims.evidence import HEAD, MODEL, Evidence, Measured, Unit, require
from specialized_heads.report.claims.inference import (
    DIFFERENCES,
    SHARES,
    associated,
    by_baseline,
    by_seed,
    each,
    mean_of,
    note_of,
    p_text,
    permutation_p,
    proportion,
    ranked,
    same_sign,
    slope,
    slope_of,
)
from specialized_heads.report.claims.of_heads import COMPARED, STRATA, labelled
from specialized_heads.report.claims.of_scores import telling

ENDS = ("_head_to_dependent", "_dependent_to_head")  # of the name of a relation with its direction
# Heads left that the next larger model has too, of how many, and as many by chance.
NESTED = ["in_larger", "of", "by_chance"]
LEAST_LAYERS = 3  # two layers show a difference, not a direction
MIN_REMOVED = 10  # a direction needs at least as many removed heads
# A head whose margin is this close to the threshold before pruning may pass it by noise.
NEAR_THRESHOLD = 0.05


def survival(
    evidence: Evidence, *, function: str = COMPARED[0], scope: str = "encoder"
) -> Measured:
    """Survival of heads with a function minus that of heads of the same layer with none, when this
    scope is pruned."""
    heads = surviving(evidence, scope, function)

    def difference(same: pd.DataFrame) -> float:
        return slope(same["labelled"], same["survival"], same[STRATA])[0]

    values = by_baseline(heads, difference)
    _, low, high, p_value = slope(heads["labelled"], heads["survival"], heads[["seed", *STRATA]])
    test = f"{p_text(p_value)} if heads were independent"
    note = note_of(by_seed(values, Unit.POINTS.text), test)
    owners = int(heads["labelled"].sum())
    return mean_of(values, within=(low, high), n=len(heads), of="heads", note=note, owners=owners)


def survival_given_confidence(
    evidence: Evidence, *, function: str = COMPARED[0], scope: str = "encoder"
) -> Measured:
    """The same difference between heads of equal rank by confidence within the layer, with a
    permutation test within layers."""
    heads = surviving(evidence, scope, function).dropna(subset="confidence")
    strata = heads[["seed", *STRATA]]
    columns = (
        heads["labelled"].astype(float),
        heads["survival"],
        ranked(heads["confidence"], strata),
    )
    values, _ = associated(heads, columns, slope_of)
    test = f"heads permuted within layers: {p_text(permutation_p(*columns, strata))}"
    note = note_of(by_seed(values, Unit.POINTS.text), test)
    # Few heads have a function: there is no interval within baselines worth the name.
    owners = int(heads["labelled"].sum())
    return mean_of(values, n=len(heads), of="heads", note=note, bounds=DIFFERENCES, owners=owners)


def surviving(evidence: Evidence, scope: str, function: str = COMPARED[0]) -> pd.DataFrame:
    """The encoder heads of the baselines with a function, or with none, and their survival
    (`Evidence.survival`)."""
    heads = evidence.survival(scope)
    return labelled(evidence, heads[heads["type"] == "encoder"], function)


# Whether the heads of a smaller model are among those of a larger one.


def nested(evidence: Evidence, models: pd.DataFrame) -> dict[int, dict[str, float]]:
    """By index, how many encoder heads each model shares with the one of its seed before it; none
    of the first ones.

    By chance, n of N heads of a layer and m of the same N share n·m/N.
    """
    whole, left = evidence.baseline_heads(), evidence.heads[evidence.heads["type"] == "encoder"]
    shared: dict[int, dict[str, float]] = {}
    for (seed, _), same in models.groupby(["seed", models["lam"].isna()]):
        sizes = whole[whole["seed"] == seed].groupby("layer").size()
        larger = None
        for place in same.sort_values("encoder_heads", ascending=False, kind="stable").index:
            heads = left.merge(same.loc[[place], MODEL], on=MODEL)[["layer", "head"]]
            if larger is not None:
                chance = heads.groupby("layer").size() * larger.groupby("layer").size() / sizes
                values = len(heads.merge(larger)), len(heads), chance.sum()
                shared[place] = dict(zip(NESTED, values, strict=True))
            larger = heads
    return shared


def in_larger(evidence: Evidence, *, scope: str = "encoder") -> Measured:
    """The share of the heads left that the next larger model of the same baseline has too, pooled
    over its models.

    The note has the share by chance, and whether the models of a baseline shared order of the text,
    dropout and gate noise, as those of older tables did: then they agree for that reason too.
    """
    models = evidence.pruned_models(scope)
    counts = pd.DataFrame.from_dict(nested(evidence, models), orient="index")
    require(len(counts), "no baseline has two pruned models")
    counts = counts[counts["of"] > 0]
    require(len(counts), "of two pruned models of a baseline, the smaller has no encoder head left")
    sums = counts.groupby(models["seed"]).sum()
    values, chance = sums["in_larger"] / sums["of"], sums["by_chance"].sum() / sums["of"].sum()
    own = models.reindex(columns=["seed", "own_seed"]).groupby("seed")["own_seed"]
    alike = own.nunique() < own.size()
    shared = list(map(str, alike[alike].index))
    of = "a baseline" if alike.all() else f"seed{'s' * (len(shared) > 1)} {', '.join(shared)}"
    note = f"by chance {Unit.SHARE.text(chance)}; order, dropout and gate noise are "
    note += f"the same in all models of {of}" if shared else "drawn for each model"
    if not shared and "gate_seed" in models and models["gate_seed"].notna().any():
        note += ", but gate noise from pruning.gate_seed"
    note = note_of(note, by_seed(values, Unit.SHARE.text))
    pooled = proportion(int(sums["in_larger"].sum()), int(sums["of"].sum()), of="heads")
    return mean_of(
        values, within=(pooled.low, pooled.high), n=pooled.n, of="heads", note=note, bounds=SHARES
    )


# Functions of the heads left.


def functions_kept(evidence: Evidence, *, left: float) -> Measured:
    """The share of the baseline's functions that an encoder-pruned model with this share of heads
    still has, interpolated.

    Each offset, each relation with its direction, and any other function is one function, whichever
    head has it. The note has what as many random heads per layer would keep.
    """
    before = evidence.baseline_heads()
    curves: dict[int, dict[float, tuple[float, float]]] = {}  # by share of heads: kept, by chance
    for seed, heads in evidence.survivors("encoder"):
        whole = before[before["seed"] == seed]
        if had := set().union(*evidence.functions(whole)):
            has = set().union(*evidence.functions(heads)) & had
            values = len(has), by_chance(evidence, whole, heads, had)
            points = curves.setdefault(seed, {1.0: (1.0, 1.0)})
            points[len(heads) / len(whole)] = tuple(value / len(had) for value in values)
    require(curves, "the baselines have no function")
    able, others = telling({seed: np.sort([*points]) for seed, points in curves.items()}, left)
    kept, chance = {}, {}
    for seed in able:
        shares, values = zip(*sorted(curves[seed].items()))
        kept[seed], chance[seed] = (
            np.interp(left, shares, series) for series in np.transpose(values)
        )
    values, random = (pd.Series(of, dtype=float).sort_index() for of in (kept, chance))
    more, points = mean_of(values - random, bounds=DIFFERENCES), Unit.POINTS.text
    drawn = f"random heads, as many per layer, keep {Unit.SHARE.text(random.mean())}"
    note = note_of(drawn, by_seed(values, Unit.SHARE.text))
    if not isnan(more.low):
        note += f"; {points(more.value)} points [{points(more.low)}, {points(more.high)}] more"
    return mean_of(values, note=note_of(note, others), bounds=SHARES)


def by_chance(
    evidence: Evidence, whole: pd.DataFrame, left: pd.DataFrame, functions: set[str]
) -> float:
    """The expected number of functions with an owner among random heads, as many per layer as a
    model has left.

    With k owners in a layer of N heads of which m are left, none is left with probability C(N − k,
    m) / C(N, m).
    """
    names = pd.Series(evidence.functions(whole), index=whole.index)
    sizes, remaining = whole.groupby("layer").size(), left.groupby("layer").size()
    expected = 0.0
    for function in functions:
        owners = whole[[function in own for own in names]].groupby("layer").size()
        missed = 1.0
        for layer, k in owners.items():
            n, m = int(sizes[layer]), int(remaining.get(layer, 0))
            missed *= np.prod([(n - k - i) / (n - i) for i in range(m)]) if m <= n - k else 0.0
        expected += 1 - missed
    return expected


def taken_over(evidence: Evidence) -> Measured:
    """The share of the baselines in which a head that is left has taken over the function of a
    pruned one.

    A function of a pruned head is one that no head left had. A head takes it over if its margin has
    grown with an interval above zero and was not close to the threshold before; shares of argmaxes
    have no interval, so that positions are not taken over. The models of a baseline, most of them
    nested, count once. Baselines that lost no such function say nothing.
    """
    before = evidence.baseline_heads().set_index(HEAD, drop=False)
    functions, found, heads_found = _functions_by_head(evidence, before), {}, set()
    for seed, heads in evidence.survivors("encoder"):
        left = _functions_by_head(evidence, heads)
        kept = set().union(*(functions[head] for head in left))
        gone = set().union(
            *(had - kept for head, had in functions.items() if head[0] == seed and head not in left)
        )
        if not gone:
            continue
        after = heads.set_index(HEAD, drop=False)
        new = {
            head
            for head, has in left.items()
            for function in (has - functions[head]) & gone
            if _grown(before.loc[head], after.loc[head], function)
        }
        found[seed] = found.get(seed, False) or bool(new)
        heads_found |= new
    require(found, "no pruned model has lost a head with a function")
    places = ", ".join(
        f"{layer}-{head} (seed {seed})" for seed, _, layer, head in sorted(heads_found)
    )
    measured = proportion(
        sum(found.values()), len(found), of="baselines", note=places, baselines=len(found)
    )
    return replace(measured, sufficient=len(heads_found) > 1)


def _grown(before: pd.Series, after: pd.Series, function: str) -> bool:
    """Whether a head's margin for a relation was well below the threshold and has grown for sure.

    The two margins' intervals are combined as if they were independent, though the sentences are
    the same, so the test errs towards no change.
    """
    column = f"{function}_margin"
    if column not in before:
        return False
    half = np.hypot(
        *((row[f"{column}_high"] - row[f"{column}_low"]) / 2 for row in (before, after))
    )
    near = before[column] > BY_NAME[SYNTACTIC].threshold - NEAR_THRESHOLD
    return bool(not near and after[column] - before[column] > half)


def _functions_by_head(evidence: Evidence, heads: pd.DataFrame) -> dict[tuple, set[str]]:
    return dict(
        zip(heads[HEAD].itertuples(index=False, name=None), evidence.functions(heads), strict=True)
    )


def two_functions(evidence: Evidence) -> Measured:
    """The share of the baselines in which a head of a pruned model has come to be positional and to
    follow a relation."""

    def both(names: set[str]) -> bool:
        return any(name.startswith(POSITIONAL) for name in names) and any(
            name.endswith(ENDS) for name in names
        )

    before = _functions_by_head(evidence, evidence.baseline_heads())
    drifted: dict[int, bool] = {}
    some = False
    for seed, heads in evidence.survivors("encoder"):
        left = _functions_by_head(evidence, heads)
        some = some or any(left.values())
        new = any(both(has) and not both(before[head]) for head, has in left.items())
        drifted[seed] = drifted.get(seed, False) or new
    require(some, "no head of a pruned model has a function")
    return proportion(sum(drifted.values()), len(drifted), of="baselines", baselines=len(drifted))


# The order in which types and layers lose their heads.


def type_order(evidence: Evidence, *, kind: str, last: bool) -> Measured:
    """Survival of a type's heads minus that of the next type, when all types are pruned; reversed
    if the type goes first.

    Of the contrasts with the two other types, the weaker one.
    """
    first = evidence.baselines().iloc[0]
    encoder, decoder, _ = (len(first[f"{name}_layers"]) for name in KINDS)
    unequal = (
        f"the encoder has {encoder} layers and the decoder {decoder}: unequal depths do not compare"
    )
    require(encoder == decoder, unequal)
    heads, contrasts = evidence.survival("all"), []
    for other in (other for other in KINDS if other != kind):
        pair = heads[heads["type"].isin([kind, other])]
        contrasts.append(
            _direction(pair, lambda same, top=kind if last else other: same["type"] == top)
        )
    weaker = min(
        contrasts,
        key=lambda contrast: contrast.low if contrast.low == contrast.low else contrast.value,
    )
    note = weaker.note
    if "functions" in heads:
        labels = sum(map(bool, evidence.functions(evidence.baseline_heads())))
        total = len(evidence.baseline_heads())
        note += f"; {labels} of {total} encoder heads {'has' if labels == 1 else 'have'} a function"
    return replace(weaker, note=note, sufficient=all(contrast.sufficient for contrast in contrasts))


def layer_order(evidence: Evidence, *, kind: str) -> Measured:
    """Change of a type's survival per layer, when all types are pruned."""
    heads = evidence.survival("all")
    heads = heads[heads["type"] == kind]
    layers = heads["layer"].nunique()
    require(layers >= LEAST_LAYERS, f"{layers} layers have no direction; it takes {LEAST_LAYERS}")
    return _direction(heads, lambda same: same["layer"])


def _direction(heads: pd.DataFrame, x: Callable[[pd.DataFrame], pd.Series]) -> Measured:
    """The slope of survival on x in each baseline, and whether removed heads suffice for a
    direction."""
    _, low, high, p_value = slope(x(heads), heads["survival"], heads[["seed"]])
    values = by_baseline(heads, lambda same: slope(x(same), same["survival"], same[["seed"]])[0])
    removed = int((heads["survival"] < 1).sum())
    note = (
        f"{same_sign(values)}: {each(values, Unit.POINTS.text)}; {p_text(p_value)} if heads were "
        "independent"
    )
    measured = mean_of(
        values, within=(low, high), n=removed, of="removed heads", note=note, bounds=DIFFERENCES
    )
    return replace(measured, sufficient=removed >= MIN_REMOVED)
