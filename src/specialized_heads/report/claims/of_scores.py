"""Measures on scores and gates: BLEU of baselines, BLEU at a share of heads left, and how decided
the gates are.

A measure takes the evidence of a corpus and returns a number, or raises `NotTestable`.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from specialized_heads.experiment.names import CONTINUED
from specialized_heads.model.architecture import SCOPES
from specialized_heads.report.claims.evidence import (
    MODEL,
    Evidence,
    Measured,
    NotTestable,
    Unit,
    require,
)
from specialized_heads.report.claims.inference import SHARES, Interval, each, mean_of, note_of
from specialized_heads.report.data import (
    COUNTERPART,
    SAMPLES,
    TOTALS,
    has_samples,
    is_decided,
    mean_of_samples,
    with_ends,
)

WIDEST = 0.5  # of the heads: between models further apart, a straight line is a guess
BESIDE = 0.05  # of the heads: a model within this share stands for it
ROUNDING = 1e-9
MIN_DRAWS = 50  # that a gate sees before it closes; with fewer, its rate decides and not the loss
CLOSED = 0.1  # P(open) of a closed gate
ALIKE = 0.05  # of the heads: two models within this difference have about as many heads


def baseline_bleu(evidence: Evidence, *, data: str) -> Measured:
    """BLEU of the baseline, computed as in the paper, if the data are the paper's:
    `Evidence.stands_for`."""
    require(evidence.stands_for == data, "scores can only be compared on the same data")
    baselines = evidence.baselines()
    value, low, high = baselines[with_ends("bleu_tokenised")].mean()
    return mean_of(
        baselines["bleu_tokenised"],
        within=(low, high),
        n=int(baselines["sentences"].iloc[0]),
        of="sentences",
    )


def loss(
    evidence: Evidence,
    *,
    data: str,
    scope: str,
    heads: int,
    of: int,
    change: float,
    beside: str = "",
) -> Measured:
    """BLEU minus that of λ 0 with as large a share of the heads left; the note has that from the
    baseline.

    Args:
        data: the paper's corpus; its other corpus has a value of its own.
        scope: of pruning.
        heads, of: left in the paper's model, of how many that can go.
        change: the paper's, in BLEU.
        beside: the claim about the paper's other corpus with nearly the same share of heads, which
            alone is judged on corpora that are neither.
    """
    require(evidence.stands_for in ("", data), "the paper gives this corpus a value of its own")
    require(evidence.stands_for or not beside, f"{beside} has nearly the same share of the heads")
    found = difference(evidence, scope=scope, left=heads / of)
    whole = difference(evidence, scope=scope, left=heads / of, column="difference")
    form = Unit.DIFFERENCE.text
    notes = [
        found.note,
        f"against the baseline {form(whole.value)} [{form(whole.low)}, {form(whole.high)}]",
    ]
    absent = {*evidence.pruned_models(scope)["seed"]} - {*evidence.compared(scope)["seed"]}
    notes += [f"seed {' and '.join(map(str, sorted(absent)))} has no model with λ 0"] * bool(absent)
    excluded = bool(change < found.low or change > found.high)
    notes += [f"the interval against λ 0 excludes the paper's {form(change)}"] * excluded
    return replace(found, note=note_of(*notes))


def difference(
    evidence: Evidence, *, scope: str, left: float, column: str = COUNTERPART[0]
) -> Measured:
    """BLEU minus that of a reference with a share of the heads left, interpolated
    (`Evidence.curve`).

    The interval over sentences of the mean over seeds is that of one bootstrap, in which each
    resample of sentences is the same for all seeds. Older tables do not have the resamples: there
    it is the mean of the seeds' intervals, which is at least as wide.
    """
    values, ends, drawn = {}, [], []
    curves = evidence.curve(scope, column=column)
    able, others = telling({seed: shares for seed, (shares, *_) in curves.items()}, left)
    for seed in able:
        shares, differences, resampled = curves[seed]
        values[seed], *interval = (np.interp(left, shares, series) for series in differences.T)
        ends.append(interval)
        drawn.append([np.interp(left, shares, series) for series in resampled.T])
    known = [interval for interval in ends if np.isfinite(interval).all()]
    within = tuple(np.mean(known, axis=0)) if known else (np.nan, np.nan)
    source = f"mean of the intervals of {len(known)} of {len(ends)} seeds"
    if all(len(samples) for samples in drawn):
        within = tuple(np.quantile(np.mean(drawn, axis=0), (0.025, 0.975)))
        source = "over sentences"
    by_seed = pd.Series(values, dtype=float)
    note = spread_note(by_seed, within, source=source) if len(by_seed) > 1 else ""
    note = note_of(note, others)
    sentences = int(evidence.scores["sentences"].iloc[0])
    return mean_of(by_seed, within=within, n=sentences, of="sentences", note=note)


def spread_note(by_seed: pd.Series, within: Interval, *, source: str = "over sentences") -> str:
    """The values of several seeds, and the interval over sentences, where that over baselines may
    have widened it."""
    form = Unit.DIFFERENCE.text
    interval = f"{source} [{', '.join(map(form, within))}]"
    return note_of(f"by seed {each(by_seed, form)}", interval * bool(np.isfinite(within).all()))


def telling(shares: Mapping[int, np.ndarray], share: float) -> tuple[list[int], str]:
    """The seeds whose models tell what holds with this share of the heads left, and a note why the
    others do not.

    `shares`: by seed, those of its pruned models, ascending, and 1 for the reference. It is
    `NotTestable` if no seed tells.
    """
    problems = {}
    for seed, own in shares.items():
        smallest, largest = own[0], own[-2:][0]
        of, instead = f" of seed {seed}" * (len(shares) > 1), f"of its heads left, not {share:.1%}"
        try:
            small_enough, large_enough = smallest <= share + BESIDE, largest >= share - BESIDE
            require(small_enough, f"the smallest model{of} has {smallest:.1%} {instead}")
            require(large_enough, f"the largest pruned model{of} has {largest:.1%} {instead}")
            require_near(own, share)
        except NotTestable as error:
            problems[seed] = str(error)
    able = [seed for seed in shares if seed not in problems]
    require(able, next(iter(problems.values()), ""))
    return able, "; ".join(problems.values())


def require_near(shares: np.ndarray, share: float) -> None:
    """Raise `NotTestable` if the models on both sides of this share of heads are too far apart to
    interpolate, and neither is close to it."""
    below = shares[shares <= share + ROUNDING].max(initial=0.0)
    above = shares[shares >= share - ROUNDING].min()
    too_far = (
        f"no model with decided gates between {below:.0%} and {above:.0%} of the heads, too "
        f"far from {share:.0%}"
    )
    near = min(share - below, above - share) <= BESIDE
    require(near or above - below <= WIDEST, too_far)


def better_than(evidence: Evidence, *, controls: list[str], scope: str) -> Measured:
    """Mean BLEU of pruned models minus that of controls from scratch with as many heads.

    A control whose schedule is not that of baseline and pruning together (`CONTINUED`) confounds
    heads with schedule. A control with gates counts only if these have decided. Pairs of another
    scope count only if there is none of `scope`.

    Args:
        controls: kinds of models, the first that the experiment has is compared.
    """
    scores = evidence.scores
    control = next((kind for kind in controls if (scores["kind"] == kind).any()), None)
    require(control, f"the experiment has no such models (kind {' or '.join(controls)})")
    rows = scores[scores["kind"] == control]
    seeds = set(rows["seed"])
    if CONTINUED.get(control, control) == "regularised":
        gated = scores[scores["kind"] == "regularised"]
        rows = rows.merge(gated.loc[is_decided(gated), MODEL], on=MODEL)
    pairs = evidence.pruned_models(*SCOPES).merge(rows, on=MODEL, suffixes=("", "_control"))
    whole = evidence.baselines()[TOTALS].sum(axis=1).iloc[0]
    left, left_control = (
        pairs[[f"{total}{end}" for total in TOTALS]].sum(axis=1) for end in ("", "_control")
    )
    pairs = pairs[(left < whole) & ((left - left_control).abs() <= ALIKE * whole)]
    require(
        len(pairs), f"no pruned model has about as many heads left as its control (kind {control})"
    )
    if scope in set(pairs["scope"]):
        pairs = pairs[pairs["scope"] == scope]
    needed = int(evidence.baselines()["updates"].iloc[0] + pairs["updates"].max())
    updates = int(pairs["updates_control"].min())
    compared = pairs.reindex(columns=[f"{name}_control" for name in COUNTERPART]).astype(float)
    said = "the scores do not compare models with their controls; score again"
    require(compared.notna().all(axis=None), said)
    gain, high, low = -compared.to_numpy().T
    pairs = pairs.assign(gain=gain, low=low, high=high)
    means = pairs.groupby("seed")[["gain", "low", "high"]].mean()
    low, high = means["low"].mean(), means["high"].mean()
    samples = f"{COUNTERPART[0]}{SAMPLES}_control"
    if has_samples(pairs, samples):
        by_seed = [mean_of_samples(same, samples) for _, same in pairs.groupby("seed")]
        low, high = np.quantile(-np.mean(by_seed, axis=0), (0.025, 0.975))
    within = float(low), float(high)
    notes = [f"scope {' and '.join(pairs['scope'].unique())}, {spread_note(means['gain'], within)}"]
    notes += [f"seed {seed} has no such pair" for seed in sorted(seeds - set(means.index))]
    matched = control in CONTINUED and updates == needed
    if not matched:
        decays = "two decays" if control in CONTINUED else "one decay"
        schedule = f"{updates:,} updates from scratch in {decays}"
        notes.append(f"{schedule}, {needed:,} of the pruned models in two")
    note = note_of(*notes)
    gained = mean_of(means["gain"], within=within, n=len(pairs), of="model pairs", note=note)
    return replace(gained, confounded=not matched)


def updates_until_closed(logs: pd.DataFrame) -> pd.Series:
    """For each pruned model, the update by which half of the gates that close have done so: P(open)
    below `CLOSED`."""
    medians = []
    for (scope, *_), records in logs.groupby(MODEL, dropna=False):
        columns = (
            records[[f"open_{kind}" for kind in SCOPES[scope]]]
            .dropna(axis="columns", how="all")
            .to_numpy()
        )
        gates = np.array(
            [np.concatenate([layer for layers in row for layer in layers]) for row in columns]
        )
        updates = records["update"].to_numpy()[(gates < CLOSED).argmax(axis=0)]
        medians.append(
            np.median(updates[gates[-1] < CLOSED]) if (gates[-1] < CLOSED).any() else np.nan
        )
    return pd.Series(medians, dtype=float)


def gates_decided(evidence: Evidence) -> Measured:
    """The share of gates that end closed or fully open with probability above 0.9, over the models
    pruned with a λ.

    Models pruned to a number of heads are left out: their gates are fixed during training.
    """
    models = evidence.all_pruned(*SCOPES)
    models = models[models["target_heads"].isna()]
    require(len(models), "all models are pruned to a number of heads, which fixes their gates")
    logs = (
        evidence.logs[evidence.logs["kind"] == "pruned"]
        if len(evidence.logs)
        else pd.DataFrame(columns=MODEL)
    )
    fastest = updates_until_closed(logs.merge(models[MODEL], on=MODEL)).min()
    forced = (
        f"half of the gates that close do so within {fastest:.0f} updates: their rate forces "
        f"them (gate_learning_rate)"
    )
    require(not fastest < MIN_DRAWS, forced)
    whole = evidence.baselines().iloc[0]
    heads = {
        scope: whole[[f"{kind}_heads" for kind in kinds]].sum() for scope, kinds in SCOPES.items()
    }
    models = models.assign(gates=models["scope"].map(heads))
    models["decided"] = models["gates_decided"] * models["gates"]
    sums = models.groupby("seed")[["decided", "gates"]].sum()
    note = f"{len(models)} model{'s' * (len(models) != 1)}"
    return mean_of(
        (sums["decided"] / sums["gates"]).round(9),
        n=int(sums["gates"].sum()),
        of="gates",
        note=note,
        bounds=SHARES,
    )
