"""Pruned models along λ and along numbers of heads: how seeds are averaged, and how points, lines
and cells show it.

A target is what a model was pruned to: a λ, or a number of heads (`target_heads`). A point is the
mean over the seeds of one target, and its range reaches from the lowest to the highest seed. The
two kinds of target are two procedures, so a figure that has both draws two series, each starting at
the baseline. Tables show mean and standard deviation over seeds instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import nan

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.model.architecture import SCOPES
from specialized_heads.report import style
from specialized_heads.report.data import (
    INTERVAL,
    SAMPLES,
    TOTALS,
    is_decided,
    mean_interval,
    without_penalty,
)

NO_PRUNED = "no pruned models of this kind in this experiment"
TARGET = ["kind", "lam", "target_heads"]
ASKED = {"line": (0, (1, 3))}  # in the colour and with the marker of the series by λ
ASKED_LABEL = "pruned to a number of heads"
WEAKEST_FIRST = {"lam": True, "target_heads": False}  # for `in_order`: small λ, then many heads
# Columns that say which models a point of a figure shows.
POINT = ["corpus", "kind", "lam", "target_heads", "seeds", "seed"]
SMALLEST_SPAN = 2.0  # BLEU; on a shorter axis noise would look like an effect
SEED = "."  # marker of the lowest and the highest seed
UNDECIDED, UNDECIDED_LABEL = style.Series("#888888", "s", "none"), "gates not decided"
FILLED_BELOW = 0.05  # p of the difference of a filled marker from its reference, in every figure


def models(scores: pd.DataFrame, *, scope: str) -> pd.DataFrame:
    """Scores of the models pruned with a scope, and of their baselines; no rows where nothing was
    pruned with it.

    Three columns are new: all_heads (of all attention types, before pruning), pruned (how many of
    them are gone) and decided (whether the claims count the model, 0 or 1).
    """
    pruned = scores[(scores["kind"] == "pruned") & (scores["scope"] == scope)]
    rows = pd.concat(
        [scores[(scores["kind"] == "baseline") & scores["seed"].isin(pruned["seed"])], pruned]
    )
    totals = rows[TOTALS].sum(axis=1)
    decided = (rows["kind"] == "baseline") | is_decided(rows)
    return rows.assign(
        all_heads=totals.max(), pruned=totals.max() - totals, decided=decided.astype(float)
    )


def over_seeds(
    rows: pd.DataFrame,
    values: Sequence[str],
    keys: Sequence[str] = TARGET,
    *,
    sort: bool = True,
    p_values: str = "",
    first: Sequence[str] = (),
    intervals: bool = False,
) -> pd.DataFrame:
    """Average these values over seeds, from one row per seed and key.

    Args:
        rows, values, keys: the table, its columns to average, and those that tell points apart.
        sort: by the keys; otherwise in the order of the rows.
        p_values: the column of differences that `p_value` belongs to; "": no p-values.
        first: columns of which the first seed's value is kept.
        intervals: whether the column of `p_values` has the interval of the mean in place of
        the range (`data.mean_interval`).

    Returns:
        one row per key: the keys, seeds (how many), seed (which, if it is one), `first`, and each
        value's mean, standard deviation (`_sd`) and range, `_low` to `_high`; an interval that the
        rows have under these names replaces the range of a single seed. With `p_values`, p_value
        (`p_of_seeds`); with `intervals`, the range of that column is `_lowest` to `_highest`.
    """
    groups = rows.groupby(list(keys), dropna=False, sort=sort)
    seeds = groups.size()
    columns = {"seeds": seeds} | {name: groups[name].first() for name in first}
    if "seed" in rows:
        columns["seed"] = groups["seed"].first().astype(str).where(seeds == 1, "")
    for name in values:
        columns |= {name: groups[name].mean(), f"{name}_sd": groups[name].std()}
        for end, other in {
            f"{name}_low": groups[name].min(),
            f"{name}_high": groups[name].max(),
        }.items():
            own = groups[end].max().fillna(other) if end in rows else other
            columns[end] = other.where(seeds > 1, own)
    if intervals:
        ends = [mean_interval(same, p_values) for _, same in groups]
        columns |= {
            f"{p_values}{end}": values for end, values in zip(("_low", "_high"), np.transpose(ends))
        }
        columns |= {
            f"{p_values}_lowest": groups[p_values].min(),
            f"{p_values}_highest": groups[p_values].max(),
        }
    if p_values:
        each = [p_of_seeds(same["p_value"], same[p_values]) for _, same in groups]
        columns["p_value"] = pd.Series(each, index=seeds.index, dtype=float)
    return pd.DataFrame(columns).reset_index()


def against_reference(scores: pd.DataFrame, *, scope: str) -> tuple[pd.DataFrame, str]:
    """`models` with the difference of their BLEU from the reference of the claims
    (`Evidence.compared`), and its name.

    The reference is λ 0 of as many updates, or the baseline where a seed has none. It differs from
    itself by 0, for sure.
    """
    rows = models(scores, scope=scope)
    unpruned = without_penalty(rows[rows["kind"] == "pruned"])
    rows = rows.assign(
        **{name: rows[name].mask(rows["kind"] == "baseline", 0.0) for name in INTERVAL}
    )
    known = (
        rows["counterpart_difference"].notna() | (rows["kind"] == "baseline") | (rows["lam"] == 0)
    )
    if rows.empty or not known.all() or not set(rows["seed"]) <= set(unpruned.index):
        return rows, "baseline"
    gained = unpruned.loc[rows["seed"]].set_index(rows.index)
    # the baseline's difference from λ 0
    mirrored = {"difference": -gained["difference"], "p_value": gained["p_value"]}
    mirrored |= {
        "difference_low": -gained["difference_high"],
        "difference_high": -gained["difference_low"],
    }
    of = [rows["kind"] == "baseline", rows["lam"] == 0]
    itself = dict.fromkeys(INTERVAL, 0.0) | {"p_value": nan}
    values = {
        name: np.select(of, [mirrored[name], itself[name]], rows[f"counterpart_{name}"])
        for name in itself
    }
    samples = f"difference{SAMPLES}"
    if samples in rows:
        drawn = zip(of[0], of[1], gained[samples], rows[f"counterpart_{samples}"], strict=True)
        values[samples] = [
            -np.asarray(own) if baseline else np.zeros(len(own)) if unpruned else other
            for baseline, unpruned, own, other in drawn
        ]
    return rows.assign(**values), "λ 0"


def costs(scores: pd.DataFrame, *, scope: str) -> pd.DataFrame:
    """What pruning with a scope costs: one row per target (`over_seeds`).

    heads: of the scope's attention types; share: of the baseline's; difference: in BLEU, from the
    reference, with its interval;
    sentences: of the test set.
    """
    rows, reference = against_reference(scores, scope=scope)
    heads = rows[[f"{kind}_heads" for kind in SCOPES[scope]]].sum(axis=1)
    rows = rows.assign(heads=heads, share=heads / heads.max())
    values = ["heads", "share", "bleu", "difference", "decided"]
    points = over_seeds(rows, values, p_values="difference", intervals=True)
    return points.assign(scope=scope, reference=reference, sentences=rows["sentences"].max())


def reference_text(points: pd.DataFrame) -> str:
    """The reference of the points of one corpus and scope, with its BLEU: `baseline, 45.0`."""
    name = points["reference"].iloc[0]
    here = points["kind"] == "baseline" if name == "baseline" else points["lam"] == 0
    return f"{name}, {points.loc[here, 'bleu'].iloc[0]:.1f}"


def in_order(rows: pd.DataFrame, order: dict[str, bool]) -> pd.DataFrame:
    """The rows sorted by these columns, each ascending (True) or descending, with a new index."""
    return rows.sort_values(list(order), ascending=list(order.values()), ignore_index=True)


def target(lam: float, heads: float) -> str:
    """A model's target in the cell of a table."""
    return f"λ {lam:g}" if pd.notna(lam) else f"{heads:.0f} {'head' if heads == 1 else 'heads'}"


