"""Measures on heads before pruning: their functions, their relevance, and what relevance adds to
confidence.

Functions and relevance are those of encoder heads, as in the paper.
"""

import pandas as pd

from specialized_heads.heads.functions import BY_NAME, POSITIONAL
from specialized_heads.parsing.relations import canonical
from specialized_heads.report.claims.evidence import (
    HEAD,
    Z_PLUS,
    Evidence,
    Measured,
    Unit,
    require,
)
from specialized_heads.report.claims.inference import (
    DIFFERENCES,
    SHARES,
    area,
    area_interval,
    associated,
    by_baseline,
    by_seed,
    correlation_of,
    each,
    mean_of,
    note_of,
    proportion,
    rank_correlation,
    ranked,
    same_sign,
    share,
)
from specialized_heads.report.style import minus

TOP = 4  # relevance: the top 1 / TOP of a layer's heads, rounded up
# relevance: the top heads have at least this share of the layer's; the paper gives no number
DOMINANT = 0.5
STRATA = ["type", "layer"]  # of the heads of one baseline
OWNERS = "heads with a function"
NO_HEADS = "the model has no encoder heads"
# heads that are compared with those without a function
COMPARED = ("any function", POSITIONAL, "other functions")


def labels(evidence: Evidence, heads: pd.DataFrame, function: str) -> pd.Series:
    """Whether each encoder head has a function of these (`COMPARED`); missing for heads that have
    another one."""
    every = pd.Series(map(bool, evidence.functions(heads)), index=heads.index)
    positional = pd.Series(have(heads, POSITIONAL), index=heads.index)
    chosen = {COMPARED[0]: every, POSITIONAL: positional, COMPARED[2]: every & ~positional}[
        function
    ]
    return chosen.where(chosen | ~every)


def have(heads: pd.DataFrame, function: str) -> list[bool]:
    return [function in names for names in heads["functions"]]


def labelled(evidence: Evidence, heads: pd.DataFrame, function: str) -> pd.DataFrame:
    """The heads that can be compared, with `labelled`: whether they have the function, or none."""
    chosen = labels(evidence, heads, function)
    return heads.assign(labelled=chosen).dropna(subset="labelled").astype({"labelled": bool})


# What heads do.


def margin(evidence: Evidence, *, relation: str, direction: str) -> Measured:
    """Accuracy of each baseline's best encoder head minus that of the best fixed offset."""
    heads = evidence.baseline_heads()
    require(len(heads), NO_HEADS)
    relations = [name.removesuffix("_arcs") for name in heads if name.endswith("_arcs")]
    named = next((name for name in relations if canonical(name) == relation), None)
    require(named, f"{relation} is not among heads.relations")
    arcs = heads[f"{named}_arcs"].fillna(0).min()
    few = f"only {arcs:.0f} arcs" if arcs else "no arcs in the trees, or no trees"
    require(arcs >= evidence.least_arcs, few)
    column = f"{named}_{direction}_margin"
    best = _best(heads, f"{named}_{direction}").set_index("seed")
    within = best[f"{column}_low"].mean(), best[f"{column}_high"].mean()
    note = by_seed(best[column], Unit.POINTS.text)
    return mean_of(
        best[column], within=within, n=int(arcs), of="arcs", note=note, bounds=DIFFERENCES
    )


def positional_head(evidence: Evidence, *, offset: int | None = None) -> Measured:
    """The share of the baselines with a positional head: at this offset, or at any."""
    _require_learned(evidence)
    column = "positional_share" if offset is None else f"share_{offset:+d}"
    heads = evidence.baseline_heads().dropna(subset=column)
    require(len(heads), NO_HEADS)
    best = _best(heads, column)
    found = best[column] >= BY_NAME[POSITIONAL].threshold
    note = f"best shares by seed {each(best[column], Unit.SHARE.text)}"
    if offset is None:
        note += f", position {minus(each(best['positional_offset'], '{:+.0f}'.format))}"
    return proportion(int(found.sum()), len(best), of="baselines", note=note, baselines=len(best))


