"""How well a head's label and scores before pruning predict its survival: the paper's claim as a number (section 6.2.2).

The paper finds that specialised heads are pruned last. Here this is the area under the ROC curve: the probability that a head
that survives has a higher score than one that is pruned, ties counting one half; 0.5 is chance. Only heads of the same attention
type, model and seed are compared. "along the sweep" compares heads by the number of models of the scope in which they survive,
which uses all targets at once. With few heads on one side, bootstrap intervals are far too narrow, and scipy and scikit-learn
have no others, so these are Newcombe's (2006, method 5). The score "layer" shows what depth alone would predict.
"""

from collections.abc import Sequence
from math import nan
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from specialized_heads.heads.functions import OF_TOKENS
from specialized_heads.model.architecture import KINDS
from specialized_heads.pruning.scopes import SCOPES
from specialized_heads.report import style
from specialized_heads.report.data import Tables
from specialized_heads.report.voita.sweep import NO_PRUNED, label

PERMUTATIONS = 1999
NORMAL = stats.norm.ppf(0.975)  # standard deviations on each side that hold 95% of a normal distribution
AREAS = np.linspace(0.0, 1.0, 2001)  # at which intervals are evaluated
SWEEP = "along the sweep"
# Name of a score -> how to compute it from the table of heads; a higher score should predict survival.
SCORES = {
    "specialised": lambda heads: heads["functions"].map(len).astype(bool).astype(float),
    "relevance": lambda heads: heads["relevance"],
    "confidence": lambda heads: heads["confidence"],
    "low entropy": lambda heads: -heads["entropy"],
    "positional share": lambda heads: heads["positional_share"],
    "syntactic margin": lambda heads: heads.filter(regex="_margin$").max(axis=1),
    **{function.measure: itemgetter(function.score) for function in OF_TOKENS},
    "layer": lambda heads: heads["layer"],
}
ENCODER_ONLY = ("syntactic margin", *(function.measure for function in OF_TOKENS))
HEAD = ["type", "layer", "head"]
COLUMNS = [
    "corpus", "scope", "target", "lam", "target_heads", "type", "score", "seeds", "heads", "survivors", "labelled",
    "auc", "low", "high", "p_value",
]  # fmt: skip
AREA = COLUMNS[-4:]
CAPTION = (
    "Survival of heads under pruning: area under the ROC curve of a score of the unpruned model that separates surviving heads "
    "from removed ones (Newcombe's 95% interval; p: two-sided, by permutation, not corrected for the number of scores and "
    "models). 0.5 is chance; below it, lower scores survive. With a single head on one side there is no interval. specialised: "
    "whether the head has a function; layer: its layer, for reference, because scores differ by depth. The last row of a block "
    "compares heads by the number of models in which they survive, without an interval."
)


def concordance(
    scores: Sequence[np.ndarray], outcomes: Sequence[np.ndarray], *, seed: int = 0
) -> tuple[float, float, float, float]:
    """The probability that of two heads with different outcomes the one with the higher outcome has the higher score.

    With outcomes 0 and 1 this is the area under the ROC curve. `scores` and `outcomes` are those of the heads of each stratum;
    only heads of the same stratum are compared. `seed`: of the permutations.

    Returns:
        the probability, its 95% interval, and the two-sided p-value of 0.5 over permutations of the outcomes within strata.
        All NaN where no two heads of a stratum have different outcomes. The interval is NaN where a single head is on one side
        of every comparison, and for outcomes other than 0 and 1.
    """
    random = np.random.default_rng(seed)
    wins, pairs = np.zeros(PERMUTATIONS + 1), 0
    sides = []
    for score, outcome in zip(scores, outcomes, strict=True):
        sides.append((int((outcome == 1).sum()), int((outcome == 0).sum())))
        better = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
        pairs += int((outcome[:, None] > outcome[None, :]).sum())
        fates = np.tile(np.asarray(outcome, dtype=float), (PERMUTATIONS + 1, 1))
        fates[1:] = random.permuted(fates[1:], axis=1)  # the first is the sample itself
        for head in range(len(score)):  # comparisons that each head wins
            wins += (fates[:, head, None] > fates) @ better[head]
    if not pairs:
        return nan, nan, nan, nan
    areas = wins / pairs
    away = np.abs(areas - 0.5)
    p_value = float((away >= away[0] - 1e-12).mean())
    binary = set(np.concatenate(outcomes)) <= {0, 1}
    low, high = newcombe(areas[0], sides) if binary else (nan, nan)
    return float(areas[0]), low, high, p_value