def column_label(model: pd.Series, columns: int) -> str:
    """The heads that are left in a model above its target, as the label of one of so many
    columns."""
    lam, asked = model["lam"], model["target_heads"]
    label = f"λ {lam:g}" if pd.notna(lam) else "none pruned"
    if pd.notna(asked):
        label = f"target: {asked:.0f}"
    return f"{model['heads']}\n" + (label.replace(" ", "\n") if columns > 10 else label)


def by_type_text(means: Mapping[str, float]) -> str:
    """Heads of the three types, or their means over seeds, as `14/31/30`."""
    return "/".join(f"{round(means[total], 1):g}" for total in TOTALS)


def value_text(
    value: float,
    *,
    sd: float = nan,
    low: float = nan,
    high: float = nan,
    digits: int = 1,
    sign: bool = False,
) -> str:
    """The cell of a value: mean ± standard deviation over seeds, or the value of one seed with its
    interval, if it has one."""
    if pd.isna(value):
        return ""
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    if pd.notna(sd):
        text += f" ± {sd:.{digits}f}"
    elif pd.notna(low):
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return style.minus(text)


def between(values: pd.Series, form: str) -> str:
    """Lowest to highest value, or the one that all share; a dash where there is none."""
    if values.isna().all():
        return "–"
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low} to {high}"


