"""Measures on heads: their functions and relevance, and which heads survive pruning.

Functions and relevance are those of encoder heads, as in the paper.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, norm, sem, t

from specialized_heads.heads.functions import POSITIONAL, RARE_WORDS
from specialized_heads.model.architecture import KINDS
from specialized_heads.parsing.relations import canonical
from specialized_heads.report.claims.claim import Measured, Unit, proportion
from specialized_heads.report.claims.evidence import HEAD, Evidence, NotTestable, require
from specialized_heads.report.data import with_ends
from specialized_heads.report.style import minus

NEAR = 0.1  # of the heads: about as many as the paper's
TOP = 4  # relevance: the top 1 / TOP of a layer's heads, rounded up
AREAS = np.linspace(0.0, 1.0, 2001)  # at which Newcombe's interval is evaluated
DOMINANT = 0.5  # relevance: the top heads have at least this share of the layer's; the paper gives no number
MIN_SEEDS = 3  # a direction needs the same sign in every one of at least as many seeds
MIN_REMOVED = 10  # a direction needs at least as many removed heads: below, the normal approximation is poor


def margin(evidence: Evidence, *, relation: str, direction: str) -> Measured:
    """Accuracy of the best encoder head minus that of the best fixed offset.

    Whether a baseline has such a head differs between seeds, so the interval spans those of all seeds.
    """
    heads = evidence.baseline_heads()
    relations = [name.removesuffix("_arcs") for name in heads if name.endswith("_arcs")]
    named = next((name for name in relations if canonical(name) == relation), None)
    require(named, f"{relation} is not among heads.relations")
    arcs = heads[f"{named}_arcs"].fillna(0).min()
    few = f"only {arcs:.0f} arcs" if arcs else "no arcs in the trees, or no trees"
    require(arcs >= evidence.least_arcs, few)
    best = _best(heads, f"{named}_{direction}")
    value, low, high = (best[column] for column in with_ends(f"{named}_{direction}_margin"))
    return Measured(value.mean(), low.min(), high.max(), int(arcs), "arcs")


def positional_share(evidence: Evidence, *, offset: int | None = None) -> Measured:
    """The share of argmaxes at one offset, this or any, of the best encoder head for it, over the queries with a token there."""
    _require_learned(evidence)
    column = "positional_share" if offset is None else f"share_{offset:+d}"
    heads = evidence.baseline_heads().dropna(subset=column)
    require(len(heads), "the model has no encoder heads")
    best = _best(heads, column)
    offsets = best["positional_offset"] if offset is None else [offset]
    note = "position " + ", ".join(dict.fromkeys(minus(f"{offset:+.0f}") for offset in offsets))
    return Measured(best[column].mean(), n=len(heads), of="heads", note=note)


def positional_confidence(evidence: Evidence) -> Measured:
    """The confidence of the least confident positional encoder head."""
    _require_learned(evidence)
    heads = evidence.baseline_heads()
    heads = heads[_have(heads, POSITIONAL)]
    require(len(heads), "no head is positional")
    return Measured(heads["confidence"].min(), n=len(heads), of="positional heads")


def _require_learned(evidence: Evidence) -> None:
    """Raise `NotTestable` for a model with fixed patterns, whose positional heads nobody needs to look for."""
    fixed = "fixed_patterns" in evidence.scores and evidence.baselines()["fixed_patterns"].any()
    require(not fixed, "the positional heads are fixed, not learned (model.fixed_patterns)")


def rare_words(evidence: Evidence, *, column: str) -> Measured:
    """The share of argmaxes on rare tokens, of the best head in the first layer."""
    heads = evidence.baseline_heads()
    heads = heads[heads["layer"] == 1].dropna(subset=column)
    require(len(heads), "no sentence has a rare token, or the first layer no heads")
    return Measured(heads.groupby("seed")[column].max().mean(), n=len(heads), of="heads")


def _relevant(evidence: Evidence, column: str = "relevance") -> pd.DataFrame:
    """The encoder heads of the baselines that have a relevance in this column."""
    heads = evidence.baseline_heads()
    known = column in heads and heads[column].notna().any()
    require(known, "relevance is not computed by this rule (heads.relevance_rules)")
    return heads.dropna(subset=column)


def dominated_layers(evidence: Evidence, *, column: str = "relevance") -> Measured:
    """The share of encoder layers in which a quarter of the heads has at least half of the relevance in this column."""
    layers = [same[column] for _, same in _relevant(evidence, column).groupby(["seed", "layer"])]
    shares = [top_share(values) for values in layers if len(values) >= TOP and values.any()]
    require(shares, f"no encoder layer has {TOP} heads with relevance")
    return proportion(sum(share >= DOMINANT for share in shares), len(shares), of="layers")


def top_share(relevance: pd.Series) -> float:
    """The share of the relevance of a layer that the top quarter of its heads has, signs ignored."""
    return relevance.abs().nlargest(-(-len(relevance) // TOP)).sum() / relevance.abs().sum()


def second_of_layer_1(evidence: Evidence) -> Measured:
    """The relevance of the second most relevant head of the first layer, as a share of that of the most relevant one."""
    heads = _relevant(evidence)
    first = heads[heads["layer"] == 1].groupby("seed")["relevance"]
    require(len(first) and first.size().min() > 1, "the first layer has no two heads")
    return Measured(first.agg(lambda heads: heads.nlargest(2).iloc[1] / heads.max()).mean(), n=len(first), of="seeds")


def relevance_and_confidence(evidence: Evidence, *, column: str = "relevance") -> Measured:
    """Spearman's correlation of relevance and confidence within encoder layers, without the exception in the first."""
    heads = _relevant(evidence, column).dropna(subset="confidence")
    top = _best(heads[heads["layer"] == 1], column)
    heads = heads.drop(top.index[_have(top, RARE_WORDS)])
    return rank_correlation(heads[column], heads["confidence"], heads[["seed", "layer"]])


