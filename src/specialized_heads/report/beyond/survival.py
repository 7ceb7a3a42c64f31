"""How well a head's label and scores before pruning predict its survival: the paper's claim as a number (section 6.2.2).

The paper finds that specialised heads are pruned last. Here this is the area under the ROC curve: the probability that a head
that survives has a higher score than one that is pruned, ties counting one half; 0.5 is chance. Only heads of the same attention
type, model and seed are compared. "along the sweep" compares heads by the number of models of the scope in which they survive,
which uses all targets at once. With few heads on one side, bootstrap intervals are far too narrow; these are Newcombe's (2006,
method 5), which invert a test of each possible area; scipy and scikit-learn have none. They need two outcomes, so the sweep has
no interval. P-values come from random permutations of the heads' survival within strata. The score "layer" is no property of a
head: it shows what depth alone would predict.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from specialized_heads.model.checkpoint import architecture_of
from specialized_heads.model.transformer import KINDS
from specialized_heads.report import experiment, style
from specialized_heads.report.inputs import HEAD_COLUMNS, one_per_file, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.report.voita.sweep import NO_PRUNED
from specialized_heads.stage import Section, UserError, arguments, run

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
    "rarest token": lambda heads: heads["rarest"],
    "layer": lambda heads: heads["layer"],
}
ENCODER_ONLY = ("syntactic margin", "rarest token")
COLUMNS = [
    "scope", "target", "lam", "asked", "type", "score", "seeds", "heads", "survivors", "labelled",
    "auc", "low", "high", "p_value",
]  # fmt: skip
AREA = COLUMNS[-4:]


class Settings(Section):
    """Names of the baselines and of the pruned models, each in the order of the files, and the corpus's title."""

    baselines: list[str]
    models: list[str]
    title: str


def concordance(
    scores: Sequence[np.ndarray], outcomes: Sequence[np.ndarray], *, seed: int = 0
) -> tuple[float, float, float, float]:
    """The probability that of two heads with different outcomes the one with the higher outcome has the higher score.

    With outcomes 0 and 1 this is the area under the ROC curve.

    Args:
        scores: of the heads of each stratum; only heads of the same stratum are compared.
        outcomes: of the same heads.
        seed: of the permutations.

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
        return math.nan, math.nan, math.nan, math.nan
    areas = wins / pairs
    away = np.abs(areas - 0.5)
    p_value = float((away >= away[0] - 1e-12).mean())
    binary = set(np.concatenate(outcomes)) <= {0, 1}
    low, high = newcombe(areas[0], sides) if binary else (math.nan, math.nan)
    return float(areas[0]), low, high, p_value


def newcombe(area: float, sides: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The 95% interval of an area under the ROC curve (Newcombe 2006, Statistics in Medicine 25, method 5).

    It holds the areas θ from which the measured one is at most 1.96 standard deviations away, by Hanley and McNeil's variance at
    θ with the mean of the two sample sizes in its last term. Strata share one θ and are weighted by their numbers of pairs.

    Args:
        area: measured, over all strata.
        sides: survivors m and others n of each stratum.

    Returns:
        lower and upper end; NaN where one side has a single head in all strata.
    """
    sides = [(m, n) for m, n in sides if m * n]  # the others compare nothing
    if not sides or min(map(sum, zip(*sides))) < 2:
        return math.nan, math.nan
    pairs = sum(m * n for m, n in sides)
    variance = np.zeros_like(AREAS)
    for m, n in sides:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - AREAS) / (2 - AREAS) + AREAS / (1 + AREAS))
        variance += m * n / pairs**2 * AREAS * (1 - AREAS) * spread
    inside = AREAS[np.abs(AREAS - area) <= NORMAL * np.sqrt(variance) + AREAS[1] / 2]
    return float(inside[0]), float(inside[-1])