def interval_text(row: Mapping[str, float], name: str, *, digits: int = 1) -> str:
    return value_text(row[name], low=row[f"{name}_low"], high=row[f"{name}_high"], digits=digits)


def p_of_seeds(p_values: pd.Series, differences: pd.Series) -> float:
    """One p-value for all seeds, from those of their differences from the baseline.

    The largest; 1 where some seeds gain and others lose, since they then share no difference.
    Missing where any is missing.
    """
    if (differences > 0).any() and (differences < 0).any():
        return 1.0
    return float(p_values.max(skipna=False))


def p_cell(p_value: float) -> str:
    """The cell of a p-value; "" where it is missing."""
    if pd.isna(p_value):
        return ""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def without_constant(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table without those of these columns that have the same text in every row, and without
    `n` where it is always 1."""
    constant = [name for name in columns if table[name].nunique() < 2]
    return table.drop(
        columns=[*constant, *(["n"] if "n" in table and (table["n"] == "1").all() else [])]
    )


def seeds_note(series: pd.DataFrame, *, text: str = ", {} seeds (mean and range)") -> str:
    """The end of a title: how many seeds are behind its points, or which one; "" for results of
    the paper."""
    least, most = series["seeds"].min(), series["seeds"].max()
    if most > 1:
        return text.format(f"{most:.0f}" if least == most else f"{least:.0f} to {most:.0f}")
    return f", seed {series['seed'].iloc[0]}" if most == 1 else ""


def panel_per_corpus(
    points: pd.DataFrame, *, height: float, more_height: float = 0.0
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """A figure with a panel for each corpus, two beside each other, and the axes and the points of
    each."""
    corpora = style.by(points, "corpus")
    across = min(2, len(corpora))
    width = style.DOUBLE if across > 1 else 0.72 * style.DOUBLE
    size = {"height": height, "more_height": more_height, "width": width}
    drawn, _, panels = style.panels(len(corpora), across=across, **size)
    for axes, (corpus, rows) in zip(panels, corpora.items(), strict=True):
        axes.set_title(
            style.wrap(corpus + seeds_note(rows), inches=width / across - 0.3, size=7), size=7
        )
    return drawn, list(zip(panels, corpora.values(), strict=True))


def split(points: pd.DataFrame, look: style.Series) -> Iterator[tuple[pd.DataFrame, style.Series]]:
    """The series to draw the points of one corpus, type or group as, by number of heads and by λ,
    each with its look."""
    asked, baseline = points["target_heads"].notna(), points["kind"] == "baseline"
    if asked.any():
        yield points[asked | baseline], look._replace(**ASKED)
    if not asked.any() or not asked[~baseline].all():
        yield points[~asked], look


def key(points: pd.DataFrame) -> list[Line2D]:
    """The legend entry of models pruned to a number of heads, where there are some."""
    asked = style.key(style.Series(style.PAPER_COLOUR, "", **ASKED), ASKED_LABEL)
    return [asked] if points["target_heads"].notna().any() else []


def filled_key(points: pd.DataFrame, reference: str = "reference") -> list[Line2D]:
    """The legend entry of filled markers, where there are some."""
    filled = style.marker_key(f"filled: differs from the {reference}, p < {FILLED_BELOW}")
    return [filled] if (points["p_value"] < FILLED_BELOW).any() else []


def bars_key(points: pd.DataFrame) -> list[Line2D]:
    """The legend entries of bars of differences, and of seeds, their range of heads, and undecided
    gates where there are any."""
    several = bool(points["seeds"].max() > 1)
    bars = style.marker_key(
        "95% interval" + " (mean over seeds)" * several, marker="|", markersize=7
    )
    seeds = style.marker_key("lowest and highest seed", marker=SEED)
    heads = style.marker_key("heads left, lowest and highest seed", marker="_", markersize=7)
    ranges = "share_low" in points and bool((points["share_low"] < points["share_high"]).any())
    return [bars, *[seeds] * several, *[heads] * ranges, *undecided_key(points)]


def undecided_key(points: pd.DataFrame) -> list[Line2D]:
    """The legend entry of models with undecided gates, where there are some."""
    return [style.key(UNDECIDED, UNDECIDED_LABEL)] if (points["decided"] < 1).any() else []


def widen(axes: Axes, *, least: float = -np.inf) -> None:
    """Make an axis of BLEU span at least `SMALLEST_SPAN`; it starts no lower than `least`."""
    low, high = axes.get_ylim()
    missing = max(0.0, SMALLEST_SPAN - (high - low)) / 2
    axes.set_ylim(max(least, low - missing), high + missing)


def line(
    axes: Axes,
    series: pd.DataFrame,
    *,
    x: str,
    y: str,
    look: style.Series,
    label: str | None = None,
) -> None:
    """Draw the points of a series, joined, with bars between `<x>_low` and `<x>_high` and between
    `<y>_low` and `<y>_high`.

    Points with equal `x` are joined in the given order. Without these columns, or where an end is
    missing, there is no bar. With `p_value`, markers are filled where the difference is
    significant. With `<y>_lowest`, the extreme seeds are marked, and the number of seeds is written
    beside points that have fewer than others. With `decided`, models with undecided gates are grey.
    """
    series = series.sort_values(x, kind="stable")
    bars = {"fmt": "none", "elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7}
    ends = {"xerr": _bars(series, x), "yerr": _bars(series, y)}
    axes.errorbar(series[x], series[y], ecolor=look.colour, **ends, **bars)
    if f"{y}_lowest" in series:
        several = series[series["seeds"] > 1]
        for end in ("_lowest", "_highest"):
            seeds = {"color": look.colour, "marker": SEED, "markersize": 4, "linestyle": "none"}
            axes.plot(several[x], several[y + end], **seeds)
        for point in series[series["seeds"] < series["seeds"].max()].to_dict("records"):
            near = {"xytext": (4, 4), "textcoords": "offset points", "color": look.colour}
            axes.annotate(f"of {point['seeds']:.0f}", (point[x], point[y]), size=6, **near)
    _markers(axes, series, x=x, y=y, look=look, label=label)
    if "decided" in series:
        _markers(axes, series[series["decided"] < 1], x=x, y=y, look=UNDECIDED, label=None)


def _markers(
    axes: Axes, series: pd.DataFrame, *, x: str, y: str, look: style.Series, label: str | None
) -> None:
    """Draw points and their line; with `p_value`, only significant differences are filled."""
    tested = "p_value" in series
    drawn = {"color": look.colour, "marker": look.marker}
    face = {"markerfacecolor": "white"} if tested else {}
    axes.plot(series[x], series[y], linestyle=look.line, label=label, **drawn, **face)
    if tested:
        known = series[series["p_value"] < FILLED_BELOW]
        axes.plot(known[x], known[y], linestyle="none", **drawn)


def _bars(series: pd.DataFrame, name: str) -> np.ndarray | None:
    """Lengths of the two halves of each bar, (2, points); None where all are zero."""
    if f"{name}_low" not in series:
        return None
    ends = [series[name] - series[f"{name}_low"], series[f"{name}_high"] - series[name]]
    # Rounding can put the mean of equal numbers just outside of their range.
    lengths = np.stack([end.fillna(0.0).to_numpy() for end in ends]).clip(min=0.0)
    return lengths if lengths.any() else None
