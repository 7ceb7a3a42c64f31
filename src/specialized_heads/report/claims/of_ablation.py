"""Measures on ablation and on pruning in order of importance (Michel et al. 2019)."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import norm, pearsonr

from specialized_heads.report.claims.evidence import HEAD, Evidence, Measured, Unit, require
from specialized_heads.report.claims.inference import (
    DIFFERENCES,
    SHARES,
    by_seed,
    mean_of,
    proportion,
    same_sign,
    share,
)
from specialized_heads.report.claims.of_scores import require_near
from specialized_heads.report.data import with_ends
from specialized_heads.report.paper import SIGNIFICANT

NO_SINGLE = "single heads are not ablated here (ablation.single)"
NO_SYSTEMATIC = "heads are not removed in order of importance here (ablation.systematic)"
DELTA = with_ends("delta")
# The largest effect of a single encoder head in table 1 of Michel et al. is about half a BLEU, the
# median of the significant ones 0.28. On their set for BERT, their test sees effects above 1.35
# points of accuracy.
VISIBLE = 1.35
LARGEST_EFFECT = {"translation": 0.5, "classification": 1.5}
MEDIAN_EFFECT = {"translation": 0.28, "classification": 1.5}
# BLEU, less than three of the four losses in table 2; or points of accuracy, about the largest in
# table 3.
ALONE_EFFECT = 1.0
MOST_NOISE = 0.2  # range of a gain in speed over the rounds
MIN_BLEU = 1.0  # of a checkpoint; a share of less BLEU says nothing


def significant(evidence: Evidence) -> Measured:
    """The share of encoder heads whose removal alone changes the score at p < `SIGNIFICANT`, by the
    paired bootstrap.

    Only if an effect as large as the paper's largest could be seen; the evidence is thin unless one
    as large as the median of its significant effects could.
    """
    heads = _single(evidence.single, "without")
    heads = heads[heads["type"] == "encoder"]
    require(len(heads), NO_SINGLE)
    visible = _require_power(evidence, heads, LARGEST_EFFECT[evidence.of])
    note = (
        f"only effects above {visible:.2f} "
        f"{'BLEU' if evidence.of == 'translation' else 'points'} could be seen"
    )
    measured = share(heads["p_value"] < SIGNIFICANT, heads["seed"], of="heads", note=note)
    return replace(measured, sufficient=visible <= MEDIAN_EFFECT[evidence.of])


def gains(evidence: Evidence) -> Measured:
    """Of those encoder heads, the share whose removal raises the score."""
    heads = _single(evidence.single, "without")
    changed = heads[(heads["type"] == "encoder") & (heads["p_value"] < SIGNIFICANT)]
    require(len(changed), "no encoder head changes the score by itself")
    return share(changed["delta"] > 0, changed["seed"], of="heads")


def _require_power(evidence: Evidence, rows: pd.DataFrame, effect: float) -> float:
    """The smallest effect that could reach the level of significance, by the median standard error
    of the differences.

    Heads whose removal changes no output have no error and are left out of the median.

    Raises:
        NotTestable: it is larger than `effect`.
    """
    unit, output, key = "BLEU", "translation", "split.test"
    if evidence.of == "classification":
        unit, output, key = "points", "prediction", "source.test of made-up tasks"
        other = f"the paper gives accuracy, and this task is scored by {evidence.metric}"
        require(evidence.metric == "accuracy", other)
    errors = (rows["delta_high"] - rows["delta_low"]) / (2 * norm.ppf(0.975))  # from 95% intervals
    visible = norm.isf(SIGNIFICANT / 2) * errors[errors > 0].median()
    least = (
        f"no head changes a {output}"
        if np.isnan(visible)
        else f"only effects above {visible:.2f} {unit} could"
    )
    too_small = (
        f"an effect of {effect} {unit} could not reach p < {SIGNIFICANT} on this test set: "
        f"{least} ({key})"
    )
    require(visible <= effect, too_small)
    return float(visible)


def _single(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The rows of single heads, removed or left alone."""
    rows = table[table["what"] == what]
    require(len(rows), NO_SINGLE)
    return rows


def _best_alone(evidence: Evidence) -> pd.DataFrame:
    """The best head of each layer as the only one in it, with `heads`, the number that the layer
    has."""
    alone = _single(evidence.single, "alone")
    layers = alone.groupby(["seed", "type", "layer"])
    return alone.loc[layers["bleu"].idxmax()].assign(heads=layers.size().to_numpy())