def exception_of_layer_1(evidence: Evidence) -> Measured:
    """Confidence of the most relevant head of the first layer minus the mean of the layer's other heads.

    The exception is a rare-words head, so only first layers with such a head count.
    """
    heads = evidence.baseline_heads().dropna(subset=["relevance", "confidence"])
    first = heads[heads["layer"] == 1]
    first = first[first["seed"].isin(first.loc[_have(first, RARE_WORDS), "seed"])]
    require(len(first), "the exception needs a rare-words head in the first layer")
    top = _best(first, "relevance")
    others = first.drop(top.index).groupby("seed")["confidence"].mean()
    gaps = (top.set_index("seed")["confidence"] - others).dropna()
    require(len(gaps), "the first layer has a single head")
    return certain_over_seeds(gaps, sign=-1)


def _best(heads: pd.DataFrame, column: str) -> pd.DataFrame:
    """The head of each seed with the highest value in this column."""
    return heads.loc[heads.groupby("seed")[column].idxmax()]


def _have(heads: pd.DataFrame, function: str) -> list[bool]:
    return [function in names for names in heads["functions"]]


def relevant_heads_have_functions(evidence: Evidence, *, column: str = "relevance") -> Measured:
    """The probability that a head with a function has more relevance in this column than a head of its layer without one."""
    heads = _relevant(evidence, column)
    labelled = pd.Series(map(bool, evidence.functions(heads)), index=heads.index)
    ranks = heads.groupby(["seed", "layer"])[column].rank(ascending=False)
    measured = area(heads[column], labelled, heads[["seed", "layer"]])
    largest = heads.groupby(["seed", "layer"]).size().max()
    return replace(measured, note=f"mean rank {ranks[labelled].mean():.1f} of {largest}")


def functions_kept(evidence: Evidence, *, left: float) -> Measured:
    """The largest share of the baseline's functions that an encoder-pruned model with about this share of heads still has.

    Each offset, each relation with its direction, and rare words are one function, whichever head has it; those of all seeds
    count together. "About" is within `NEAR`. A smaller model that keeps all functions counts too; one that does not says nothing.
    """
    before = evidence.baseline_heads()
    # By seed: most functions of any model, its heads, and the functions of the baseline.
    kept: dict[int, tuple[int, int, int]] = {}
    for seed, heads in evidence.survivors("encoder"):
        whole = before[before["seed"] == seed]
        had, has = (set().union(*evidence.functions(table)) for table in (whole, heads))
        share = len(heads) / len(whole)
        if had and share <= left + NEAR and (had <= has or share >= left - NEAR):
            kept[seed] = max(kept.get(seed, (0, 0, 0)), (len(had & has), len(heads), len(had)))
    none = f"the baseline has no function, or no pruned model with decided gates has about {left:.0%} of its heads"
    require(kept, none)
    most, numbers, functions = zip(*kept.values())
    note = f"with {' and '.join(map(str, dict.fromkeys(numbers)))} heads"
    return proportion(sum(most), sum(functions), of="functions", note=note)


def taken_over(evidence: Evidence) -> Measured:
    """The share of encoder-pruned models in which a head that is left has a new function, which a pruned head had.

    Models that lost no head with a function say nothing.
    """
    functions, models = _functions_by_head(evidence, evidence.baseline_heads()), []
    for seed, heads in evidence.survivors("encoder"):
        left = _functions_by_head(evidence, heads)
        gone = set().union(*(had for head, had in functions.items() if head[0] == seed and head not in left))
        if gone:
            models.append(any((has - functions[head]) & gone for head, has in left.items()))
    require(models, "no pruned model has lost a head with a function")
    return Measured(float(np.mean(models)), n=len(models), of="models")