def positional_confidence(evidence: Evidence) -> Measured:
    """The confidence of each baseline's least confident positional encoder head."""
    _require_learned(evidence)
    heads = evidence.baseline_heads()
    heads = heads[have(heads, POSITIONAL)]
    require(len(heads), "no head is positional")
    least = heads.groupby("seed")["confidence"].min()
    note, owners = by_seed(least, Unit.SHARE.text), len(heads)
    of = "positional heads"
    return mean_of(least, n=owners, of=of, owners=owners, note=note, bounds=SHARES)


def _require_learned(evidence: Evidence) -> None:
    """Raise `NotTestable` for a model with fixed patterns, whose positional heads nobody needs to
    look for."""
    fixed = "fixed_patterns" in evidence.scores and evidence.baselines()["fixed_patterns"].any()
    require(not fixed, "the positional heads are fixed, not learned (model.fixed_patterns)")


def rare_words(evidence: Evidence) -> Measured:
    """The share of largest weights on one of the two rarest tokens, of the best head in the first
    layer of each baseline."""
    heads = evidence.baseline_heads()
    heads = heads[heads["layer"] == 1].dropna(subset=["rarest", "two_rarest"])
    require(len(heads), "no sentence has a rare token, or the first layer no heads")
    best = _best(heads, "two_rarest").set_index("seed")
    note = f"on the rarest token {Unit.SHARE.text(best['rarest'].mean())}"
    return mean_of(best["two_rarest"], n=len(heads), of="heads", note=note, bounds=SHARES)


# Relevance.


def _relevant(evidence: Evidence, column: str = Z_PLUS) -> pd.DataFrame:
    """The encoder heads of the baselines that have a value in this column."""
    heads = evidence.baseline_heads()
    known = column in heads and heads[column].notna().any()
    unmeasured = f"{column} is not measured (heads.relevance_rules)"
    require(known, unmeasured if "relevance" in column else f"no {column}")
    return heads.dropna(subset=column)


def dominated_layers(evidence: Evidence, *, column: str = Z_PLUS) -> Measured:
    """The share of encoder layers in which a quarter of the heads has at least half of the
    relevance in this column; those with too few heads do not count."""
    layers = {
        place: top_share(same) >= DOMINANT
        for place, same in _relevant(evidence, column).groupby(["seed", "layer"])[column]
        if len(same) >= TOP and same.any()
    }
    require(layers, f"no encoder layer has {TOP} heads with relevance")
    seeds = pd.Series([seed for seed, _ in layers])
    return share(pd.Series(list(layers.values())), seeds, of="layers")


def top_has_function(evidence: Evidence) -> Measured:
    """The share of encoder layers whose most relevant head has a function; the note has that of all
    heads."""
    heads = _relevant(evidence)
    heads = heads.assign(labelled=list(map(bool, evidence.functions(heads))))
    top = heads.loc[heads.groupby(["seed", "layer"])[Z_PLUS].idxmax()]
    note = f"of all heads {Unit.SHARE.text(heads['labelled'].mean())}; "
    note += f"by seed {each(top.groupby('seed')['labelled'].mean(), Unit.SHARE.text)}"
    return share(top["labelled"], top["seed"], of="layers", note=note)


