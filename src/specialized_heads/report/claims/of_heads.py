"""What claims measure on heads: their functions, and which of them survive.

Functions of heads are those of encoder heads, as in the paper.
"""

import math

import numpy as np
import pandas as pd

from specialized_heads.heads.functions import POSITIONAL
from specialized_heads.parsing.relation_names import canonical
from specialized_heads.report.claims.claim import Measured, Untestable
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.claims.of_scores import Measure

NEAR = 0.1  # of the heads: as many as the paper's, to this


def margin(relation: str, direction: str) -> Measure:
    """Accuracy of the best encoder head above the best fixed offset."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        heads = evidence.baseline_heads()
        found = [name.removesuffix("_arcs") for name in heads if name.endswith("_arcs")]
        named = next((name for name in found if canonical(name) == relation), None)
        if named is None:
            return Untestable(f"{relation} is not among heads.relations")
        arcs = heads[f"{named}_arcs"].fillna(0).min()
        if not arcs >= evidence.least_arcs:
            return Untestable(f"only {arcs:.0f} arcs" if arcs else "no arcs in the trees, or no trees")
        best = heads.loc[heads.groupby("seed")[f"{named}_{direction}"].idxmax()]
        ends = [f"{named}_{direction}_margin{end}" for end in ("", "_low", "_high")]
        return Measured(*best[ends].mean(), int(arcs), "arcs")

    return measure


def positional_share(least: float) -> Measure:
    """The share of argmaxes of the most positional encoder head at its offset.

    Where sentences are so short that no head can have `least` of its maxima at the token before or after, a smaller share
    says nothing. How many it can have there is known where a head of the model prefers that token.
    """

    def measure(evidence: Evidence) -> Measured | Untestable:
        heads = evidence.baseline_heads().dropna(subset="positional_share")
        if heads.empty:
            return Untestable("the model has no encoder heads")
        best = heads.groupby("seed")["positional_share"].max().mean()
        ceiling = heads.loc[heads["positional_offset"].abs() == 1, "positional_ceiling"].max()
        if best < least and ceiling < least:
            return Untestable(f"sentences are too short: no head beside the diagonal can have more than {ceiling:.1%}")
        return Measured(best, n=len(heads), of="heads")

    return measure


def positional_confidence(evidence: Evidence) -> Measured | Untestable:
    """The confidence of the least confident positional encoder head."""
    heads = evidence.baseline_heads()
    heads = heads[[POSITIONAL in names for names in heads["functions"]]]
    if heads.empty:
        return Untestable("no head is positional")
    return Measured(heads["confidence"].min(), n=len(heads), of="positional heads")


def rare_words(column: str) -> Measure:
    """The share of argmaxes on rare tokens, of the best head in the first layer."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        heads = evidence.baseline_heads()
        heads = heads[heads["layer"] == 1].dropna(subset=column)
        if heads.empty:
            return Untestable("no sentence has a rare token, or the first layer no heads")
        return Measured(heads.groupby("seed")[column].max().mean(), n=len(heads), of="heads")

    return measure


def functions_kept(left: float) -> Measure:
    """The largest share of the baseline's functions that an encoder-pruned model with about this share of heads still has.

    About is to `NEAR`. A smaller model that keeps all of them bears the claim out the more; one that does not says nothing.
    """

    def measure(evidence: Evidence) -> Measured | Untestable:
        found = []
        for model, own, before in evidence.survivors("encoder"):
            share = len(own) / max(len(before), 1)
            had, has = (set().union(*evidence.functions(heads)) for heads in (before, own))
            if share <= left + NEAR and had:
                kept = len(had & has) / len(had)
                found += [(model["seed"], kept, len(had))] if kept == 1 or share >= left - NEAR else []
        if not found:
            return Untestable(f"the baseline has no function, or no pruned model about {left:.0%} of its heads")
        models = pd.DataFrame(found, columns=["seed", "kept", "functions"]).groupby("seed")
        return Measured(models["kept"].max().mean(), n=int(models["functions"].first().min()), of="functions")

    return measure


def specialised_last(evidence: Evidence) -> Measured | Untestable:
    """How much oftener heads with a function survive encoder pruning than heads without: difference of shares.

    A head of a seed counts once, with the share of the models that it survives in, since those that are pruned the more keep
    a part of what the others keep. The interval is Welch's; none where either side has one head, or all heads one fate.
    """
    fates: dict[tuple[int, int, int], list[float]] = {}
    labelled: dict[tuple[int, int, int], bool] = {}
    for model, own, before in evidence.survivors("encoder"):
        if 0 < len(own) < len(before):
            left = set(zip(own["layer"], own["head"], strict=True))
            for layer, head, functions in zip(before["layer"], before["head"], evidence.functions(before), strict=True):
                key = (model["seed"], layer, head)
                fates.setdefault(key, []).append((layer, head) in left)
                labelled[key] = bool(functions)
    sides = [np.array([np.mean(fates[key]) for key in fates if labelled[key] is side]) for side in (True, False)]
    if not all(map(len, sides)):
        return Untestable("no head of the baseline has a function, or no model has lost some of its heads")
    gap = sides[0].mean() - sides[1].mean()
    if min(map(len, sides)) < 2 or not all(side.var() for side in sides):
        return Measured(gap, n=len(fates), of="heads")
    errors = [side.var(ddof=1) / len(side) for side in sides]
    freedom = sum(errors) ** 2 / sum(error**2 / (len(side) - 1) for error, side in zip(errors, sides, strict=True))
    half = student_quantile(freedom) * math.sqrt(sum(errors))
    return Measured(gap, gap - half, gap + half, len(fates), "heads")


def student_quantile(freedom: float) -> float:
    """How many standard errors a two-sided 95% interval reaches, by Student's t with so many degrees of freedom, at least 1.

    With t = √ν tan θ the density is proportional to cos^(ν-1) θ, which is summed up over a fine grid.
    """
    angles = np.linspace(0, math.pi / 2, 100_001)
    density = np.cos(angles) ** (freedom - 1)
    below = np.concatenate([[0], np.cumsum(density[1:] + density[:-1])])
    return math.sqrt(freedom) * math.tan(np.interp(0.95 * below[-1], below, angles))