def _functions_by_head(evidence: Evidence, heads: pd.DataFrame) -> dict[tuple, set[str]]:
    return dict(zip(heads[HEAD].itertuples(index=False, name=None), evidence.functions(heads), strict=True))


def two_functions(evidence: Evidence) -> Measured:
    """The share of encoder-pruned models in which a head has come to be positional and to follow a relation."""

    def both(names: set[str]) -> bool:
        return {name.startswith(POSITIONAL) for name in names - {RARE_WORDS}} == {True, False}

    before = _functions_by_head(evidence, evidence.baseline_heads())
    models = [_functions_by_head(evidence, heads) for _, heads in evidence.survivors("encoder")]
    require(
        any(names - {RARE_WORDS} for has in models for names in has.values()),
        "no head of a pruned model has a function",
    )
    drifted = [any(both(has) and not both(before[head]) for head, has in heads.items()) for heads in models]
    return Measured(float(np.mean(drifted)), n=len(models), of="models")


def specialised_survive(evidence: Evidence) -> Measured:
    """Survival under encoder pruning of heads with a function minus that of heads without, within layers.

    The note has the area under the ROC curve within layers: the probability that a head with a function survives in more
    models than one without, ties counting one half. And the same difference for positional and for syntactic heads alone.
    """
    heads, labelled = surviving(evidence, "encoder")
    strata = heads[["seed", "layer"]]
    auc = area(heads["survival"], labelled, strata).value
    value, low, high, p_value = slope(labelled, heads["survival"], strata)
    notes = [f"AUC {auc:.2f}, p {p_value:.2g}"]
    positional = pd.Series(_have(heads, POSITIONAL), index=heads.index)
    for name, chosen in (("positional heads alone", positional), ("other functions alone", labelled & ~positional)):
        with suppress(NotTestable):
            compared = chosen | ~labelled
            parts = slope(chosen[compared], heads.loc[compared, "survival"], strata[compared])[:3]
            notes.append("{} {} [{}, {}]".format(name, *map(Unit.POINTS.text, parts)))
    return Measured(value, low, high, len(heads), "heads", "; ".join(notes))


def surviving(evidence: Evidence, scope: str) -> tuple[pd.DataFrame, pd.Series]:
    """The encoder heads of the baselines with their survival (`Evidence.survival`), and whether each has a function."""
    heads = evidence.survival(scope)
    heads = heads[heads["type"] == "encoder"]
    return heads, pd.Series(map(bool, evidence.functions(heads)), index=heads.index)


def area(x: pd.Series, labelled: pd.Series, strata: pd.DataFrame) -> Measured:
    """The probability that a labelled head has a higher x than another head of its stratum, ties counting one half.

    This is the area under the ROC curve, with Newcombe's 95% interval: with one or two labelled heads in a stratum, a bootstrap
    of the heads would be far too narrow.

    Raises:
        NotTestable: no stratum has heads of both kinds.
    """
    wins, sides = 0.0, []
    for _, same in x.groupby([strata[column] for column in strata]):
        ours, others = same[labelled[same.index]], same[~labelled[same.index]]
        if len(ours) and len(others):
            wins += mannwhitneyu(ours, others).statistic
            sides.append((len(ours), len(others)))
    require(sides, "no layer of the baseline has both heads with a function and heads without")
    value = wins / sum(m * n for m, n in sides)
    return Measured(value, *newcombe(value, sides), int(labelled.sum()), "heads with a function")


def newcombe(area: float, sides: list[tuple[int, int]]) -> tuple[float, float]:
    """The 95% interval of an area under the ROC curve (Newcombe 2006, Statistics in Medicine 25, method 5).

    It holds the areas θ from which `area`, measured over all strata, is at most 1.96 standard deviations away, by Hanley and
    McNeil's variance at θ with the mean of the two sample sizes in its last term. Strata share one θ and are weighted by their
    numbers of pairs. Both ends are NaN where one side has a single head in all strata. `sides`: labelled and other heads of each.
    """
    if min(map(sum, zip(*sides))) < 2:
        return np.nan, np.nan
    pairs = sum(m * n for m, n in sides)
    variance = np.zeros_like(AREAS)
    for m, n in sides:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - AREAS) / (2 - AREAS) + AREAS / (1 + AREAS))
        variance += m * n / pairs**2 * AREAS * (1 - AREAS) * spread
    inside = AREAS[np.abs(AREAS - area) <= norm.ppf(0.975) * np.sqrt(variance) + AREAS[1] / 2]
    return float(inside[0]), float(inside[-1])


