"""What claims measure on ablation and on pruning in order of importance (Michel et al. 2019)."""

from math import nan

import numpy as np
import pandas as pd

from specialized_heads.report.ablation_sets import correlation
from specialized_heads.report.claims.claim import Measured, Untestable, proportion
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.claims.of_scores import TOO_LOW, Measure, too_far_apart
from specialized_heads.report.moments import LEAST_BLEU
from specialized_heads.report.runs import SIGNIFICANT

NO_SINGLE = "single heads are not ablated here (ablation.single)"
NO_SYSTEMATIC = "heads are not removed in order of importance here (ablation.systematic)"
DELTA = ["delta", "delta_low", "delta_high"]


def significant(evidence: Evidence) -> Measured | Untestable:
    """The share of encoder heads whose removal alone changes BLEU."""
    single = evidence.single
    heads = single[(single["what"] == "without") & (single["type"] == "encoder")]
    if heads.empty:
        return Untestable(NO_SINGLE)
    if evidence.too_low():
        return Untestable(TOO_LOW)
    return proportion(int((heads["p_value"] < SIGNIFICANT).sum()), len(heads), of="heads")


def two_sets(evidence: Evidence) -> Measured | Untestable:
    """Pearson's correlation of what single heads are worth on two sets, of all attention types."""
    keys = ["seed", "type", "layer", "head"]
    tables = [
        table[table["what"] == "without"].set_index(keys)["delta"] for table in (evidence.single, evidence.second)
    ]
    pairs = pd.concat(tables, axis=1, keys=["first", "second"], join="inner")
    if pairs.empty:
        return Untestable(NO_SINGLE if tables[0].empty else "there is no second set (ablation.second)")
    found = [correlation(same["first"].to_numpy(), same["second"].to_numpy()) for _, same in pairs.groupby("seed")]
    means = pd.DataFrame(found)[["pearson", "pearson_low", "pearson_high"]].mean()
    if means.isna().any():
        return Untestable("too few heads, or none of them changes BLEU")
    return Measured(*means, len(pairs) // len(found), "heads")


def removed(pruned: str, share: float) -> Measure:
    """BLEU minus the whole model's, as a share of it, without the least important heads of all types or of one."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        table = evidence.systematic
        table = table[(table["pruned"] == pruned) & table["moment"].isna() & (table["heads"] > 0)]
        if table.empty:
            return Untestable(NO_SYSTEMATIC if evidence.systematic.empty else "the model has no such heads")
        if evidence.too_low():
            return Untestable(TOO_LOW)
        found = []
        for _, same in table.sort_values("removed").groupby("seed"):
            if (reason := too_far_apart(same["share"].to_numpy(), share)) is not None:
                return Untestable(reason)
            values = [np.interp(share, same["share"], same[column] / same["bleu_full"]) for column in DELTA]
            found.append(values)
        return Measured(*np.mean(found, axis=0), int(table["sentences"].iloc[0]), "sentences")

    return measure


def one_left(*, rank: bool) -> Measure:
    """BLEU with the best head alone in the last layer of cross-attention, minus the whole model's, as a share of it; or the
    rank of that layer among all layers of all types, 1 being the largest loss."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        alone = evidence.single[evidence.single["what"] == "alone"]
        if alone.empty:
            return Untestable(NO_SINGLE)
        if evidence.too_low():
            return Untestable(TOO_LOW)
        heads_of = alone.groupby(["seed", "type", "layer"]).size()
        best = alone.loc[alone.groupby(["seed", "type", "layer"])["bleu"].idxmax()]
        found = []
        for _, same in best.groupby("seed"):
            cross = same[same["type"] == "cross"]
            if cross.empty or cross["layer"].max() < same["layer"].max():
                return Untestable("the last layer has no cross-attention heads")
            last = cross.loc[cross["layer"].idxmax()]
            if heads_of[(same["seed"].iloc[0], "cross", last["layer"])] == 1:
                return Untestable("the last layer of cross-attention has one head, which is all of it")
            shares = (last[DELTA] / last["bleu_full"]).tolist()
            found.append([1 + (same["delta"] < last["delta"]).sum(), nan, nan] if rank else shares)
        value, low, high = np.mean(np.array(found, dtype=float), axis=0)
        if rank:
            return Measured(value, n=best.groupby("seed").size().max(), of="layers")
        return Measured(value, low, high, int(alone["sentences"].iloc[0]), "sentences")

    return measure


def redundant(evidence: Evidence, *, kept: float, moment: int | None) -> float | None:
    """The largest share of heads that can be removed at a moment of training with so much BLEU kept; mean over seeds.

    Returns:
        the share, from 0 to 1; None where the model of that moment has too low a BLEU, or was not measured.
    """
    table = evidence.systematic
    at = table["moment"].isna() if moment is None else table["moment"].eq(moment).fillna(False)
    table = table[at & (table["pruned"] == "all") & (table["heads"] > 0)]
    if table.empty or table["bleu_full"].min() < LEAST_BLEU:
        return None
    shares = []
    for _, same in table.sort_values("removed").groupby("seed"):
        # Up to the first step that loses too much: a lucky one beyond it does not count.
        enough = (same["bleu"] / same["bleu_full"] >= kept).cummin()
        shares.append(same.loc[enough, "share"].max())
    return float(np.mean(shares))


def redundant_at_the_end(kept: float) -> Measure:
    """The share of heads that the finished model can lose."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        if evidence.systematic.empty:
            return Untestable(NO_SYSTEMATIC)
        if evidence.too_low():
            return Untestable(TOO_LOW)
        if (share := redundant(evidence, kept=kept, moment=None)) is None:
            return Untestable("the model has no heads")
        return Measured(share, n=int(evidence.systematic["heads"].max()), of="heads")

    return measure


def more_redundant_than_early(kept: float) -> Measure:
    """How much larger that share is at the end than at the first moment whose model translates at all."""

    def measure(evidence: Evidence) -> Measured | Untestable:
        end = redundant(evidence, kept=kept, moment=None)
        last = evidence.baselines()["updates"].max()
        moments = sorted(moment for moment in evidence.systematic["moment"].dropna().unique() if moment < last)
        early = [share for moment in moments if (share := redundant(evidence, kept=kept, moment=moment)) is not None]
        if end is None or not early:
            return Untestable("no earlier moment of training with a translation to speak of (ablation.moments)")
        if evidence.too_low():
            return Untestable(TOO_LOW)
        return Measured(end - early[0], n=int(evidence.systematic["heads"].max()), of="heads")

    return measure