def numbers(baselines: dict[str, pd.DataFrame], survivors: dict[str, dict[str, list[tuple[int, int]]]]) -> pd.DataFrame:
    """Areas under the curve.

    Args:
        baselines: per-head table by name, one per seed: `baseline/seed1`.
        survivors: by name of the pruned model and attention type, (layer, head) of the heads that are left, from 1.

    Returns:
        one row per scope, target (of pruning, and `SWEEP`), attention type that the scope prunes and score: scope, target, lam,
        asked, type, score, seeds (how many), heads (compared, over all seeds), survivors (of them; missing for the sweep),
        labelled (heads with a function, of them), auc, low, high (missing for the sweep, too), p_value (missing where all heads
        survive, or none; for `specialised` also where no head has a function, or all have one).
    """
    tables = {experiment.of_gates(name).seed: table for name, table in baselines.items()}
    models = {name: experiment.of_gates(name) for name in survivors}
    if missing := {model.seed for model in models.values()} - set(tables):
        raise UserError(f"settings: baselines: there is no baseline of seed {min(missing)}; add it")
    rows = []
    for scope in experiment.SCOPES:
        targets: dict[str, list[str]] = {}
        for name, model in models.items():
            if model.scope == scope:
                targets.setdefault(experiment.label(model.lam, model.asked), []).append(name)
        # From the most heads to the fewest.
        left = {name: sum(map(len, heads.values())) for name, heads in survivors.items()}
        order = sorted(targets, key=lambda target: -sum(left[name] for name in targets[target]))
        sweep = [name for target in order for name in targets[target]]
        for kind in ("encoder",) if scope == "encoder" else KINDS:
            heads = {seed: table[table["type"] == kind] for seed, table in tables.items()}
            for target in order:
                first = models[targets[target][0]]
                shared = {"scope": scope, "target": target, "lam": first.lam, "asked": first.asked, "type": kind}
                rows += _areas(heads, targets[target], models, survivors, shared)
            if order:
                rows += _areas(heads, sweep, models, survivors, {"scope": scope, "target": SWEEP, "type": kind})
    return pd.DataFrame(rows, columns=COLUMNS).astype({"survivors": "Int64"})


def _areas(
    heads: dict[int, pd.DataFrame],
    names: list[str],
    models: dict[str, experiment.Model],
    survivors: dict[str, dict[str, list[tuple[int, int]]]],
    shared: dict[str, object],
) -> list[dict[str, object]]:
    """One row per score: heads of one type by seed, and in how many of the named models of that seed each is left."""
    strata, outcomes = [], []
    for seed, table in heads.items():
        kept = [set(survivors[name][shared["type"]]) for name in names if models[name].seed == seed]
        if kept:
            keys = zip(table["layer"], table["head"], strict=True)
            strata.append(table)
            outcomes.append(np.array([sum(key in heads_left for heads_left in kept) for key in keys], dtype=float))
    shared = shared | {"seeds": len(strata), "heads": sum(map(len, strata))}
    shared["survivors"] = None if shared["target"] == SWEEP else int(sum(outcome.sum() for outcome in outcomes))
    shared["labelled"] = int(sum(SCORES["specialised"](table).sum() for table in strata))
    return [
        shared | {"score": score} | _area([of(table) for table in strata], outcomes, sweep=shared["target"] == SWEEP)
        for score, of in SCORES.items()
        if score not in ENCODER_ONLY or shared["type"] == "encoder"
    ]


def _area(scores: list[pd.Series], outcomes: list[np.ndarray], *, sweep: bool) -> dict[str, float]:
    """One area; missing where the score is missing for a head, or the same for all."""
    values = [score.to_numpy(dtype=float) for score in scores]
    together = np.concatenate(values) if values else np.zeros(0)
    if np.isnan(together).any() or len(np.unique(together)) < 2:
        return dict.fromkeys(AREA, math.nan)
    auc, low, high, p_value = concordance(values, outcomes)
    if sweep:  # of a single target the outcomes are 0 and 1 as well
        low = high = math.nan
    return dict(zip(AREA, (auc, low, high, p_value), strict=True))


def draw(rows: pd.DataFrame, *, title: str) -> Figure:
    """Draw one panel per scope and attention type: the scores along the targets, and the whole sweep at the right."""
    if rows.empty:
        return style.message_figure(f"Survival of heads: {NO_PRUNED}", width=style.DOUBLE)
    groups = list(rows.groupby(["scope", "type"], sort=False))
    beside = 2 if rows["target"].nunique() <= 8 else 1
    drawn, grid, panels = style.panels(len(groups), across=beside, height=2.0, more_height=0.95, sharey=True)
    headline = f"{title}: does a score before pruning tell which heads survive?"
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
    axes.set_title(f"{style.TYPES[kind][0]}, {experiment.SCOPES[scope]}\n{note}")


def left_heads(path: Path) -> dict[str, list[tuple[int, int]]]:
    """(layer, head), from 1, of the heads that a model has, by attention type, from the description beside its weights."""
    architecture = architecture_of(path)
    return {
        kind: [(layer, head + 1) for layer, heads in enumerate(getattr(architecture, kind), start=1) for head in heads]
        for kind in KINDS
    }


def read_inputs(args: object, settings: Settings) -> pd.DataFrame:
    """The numbers, from the command line of the figure or of the table."""
    one_per_file("models", settings.models, args.models)
    columns = (*HEAD_COLUMNS, "entropy", "positional_share", "rarest")
    baselines = read_all(args.heads, settings.baselines, columns=columns)
    survivors = {name: left_heads(path) for name, path in zip(settings.models, args.models, strict=True)}
    return numbers(baselines, survivors)


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads", "models"])
    settings = Settings.model_validate(args.settings)
    rows = read_inputs(args, settings)
    save_figure(args.output, rows, lambda: draw(rows, title=settings.title))


if __name__ == "__main__":
    run(main)