def two_sets(evidence: Evidence) -> Measured:
    """Pearson's correlation of the effects of single heads on two sets, over all attention types.

    Effects that no test could tell from noise do not correlate, so that the sets must be large
    enough, as in `significant`.
    """
    heads = _single(evidence.single, "without")
    visible = _require_power(evidence, heads, LARGEST_EFFECT[evidence.of])
    first = heads.set_index(HEAD)["delta"]
    second = evidence.second[evidence.second["what"] == "without"].set_index(HEAD)["delta"]
    pairs = pd.concat([first, second], axis=1, keys=["first", "second"], join="inner")
    if evidence.of == "classification":
        require(len(pairs), "the task has no mismatched set")
    require(len(pairs), "single heads are not ablated on a second set")
    score = "BLEU" if evidence.of == "translation" else "the score"
    values, ends = {}, []
    for seed, same in pairs.groupby("seed"):
        known = len(same) >= 4 and (same.nunique() > 1).all()
        require(known, f"too few heads, or none of them changes {score}")
        correlation = pearsonr(same["first"], same["second"])
        values[seed] = correlation.statistic
        ends.append(correlation.confidence_interval())
    values, n = pd.Series(values), len(pairs) // len(values)
    note, within = by_seed(values, Unit.CORRELATION.text), tuple(np.mean(ends, axis=0))
    measured = mean_of(values, within=within, n=n, of="heads", note=note, bounds=DIFFERENCES)
    return replace(measured, sufficient=visible <= MEDIAN_EFFECT[evidence.of])


def faster(evidence: Evidence, *, batch: int) -> Measured:
    """The gain in speed without half of the heads, with this many sentences per batch.

    The interval is the range over rounds of one measurement.
    """
    rows = evidence.speed.dropna(subset="gain") if len(evidence.speed) else evidence.speed
    require(len(rows), "the speed of BERT is not measured here")
    rows = rows[rows["sentences"] == batch]
    require(len(rows), f"the speed of BERT is not measured with {batch} sentences per batch")
    row = rows.iloc[0]
    low, high = float(row["gain_low"]), float(row["gain_high"])
    steady = high - low <= MOST_NOISE
    note = f"interval: range over rounds; {row['device']}"
    return Measured(
        float(row["gain"]), low, high, batch, "sentences per batch", note, sufficient=steady
    )


def removed(evidence: Evidence, *, pruned: str, share: float, up_to: bool = False) -> Measured:
    """Relative change of BLEU without this share of the least important heads, of all types or of
    one.

    That of a classifier is relative to what it has learned: its score less that of the most
    frequent label. `up_to`: at the step that loses most, of all up to this share.
    """
    table = evidence.systematic
    table = table[(table["what"] == pruned) & table["update"].isna() & (table["heads"] > 0)]
    require(
        len(table), NO_SYSTEMATIC if evidence.systematic.empty else "the model has no such heads"
    )
    values = {}
    for seed, same in table.sort_values("removed").groupby("seed"):
        require_near(same["share"].to_numpy(), share)
        learned = same["bleu_full"] - (
            evidence.majority if evidence.of == "classification" else 0.0
        )
        points = (
            [*same["share"][same["share"].between(0, share, inclusive="neither")], share]
            if up_to
            else [share]
        )
        steps = np.column_stack(
            [np.interp(points, same["share"], same[column] / learned) for column in DELTA]
        )
        values[seed] = steps[steps[:, 0].argmin()]
    return _mean_change(pd.DataFrame(values, index=DELTA).T, int(table["sentences"].iloc[0]))


def _mean_change(changes: pd.DataFrame, sentences: int) -> Measured:
    """The mean over baselines of relative changes, each with its interval over sentences (`DELTA`).

    The best heads of a baseline and its sentences are not those of another, so that both vary
    between baselines.
    """
    values, *ends = (changes[column] for column in DELTA)
    within, note = tuple(end.mean() for end in ends), by_seed(values, Unit.SHARE.text)
    return mean_of(values, within=within, n=sentences, of="sentences", note=note)


def one_is_enough(evidence: Evidence) -> Measured:
    """The share of layers, of all types, that lose no BLEU at p < `SIGNIFICANT` with their best
    head alone.

    Losses of a classifier count if the paper's test could see them too: ours sees smaller ones.
    """
    best = _best_alone(evidence)
    best = best[best["heads"] > 1]
    require(len(best), "no layer has more than one head")
    _require_power(evidence, best, ALONE_EFFECT)
    lose = (best["p_value"] < SIGNIFICANT) & (best["delta"] < 0)
    note = "the best heads are chosen on the same test set"
    if evidence.of == "classification":
        note += f"; losses below {VISIBLE} points, which the paper's test could not see, do not "
        note += f"count: at p < {SIGNIFICANT} alone, {(~lose).sum()} of {len(best)} lose nothing"
        lose &= best["delta"] < -VISIBLE
    return share(~lose, best["seed"], of="layers", note=note)


