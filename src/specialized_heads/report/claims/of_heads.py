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


def positional_share(evidence: Evidence) -> Measured | Untestable:
    """The share of argmaxes of the most positional encoder head at its offset."""
    heads = evidence.baseline_heads().dropna(subset="positional_share")
    if heads.empty:
        return Untestable("the model has no encoder heads")
    best = heads.groupby("seed")["positional_share"].max().mean()
    ceiling = heads.loc[heads["positional_offset"] != 0, "positional_ceiling"].max()
    if best < evidence.positional_share and ceiling < evidence.positional_share:
        return Untestable(f"sentences are too short: no head beside the diagonal can have more than {ceiling:.1%}")
    return Measured(best, n=len(heads), of="heads")


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
            had = {name for names in before["functions"] for name in names}
            has = {name for names in own["functions"] for name in names}
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
    a part of what the others keep. The interval (Welch) is missing where either side has one head, or all heads one fate.
    """
    fates: dict[tuple[int, int, int], list[float]] = {}
    labelled: dict[tuple[int, int, int], bool] = {}
    for model, own, before in evidence.survivors("encoder"):
        if 0 < len(own) < len(before):
            left = set(zip(own["layer"], own["head"], strict=True))
            for head in before.itertuples():
                key = (model["seed"], head.layer, head.head)
                fates.setdefault(key, []).append((head.layer, head.head) in left)
                labelled[key] = len(head.functions) > 0
    sides = [np.array([np.mean(fates[key]) for key in fates if labelled[key] is side]) for side in (True, False)]
    if not all(map(len, sides)):
        return Untestable("no head of the baseline has a function, or no model has lost some of its heads")
    gap = sides[0].mean() - sides[1].mean()
    if min(map(len, sides)) < 2 or not all(side.var() for side in sides):
        return Measured(gap, n=len(fates), of="heads")
    half = 1.959964 * math.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    return Measured(gap, gap - half, gap + half, len(fates), "heads")
