"""What claims measure on scores: BLEU of baselines, BLEU along the heads left, and which types and layers keep theirs.

Every function makes a measure: a function from the evidence of a corpus to a number, or to the reason why there is none.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from specialized_heads.report.claims.claim import Measured, Untestable
from specialized_heads.report.claims.evidence import LEAST_BASELINE, TOTALS, Evidence, at_share

Measure = Callable[[Evidence], Measured | Untestable]

WIDEST = 0.5  # of the heads: where two models lie further apart, the straight line between them is a guess
ALIKE = 0.05  # of the heads: by how much two models may differ that are said to have as many
TOO_LOW = f"the baseline has less than {LEAST_BASELINE:.0f} BLEU"


def baseline_bleu(data: str) -> Measure:
    """BLEU of the baseline, as the paper computes it, where the data are the paper's: `Evidence.stands_for`."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        if evidence.stands_for != data:
            return Untestable("scores can be compared on the same data alone")
        baselines = evidence.baselines()
        means = baselines[[f"bleu_tokenised{end}" for end in ("", "_low", "_high")]].mean()
        return Measured(*means, int(baselines["sentences"].iloc[0]), "sentences")

    return measure


def difference(scope: str, left: float) -> Measure:
    """BLEU minus the baseline's with a share of the heads left."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        if evidence.gated(scope).empty:
            return Untestable(f"no model is pruned with scope {scope}")
        if evidence.too_low():
            return Untestable(TOO_LOW)
        found = []
        for shares, differences in evidence.curve(scope):
            if shares[0] > left:
                return Untestable(f"the smallest model has {shares[0]:.0%} of its heads left, not {left:.0%}")
            if (reason := too_far_apart(shares, left)) is not None:
                return Untestable(reason)
            found.append(at_share(shares, differences, left))
        return Measured(*np.mean(found, axis=0), int(evidence.scores["sentences"].iloc[0]), "sentences")

    return measure


def too_far_apart(shares: np.ndarray, share: float) -> str | None:
    """Why BLEU at this share of heads cannot be read between the models beside it; None where it can."""
    below, above = shares[shares <= share].max(), shares[shares >= share].min()
    if above - below <= WIDEST:
        return None
    return f"no model between {below:.0%} and {above:.0%} of the heads, too far from {share:.0%}"


def better_than(control: str) -> Measure:
    """BLEU of pruned models minus that of controls with as many heads, over all targets where heads were removed.

    The interval is that of the mean, with those of both models as if they were independent, which they are not: both are of
    the same sentences. It is too wide rather than too narrow.
    """

    def measure(evidence: Evidence) -> Measured | Untestable:
        scores, keys = evidence.scores, ["scope", "lam", "asked", "seed"]
        controls = scores[scores["kind"] == control]
        pairs = pd.concat([evidence.gated(scope) for scope in ("encoder", "all")]).merge(
            controls, on=keys, suffixes=("", "_control")
        )
        baselines = evidence.baselines()
        whole = baselines[TOTALS].sum(axis=1).iloc[0]
        left, left_control = (pairs[[f"{total}{end}" for total in TOTALS]].sum(axis=1) for end in ("", "_control"))
        pairs, alike = pairs[left < whole], (left - left_control).abs() <= ALIKE * whole
        if pairs.empty:
            return Untestable(f"the experiment has no such models (kind {control})")
        pairs = pairs[alike[pairs.index]]
        if pairs.empty:
            return Untestable(f"none of these models has about as many heads left as its control (kind {control})")
        if evidence.too_low():
            return Untestable(TOO_LOW)
        updates, full = int(pairs["updates_control"].min()), int(baselines["updates"].iloc[0])
        if updates < full:
            return Untestable(f"trained from scratch for {updates:,} updates, the baseline for {full:,}")
        gain = pairs["bleu"] - pairs["bleu_control"]
        halves = [(pairs[f"difference_high{end}"] - pairs[f"difference_low{end}"]) / 2 for end in ("", "_control")]
        half = float(np.hypot(*halves).mean())
        return Measured(gain.mean(), gain.mean() - half, gain.mean() + half, len(pairs), "pairs of models")

    return measure


def order(holds: Callable[[float, float, float], bool]) -> Measure:
    """The share of models, pruned in all types but not to nothing, whose shares of heads left (of each type) fulfil this.

    It has no interval, here and in `centre`: the models of one baseline, each pruned a bit more, are not drawn one by one.
    """

    def measure(evidence: Evidence) -> Measured | Untestable:
        whole = evidence.baselines()[TOTALS].iloc[0].to_numpy(float)
        shares = evidence.gated("all")[TOTALS].to_numpy(float) / whole
        partly = [row for row in shares if 0 < row.sum() < len(TOTALS)]
        if not partly:
            return Untestable("no model is pruned in all types to some of its heads")
        return Measured(np.mean([holds(*row) for row in partly]), n=len(partly), of="models")

    return measure


def centre(kind: str, *, low: bool) -> Measure:
    """The share of models, pruned in all types, whose heads left of a type lie in lower (or higher) layers than before."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        column = f"{kind}_heads"
        before = mean_layer(evidence.baselines()[column].iloc[0])
        whole = evidence.baselines()[f"{kind}_total"].iloc[0]
        if len(evidence.baselines()[column].iloc[0]) == 1:
            return Untestable("the model has one layer")
        pruned = evidence.gated("all")
        layers = [mean_layer(row) for row in pruned.loc[pruned[f"{kind}_total"].between(1, whole - 1), column]]
        if not layers:
            return Untestable(f"no model has lost some of its {kind} heads, and not all")
        return Measured(
            np.mean([layer < before if low else layer > before for layer in layers]), n=len(layers), of="models"
        )

    return measure


def mean_layer(heads: np.ndarray) -> float:
    """The mean layer, from 1, of these numbers of heads per layer."""
    return float(np.average(np.arange(1, len(heads) + 1), weights=heads))