def one_left(evidence: Evidence) -> Measured:
    """Relative change of BLEU with only the best head of the last layer of cross-attention."""
    last = _last_cross(_best_alone(evidence)).set_index("seed")
    changes = last[DELTA].div(last["bleu_full"], axis=0)
    return _mean_change(changes, int(last["sentences"].iloc[0]))


def largest_loss(evidence: Evidence) -> Measured:
    """The share of the baselines in which no layer of any type loses more with only its best
    head."""
    best = _best_alone(evidence)
    last = _last_cross(best).set_index("seed")["delta"]
    ranks = 1 + (best["delta"] < best["seed"].map(last)).groupby(best["seed"]).sum()
    places = ", ".join(map(str, ranks))
    note = f"rank by seed {places} of {best.groupby('seed').size().max()} layers"
    count, total = int((ranks == 1).sum()), len(ranks)
    return proportion(count, total, of="baselines", note=note, baselines=total)


def _last_cross(best: pd.DataFrame) -> pd.DataFrame:
    """Of the best heads of layers, those of the last layer of cross-attention, by baseline."""
    places = []
    for _, same in best.groupby("seed"):
        layer = same.loc[same["type"] != "encoder", "layer"].max()
        cross = same[same["type"] == "cross"]
        require(
            cross["layer"].max() == layer,
            "the last layer of the decoder has no cross-attention heads",
        )
        places.append(cross["layer"].idxmax())
    last = best.loc[places]
    single = "the last layer of cross-attention has one head, which is all of it"
    require(last["heads"].min() > 1, single)
    return last


def redundant(evidence: Evidence, *, kept: float, moment: int | None) -> pd.DataFrame | None:
    """By seed, the largest share of heads, removed at a moment of training, with which this share
    of BLEU is kept, and its interval: the largest ones with which the lower and the upper end of
    the interval of BLEU keep as much.

    None if BLEU is too low at that moment, or was not measured.
    """
    table = evidence.systematic
    at = table["update"].isna() if moment is None else table["update"].eq(moment).fillna(False)
    table = table[at & (table["what"] == "all") & (table["heads"] > 0)]
    if table.empty or table["bleu_full"].min() < MIN_BLEU:
        return None
    shares = {}
    for seed, same in table.sort_values("removed").groupby("seed"):
        # Up to the first step that loses too much: a lucky one beyond it does not count.
        left = 1 + same[DELTA].div(same["bleu_full"], axis=0)
        shares[seed] = [same.loc[(left[end] >= kept).cummin(), "share"].max() for end in DELTA]
    return pd.DataFrame(shares, index=with_ends("kept")).T.fillna(0.0)


def redundant_at_the_end(evidence: Evidence, *, kept: float) -> Measured:
    """The share of heads that the finished model can lose, in steps of pruning."""
    require(len(evidence.systematic), NO_SYSTEMATIC)
    evidence.require_trained()
    shares = redundant(evidence, kept=kept, moment=None)
    require(shares is not None, "the model has no heads")
    values, *ends = (shares[name] for name in with_ends("kept"))
    n, within = int(evidence.systematic["heads"].max()), tuple(end.mean() for end in ends)
    note = by_seed(values, Unit.SHARE.text)
    return mean_of(values, within=within, n=n, of="heads", note=note, bounds=SHARES)


def more_redundant_than_early(evidence: Evidence, *, kept: float) -> Measured:
    """How much larger that share is at the end than at the first moment at which the model
    translates at all."""
    require(len(evidence.systematic), NO_SYSTEMATIC)
    end = redundant(evidence, kept=kept, moment=None)
    last = evidence.baselines()["updates"].max()
    moments = sorted(
        moment for moment in evidence.systematic["update"].dropna().unique() if moment < last
    )
    require(moments, "heads are removed at the end of training only (ablation.moments)")
    early = [
        shares
        for moment in moments
        if (shares := redundant(evidence, kept=kept, moment=moment)) is not None
    ]
    known = end is not None and early
    require(
        known,
        "the model does not yet translate at any earlier moment of training (ablation.moments)",
    )
    gains = (end["kept"] - early[0]["kept"]).dropna()
    return mean_of(gains, note=same_sign(gains))