def newcombe(area: float, sides: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The 95% interval of an area under the ROC curve (Newcombe 2006, Statistics in Medicine 25, method 5).

    It holds the areas θ from which `area`, measured over all strata, is at most 1.96 standard deviations away, by Hanley and
    McNeil's variance at θ with the mean of the two sample sizes in its last term. Strata share one θ and are weighted by their
    numbers of pairs. Both ends are NaN where one side has a single head in all strata. `sides`: survivors and others of each.
    """
    sides = [(m, n) for m, n in sides if m * n]  # the others compare nothing
    if not sides or min(map(sum, zip(*sides))) < 2:
        return nan, nan
    pairs = sum(m * n for m, n in sides)
    variance = np.zeros_like(AREAS)
    for m, n in sides:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - AREAS) / (2 - AREAS) + AREAS / (1 + AREAS))
        variance += m * n / pairs**2 * AREAS * (1 - AREAS) * spread
    inside = AREAS[np.abs(AREAS - area) <= NORMAL * np.sqrt(variance) + AREAS[1] / 2]
    return float(inside[0]), float(inside[-1])


def numbers(tables: Tables) -> pd.DataFrame:
    """Areas under the curve, from the heads of the baseline of each seed and those left in each pruned model.

    Of the first corpus that is pruned. One row per scope, target (of pruning, and `SWEEP`), attention type that the scope prunes
    and score; heads: compared, over all seeds; labelled: of these, heads with a function. An area is missing where all heads
    survive, or none, or where all have the same score.
    """
    corpus = tables.swept("encoder", "all")
    heads, models = tables.analysed(corpus, "baseline", "pruned"), tables.of(corpus).models
    baselines = dict(list(heads[heads["kind"] == "baseline"].groupby("seed", sort=False)))
    rows = []
    for scope, kinds in SCOPES.items():
        pruned = models[(models["kind"] == "pruned") & (models["scope"] == scope)].assign(
            target=lambda rows: [label(*target) for target in zip(rows["lam"], rows["target_heads"])]
        )
        left = heads[(heads["kind"] == "pruned") & (heads["scope"] == scope)]
        sizes = pruned[[f"{kind}_heads" for kind in KINDS]].sum(axis=1).groupby(pruned["target"]).sum()
        # From the most heads to the fewest.
        targets = sorted(pruned["target"].unique(), key=lambda target: -sizes[target])
        for kind in kinds:
            for target in [*targets, *([SWEEP] if targets else [])]:
                own = pruned if target == SWEEP else pruned[pruned["target"] == target]
                of = (
                    dict.fromkeys(("lam", "target_heads"), nan)
                    if target == SWEEP
                    else own.iloc[0][["lam", "target_heads"]].to_dict()
                )
                shared = {"corpus": corpus, "scope": scope, "target": target, "type": kind} | of
                kept = left.merge(own[["lam", "target_heads", "seed"]], on=["lam", "target_heads", "seed"])
                counts = kept.groupby(["seed", *HEAD]).size()
                strata, outcomes = [], []
                for seed in own["seed"].unique():
                    strata.append(table := baselines[seed][baselines[seed]["type"] == kind])
                    names = pd.MultiIndex.from_frame(table.assign(seed=seed)[["seed", *HEAD]])
                    outcomes.append(counts.reindex(names, fill_value=0).to_numpy(float))
                rows += _areas(strata, outcomes, shared)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"survivors": "Int64"})


def _areas(
    strata: list[pd.DataFrame], outcomes: list[np.ndarray], shared: dict[str, object]
) -> list[dict[str, object]]:
    """One row per score, of the heads of one type by seed, with the number of models in which each is left."""
    shared = shared | {"seeds": len(strata), "heads": sum(map(len, strata))}
    shared["survivors"] = None if shared["target"] == SWEEP else int(sum(outcome.sum() for outcome in outcomes))
    shared["labelled"] = int(sum(SCORES["specialised"](table).sum() for table in strata))
    rows = []
    for score, of in SCORES.items():
        if score in ENCODER_ONLY and shared["type"] != "encoder":
            continue
        values = [of(table).to_numpy(dtype=float) for table in strata]
        area = [nan, nan, nan, nan]
        if not np.isnan(together := np.concatenate(values)).any() and len(np.unique(together)) > 1:
            area = list(concordance(values, outcomes))
        if shared["target"] == SWEEP:  # of a single target the outcomes are 0 and 1 as well
            area[1:3] = nan, nan
        rows.append(shared | {"score": score} | dict(zip(AREA, area, strict=True)))
    return rows


def draw(rows: pd.DataFrame) -> Figure:
    """Draw one panel per scope and attention type: the scores along the targets, and the whole sweep at the right."""
    if rows.empty:
        return style.message_figure(f"Survival of heads: {NO_PRUNED}", width=style.DOUBLE)
    groups = list(rows.groupby(["scope", "type"], sort=False))
    beside = 2 if rows["target"].nunique() <= 8 else 1
    drawn, grid, panels = style.panels(len(groups), across=beside, height=2.0, more_height=0.95, sharey=True)
    headline = f"{rows['corpus'].iloc[0]}: does a score before pruning tell which heads survive?"
    drawn.suptitle(style.wrap(headline, inches=style.DOUBLE, size=8))
    for axes, ((scope, kind), same) in zip(panels, groups):
        _panel(axes, same, scope=scope, kind=kind)
    for axes in grid[:, 0]:
        axes.set_ylabel("AUC")
    known = set(rows.loc[rows["auc"].notna(), "score"])
    handles = {score: panels[0].plot([], [], **_look(score))[0] for score in SCORES if score in known}
    drawn.legend(handles.values(), handles, loc="outside lower center", ncols=4)
    return drawn


def _look(score: str) -> dict[str, object]:
    number = list(SCORES).index(score)
    if score == "layer":
        return {"color": "#999999", "marker": "x", "linestyle": ":", "markersize": 3.5, "linewidth": 0.9}
    look = style.Series("#000000", "*", "-") if score == "specialised" else style.series(number - 1)
    return {"color": look.colour, "marker": look.marker, "linestyle": look.line, "markersize": 3.5, "linewidth": 0.9}


def _panel(axes: Axes, rows: pd.DataFrame, *, scope: str, kind: str) -> None:
    targets = list(rows["target"].unique())
    axes.axhline(0.5, **style.REFERENCE)
    axes.axvline(len(targets) - 1.5, color="#CCCCCC", linewidth=0.6)
    scores = style.by(rows, "score")
    known = {score: same.reset_index(drop=True) for score, same in scores.items() if same["auc"].notna().any()}
    for number, (score, same) in enumerate(known.items()):
        x = same.index + 0.09 * (number - (len(known) - 1) / 2)
        look = _look(score)
        axes.vlines(x, same["low"], same["high"], color=look["color"], linewidth=0.7)
        axes.plot(x[:-1], same["auc"][:-1], **look)
        axes.plot(x[-1:], same["auc"][-1:], **look)
    if not known:
        axes.text(0.5, 0.6, "all heads survive, or none does", ha="center", transform=axes.transAxes)
    first = next(iter(scores.values()))
    counts = [f"{left}/{heads}" if pd.notna(left) else "all" for left, heads in zip(first["survivors"], first["heads"])]
    labels = [f"{target}\n{count}" for target, count in zip(targets, counts, strict=True)]
    labels[-1] = "whole\nsweep"
    step = -(-len(labels) // 16)
    ticks = [*range(0, len(labels) - 1, step), len(labels) - 1]
    axes.set_xticks(ticks, [labels[tick].replace(" ", "\n", 1) if len(labels) > 5 else labels[tick] for tick in ticks])
    axes.set(xlim=(-0.6, len(targets) - 0.4), ylim=(-0.04, 1.06))
    axes.grid(axis="y")
    note = f"({first['labelled'].iloc[0]} of {first['heads'].iloc[0]} heads have a function)"
    axes.set_title(f"{style.TYPES[kind][0]}, {style.SCOPES[scope]}\n{note}")


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per model and attention type, one column per score; a dash where an area is missing."""
    lines = []
    for (scope, kind, target), same in rows.groupby(["scope", "type", "target"], sort=False):
        first = same.iloc[0]
        survivors = "" if pd.isna(first["survivors"]) else f"{first['survivors']} of {first['heads']}"
        line = {"scope": style.SCOPES[scope], "type": kind, "model": target, "survivors": survivors}
        line["with a function"] = str(first["labelled"])
        lines.append(line | {row["score"]: _text(row) for row in same.to_dict("records")})
    columns = ["scope", "type", "model", "survivors", "with a function", *SCORES]
    return pd.DataFrame(lines, columns=columns).fillna("")


def _text(row: dict) -> str:
    if pd.isna(row["auc"]):
        return "–"
    interval = "" if pd.isna(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    p_value = "p < 0.001" if row["p_value"] < 0.001 else f"p {row['p_value']:.3f}"
    return f"{row['auc']:.2f}{interval}, {p_value}"


def caption(rows: pd.DataFrame) -> str:
    return f"{rows['corpus'].iloc[0]}. {CAPTION}" if len(rows) else CAPTION