def type_order(evidence: Evidence, *, kind: str, last: bool) -> Measured:
    """Survival of a type's heads minus that of the next type, when all types are pruned; reversed if the type goes first.

    Of the contrasts with the two other types, the weaker one.
    """
    first = evidence.baselines().iloc[0]
    encoder, decoder, _ = (len(first[f"{name}_layers"]) for name in KINDS)
    unequal = f"the encoder has {encoder} layers and the decoder {decoder}: unequal depths do not compare"
    require(encoder == decoder, unequal)
    heads, contrasts = evidence.survival("all"), []
    for other in (other for other in KINDS if other != kind):
        pair = heads[heads["type"].isin([kind, other])]
        contrasts.append(_direction(pair, pair["type"] == (kind if last else other), sign=1))
    weaker = min(contrasts, key=lambda contrast: contrast.low)
    return replace(weaker, sufficient=all(contrast.sufficient for contrast in contrasts))


def layer_order(evidence: Evidence, *, kind: str, sign: int) -> Measured:
    """Change of a type's survival per layer, when all types are pruned; `sign` is the one that the paper reports."""
    heads = evidence.survival("all")
    heads = heads[heads["type"] == kind]
    return _direction(heads, heads["layer"], sign=sign)


def _direction(heads: pd.DataFrame, x: pd.Series, *, sign: int) -> Measured:
    """The slope of survival on x within seeds, and whether seeds and removed heads suffice for a direction."""
    value, low, high, p_value = slope(x, heads["survival"], heads[["seed"]])
    agreeing = 0
    for _, same in heads.groupby("seed"):
        with suppress(NotTestable):  # no sign
            agreeing += slope(x[same.index], same["survival"], same[["seed"]])[0] * sign > 0
    removed = int((heads["survival"] < 1).sum())
    note, sufficient = _agreement(agreeing, heads["seed"].nunique())
    note += f", p {p_value:.2g}"
    return Measured(value, low, high, removed, "removed heads", note, sufficient and removed >= MIN_REMOVED)


def rank_correlation(x: pd.Series, y: pd.Series, strata: pd.DataFrame) -> Measured:
    """Spearman's correlation within strata, from the `slope` of the ranks."""
    ranks = [values.groupby([strata[column] for column in strata]).rank() for values in (x, y)]
    value, low, high, p_value = slope(*ranks, strata)
    return Measured(value, low, high, len(x), "heads", f"p {p_value:.2g}")


def slope(x: pd.Series, y: pd.Series, strata: pd.DataFrame) -> tuple[float, float, float, float]:
    """The slope of y on x, both one value per head, within strata: heads with the same values of these columns.

    It is pooled over strata: Σ Sxy / Σ Sxx with sums of squares about the mean of each stratum. For x of 0 and 1 it is the
    Mantel-Haenszel difference of the two means, for ranks Spearman's correlation. Its variance under the null hypothesis, that
    y is exchangeable among the heads of a stratum, is known exactly: Σ Sxx·Syy/(n − 1) over (Σ Sxx)² (Mantel 1963). The interval
    is the normal approximation with this variance, so that it excludes 0 where the test rejects it at 5%. It is clipped to
    [−1, 1], the range of shares, correlations and changes of a share per layer.

    Returns:
        the slope, its 95% interval, and the two-sided p-value.

    Raises:
        NotTestable: x or y does not vary within any stratum.
    """
    frame = pd.DataFrame({"x": x.astype(float), "y": y.astype(float)})
    groups = [strata[column] for column in strata]
    x, y = (frame[name] - frame.groupby(groups)[name].transform("mean") for name in ("x", "y"))
    sums = pd.DataFrame({"xy": x * y, "xx": x**2, "yy": y**2, "n": 1.0}).groupby(groups).sum()
    covariance, spread = sums["xy"].sum(), sums["xx"].sum()
    deviation = np.sqrt((sums["xx"] * sums["yy"] / (sums["n"] - 1).clip(lower=1)).sum())
    require(deviation >= 1e-12, "the heads compared do not differ")
    value, half = covariance / spread, norm.ppf(0.975) * deviation / spread
    return value, max(-1.0, value - half), min(1.0, value + half), 2 * norm.sf(abs(covariance) / deviation)


def certain_over_seeds(values: pd.Series, *, sign: int) -> Measured:
    """The mean of one value per seed, with Student's interval, and whether enough seeds have the sign that the paper reports."""
    few = len(values) < MIN_SEEDS
    mean, half = values.mean(), np.nan if few else t.ppf(0.975, len(values) - 1) * sem(values)
    note, sufficient = _agreement(int((values * sign > 0).sum()), len(values))
    return Measured(mean, mean - half, mean + half, len(values), "seeds", note, sufficient)


def _agreement(agreeing: int, seeds: int) -> tuple[str, bool]:
    return f"same sign in {agreeing} of {seeds} seed{'s' * (seeds != 1)}", agreeing == seeds >= MIN_SEEDS
