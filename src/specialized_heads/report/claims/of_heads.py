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
    """The share of the baseline's functions that the smallest encoder-pruned model with this share of heads still has."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        found = []
        for model, own, before in evidence.survivors("encoder"):
            share = len(own) / max(len(before), 1)
            had = {name for names in before["functions"] for name in names}
            has = {name for names in own["functions"] for name in names}
            if left <= share < 1 and had:
                found.append((model["seed"], share, len(had & has) / len(had), len(had)))
        if not found:
            return Untestable(f"the baseline has no function, or no pruned model {left:.0%} or more of its heads")
        models = pd.DataFrame(found, columns=["seed", "share", "kept", "functions"])
        smallest = models.sort_values("share").groupby("seed").first()
        return Measured(smallest["kept"].mean(), n=int(smallest["functions"].min()), of="functions")

    return measure


def specialised_last(evidence: Evidence) -> Measured | Untestable:
    """How much oftener heads with a function survive encoder pruning than heads without: difference of shares.

    The interval takes heads as independent (of two binomial shares); models share them, so n counts heads once per model.
    """
    counts = np.zeros((2, 2))  # with a function or without; all, and those that survive
    for _, own, before in evidence.survivors("encoder"):
        if 0 < len(own) < len(before):
            left = set(zip(own["layer"], own["head"], strict=True))
            for head in before.itertuples():
                counts[int(len(head.functions) == 0)] += 1, (head.layer, head.head) in left
    if not counts[:, 0].all():
        return Untestable("no head of the baseline has a function, or no model has lost some of its heads")
    with_function, without = counts[:, 1] / counts[:, 0]
    variance = sum(share * (1 - share) / n for share, n in zip((with_function, without), counts[:, 0], strict=True))
    gap, half = with_function - without, 1.959964 * math.sqrt(variance)
    return Measured(gap, gap - half, gap + half, int(counts[:, 0].sum()), "heads")
