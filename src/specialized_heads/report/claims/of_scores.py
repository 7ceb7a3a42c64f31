"""Measures on scores and gates: BLEU of baselines, BLEU at a share of heads left, and how decided the gates are.

A measure takes the evidence of a corpus and returns a number, or raises `NotTestable`.
"""

import numpy as np
import pandas as pd

from specialized_heads.pruning.scopes import SCOPES
from specialized_heads.report.claims.claim import Measured
from specialized_heads.report.claims.evidence import MODEL, TOTALS, Evidence, counterparts, require
from specialized_heads.report.data import with_ends

WIDEST = 0.5  # of the heads: between models further apart, a straight line is a guess
BESIDE = 0.05  # of the heads: a larger share than that of the largest pruned model is judged up to here
ROUNDING = 1e-9
MIN_DRAWS = 50  # that a gate sees before it closes; with fewer, its rate decides and not the loss
CLOSED = 0.1  # P(open) of a closed gate
ALIKE = 0.05  # of the heads: two models within this difference have about as many heads


def baseline_bleu(evidence: Evidence, *, data: str) -> Measured:
    """BLEU of the baseline, computed as in the paper, if the data are the paper's: `Evidence.stands_for`."""
    require(evidence.stands_for == data, "scores can only be compared on the same data")
    baselines = evidence.baselines()
    means = baselines[with_ends("bleu_tokenised")].mean()
    return Measured(*means, int(baselines["sentences"].iloc[0]), "sentences")


def difference(evidence: Evidence, *, scope: str, left: float) -> Measured:
    """BLEU minus that of the reference (`Evidence.compared`) with a share of the heads left."""
    curves, reference = evidence.curve(scope)
    values = []
    for seed, (shares, differences) in curves.items():
        smallest, largest = shares[0], shares[-2:][0]  # the last one is the reference
        of, instead = f" of seed {seed}" * (len(curves) > 1), f"of its heads left, not {left:.1%}"
        require(smallest <= left + ROUNDING, f"the smallest model{of} has {smallest:.1%} {instead}")
        require(largest >= left - BESIDE, f"the largest pruned model{of} has {largest:.1%} {instead}")
        require_near(shares, left)
        values.append([np.interp(left, shares, column) for column in differences.T])
    sentences = int(evidence.scores["sentences"].iloc[0])
    return Measured(*np.mean(values, axis=0), sentences, "sentences", reference)


def require_near(shares: np.ndarray, share: float) -> None:
    """Raise `NotTestable` if the models on both sides of this share of heads are too far apart to interpolate."""
    below, above = shares[shares <= share + ROUNDING].max(), shares[shares >= share - ROUNDING].min()
    too_far = f"no model with decided gates between {below:.0%} and {above:.0%} of the heads, too far from {share:.0%}"
    require(above - below <= WIDEST, too_far)


def better_than(evidence: Evidence, *, control: str, scope: str) -> Measured:
    """Mean BLEU of pruned models minus that of controls from scratch with as many heads.

    The controls need as many updates as the baseline, and those of pruning too unless the baseline is converged; controls with
    fewer count only if they are at least as good, since more updates could only widen their lead. Pairs of another scope count
    only if there is none of `scope`.
    """
    scores, baselines = evidence.scores, evidence.baselines()
    controls = scores[scores["kind"] == control]
    require(len(controls), f"the experiment has no such models (kind {control})")
    pairs = evidence.pruned_models(*SCOPES).merge(controls, on=MODEL, suffixes=("", "_control"))
    whole = baselines[TOTALS].sum(axis=1).iloc[0]
    left, left_control = (pairs[[f"{total}{end}" for total in TOTALS]].sum(axis=1) for end in ("", "_control"))
    pairs = pairs[(left < whole) & ((left - left_control).abs() <= ALIKE * whole)]
    require(len(pairs), f"no pruned model has about as many heads left as its control (kind {control})")
    if scope in set(pairs["scope"]):
        pairs = pairs[pairs["scope"] == scope]
    scopes = pairs["scope"].unique()
    needed = int(baselines["updates"].iloc[0])
    if not all(map(evidence.converged, scopes)):
        needed += int(pairs["updates"].max())  # what pruning trains on may be what gains
    updates = int(pairs["updates_control"].min())
    gain, high, low = -counterparts(pairs, end="_control").mean(axis=1)
    trained = f"trained from scratch for {updates:,} updates, the pruned models for {needed:,}"
    require(updates >= needed or gain <= 0, trained)
    note = f"scope {' and '.join(scopes)}" + ("" if updates >= needed else f"; {trained}")
    return Measured(gain, low, high, len(pairs), "model pairs", note)


def updates_until_closed(logs: pd.DataFrame) -> pd.Series:
    """For each pruned model, the update by which half of the gates that close have done so: P(open) below `CLOSED`."""
    medians = []
    for (scope, *_), records in logs.groupby(MODEL, dropna=False):
        columns = records[[f"open_{kind}" for kind in SCOPES[scope]]].dropna(axis="columns", how="all").to_numpy()
        gates = np.array([np.concatenate([layer for layers in row for layer in layers]) for row in columns])
        updates = records["update"].to_numpy()[(gates < CLOSED).argmax(axis=0)]
        medians.append(np.median(updates[gates[-1] < CLOSED]) if (gates[-1] < CLOSED).any() else np.nan)
    return pd.Series(medians, dtype=float)


def gates_decided(evidence: Evidence) -> Measured:
    """The share of gates that end closed or fully open with probability above 0.9, over all models pruned with a λ.

    Models pruned to a number of heads are left out: their gates are fixed during training.
    """
    models = evidence.all_pruned(*SCOPES)
    models = models[models["target_heads"].isna()]
    require(len(models), "all models are pruned to a number of heads, which fixes their gates")
    logs = evidence.logs[evidence.logs["kind"] == "pruned"] if len(evidence.logs) else pd.DataFrame(columns=MODEL)
    fastest = updates_until_closed(logs.merge(models[MODEL], on=MODEL)).min()
    forced = (
        f"half of the gates that close do so within {fastest:.0f} updates: their rate forces them (gate_learning_rate)"
    )
    require(not fastest < MIN_DRAWS, forced)
    whole = evidence.baselines().iloc[0]
    heads = {scope: whole[[f"{kind}_heads" for kind in kinds]].sum() for scope, kinds in SCOPES.items()}
    gates = models["scope"].map(heads)
    share = np.average(models["gates_decided"], weights=gates)
    note = f"{len(models)} model{'s' * (len(models) != 1)}"
    return Measured(round(float(share), 9), n=int(gates.sum()), of="gates", note=note)