def top_share(relevance: pd.Series) -> float:
    """The share of the relevance of a layer that the top quarter of its heads has, signs
    ignored."""
    return relevance.abs().nlargest(-(-len(relevance) // TOP)).sum() / relevance.abs().sum()


def second_of_layer_1(evidence: Evidence) -> Measured:
    """The relevance of the second most relevant head of the first layer, as a share of that of the
    most relevant one."""
    heads = _relevant(evidence)
    first = heads[heads["layer"] == 1].groupby("seed")[Z_PLUS]
    require(len(first) and first.size().min() > 1, "the first layer has no two heads")
    shares = first.agg(lambda heads: heads.nlargest(2).iloc[1] / heads.max())
    return mean_of(shares, bounds=SHARES)


def relevance_and_confidence(
    evidence: Evidence, *, exception: str, column: str = Z_PLUS
) -> Measured:
    """Spearman's correlation of relevance and confidence within encoder layers.

    Left out is the most relevant head of layer 1 if it has the function `exception`.
    """
    heads = _relevant(evidence, column).dropna(subset="confidence")
    top = _best(heads[heads["layer"] == 1], column)
    return _correlation(heads.drop(top.index[have(top, exception)]), column, "confidence")


def _correlation(heads: pd.DataFrame, one: str, other: str) -> Measured:
    """Spearman's correlation of two columns within layers."""
    values, within = rank_correlation(heads, heads[one], heads[other])
    note = by_seed(values, Unit.CORRELATION.text)
    return mean_of(values, within=within, n=len(heads), of="heads", note=note, bounds=DIFFERENCES)


def exception_of_layer_1(evidence: Evidence, *, function: str) -> Measured:
    """Confidence of the most relevant head of the first layer minus the mean of the layer's other
    heads.

    Only first layers with a head of this function count.
    """
    heads = _relevant(evidence).dropna(subset="confidence")
    first = heads[heads["layer"] == 1]
    first = first[first["seed"].isin(first.loc[have(first, function), "seed"])]
    require(
        len(first), f"the exception needs a {function.replace(' ', '-')} head in the first layer"
    )
    top = _best(first, Z_PLUS)
    others = first.drop(top.index).groupby("seed")["confidence"].mean()
    gaps = (top.set_index("seed")["confidence"] - others).dropna()
    require(len(gaps), "the first layer has a single head")
    return mean_of(gaps, note=same_sign(gaps), bounds=DIFFERENCES)


def _best(heads: pd.DataFrame, column: str) -> pd.DataFrame:
    """The head of each seed with the highest value in this column."""
    return heads.loc[heads.groupby("seed")[column].idxmax()]


def function_area(
    evidence: Evidence, *, column: str = Z_PLUS, function: str = COMPARED[0]
) -> Measured:
    """The probability (AUC) that a head with a function has more in this column than a head of its
    layer with none."""
    heads = labelled(evidence, _relevant(evidence, column), function)

    def area_of(same: pd.DataFrame) -> float:
        return area(same[column], same["labelled"], same[STRATA])

    values = by_baseline(heads, area_of)
    within = area_interval(heads[column], heads["labelled"], heads[["seed", *STRATA]])
    ranks = heads.groupby(["seed", "layer"])[column].rank(ascending=False)
    largest = heads.groupby(["seed", "layer"]).size().max()
    rank = f"mean rank {ranks[heads['labelled']].mean():.1f} of {largest}"
    note = note_of(rank, by_seed(values, Unit.AREA.text))
    n = int(heads["labelled"].sum())
    return mean_of(values, within=within, n=n, of=OWNERS, owners=n, note=note, bounds=SHARES)


def function_given_confidence(
    evidence: Evidence, *, column: str = Z_PLUS, function: str = COMPARED[0]
) -> Measured:
    """The correlation of a head's function with its rank in this column within the layer, given its
    rank by confidence there."""
    heads = labelled(evidence, _relevant(evidence, column).dropna(subset="confidence"), function)
    ranks = [ranked(heads[name], heads[["seed", *STRATA]]) for name in (column, "confidence")]
    values, _ = associated(heads, [heads["labelled"], *ranks], correlation_of)
    note = by_seed(values, Unit.CORRELATION.text)
    n = int(heads["labelled"].sum())
    # Few heads have a function: there is no interval within baselines worth the name.
    return mean_of(values, n=n, of=OWNERS, owners=n, note=note, bounds=DIFFERENCES)


def effect_of_removal(evidence: Evidence, *, column: str) -> Measured:
    """Spearman's correlation, within encoder layers, of this column with the score that the model
    loses without the head."""
    single = evidence.single
    require(len(single), "single heads are not ablated here (ablation.single)")
    without = single[(single["what"] == "without") & (single["type"] == "encoder")]
    heads = _relevant(evidence, column).merge(
        without.assign(lost=-without["delta"])[[*HEAD, "lost"]], on=HEAD
    )
    require(len(heads), "single heads are not ablated here (ablation.single)")
    return _correlation(heads, column, "lost")
