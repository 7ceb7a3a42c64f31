"""Do the criteria select the same heads? Rank correlation between them, and overlap of the sets of heads that they keep.

Spearman's ρ is computed over the heads of one attention type and, for scope "all", also over those of the three types together;
the overlap of two sets of heads is the Jaccard index. Random choice, one draw per seed, shows the level of chance.
"""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from specialized_heads.report import style
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import Files
from specialized_heads.report.voita import sweep

READS = {"criteria": Files((), by="runs")}
HEAD = ["type", "layer", "head"]
TOGETHER = "all types"
KEYS = ["corpus", "measure", "scope", "type", "kept", "first", "second"]
COLUMNS = [*KEYS, "heads", "seeds", "value", "low", "high", "sd"]
NOTHING = "fewer than two criteria are compared in this experiment"
CAPTION = (
    "Agreement of criteria: Spearman's ρ between the values that two criteria give the heads of an attention type, with the "
    "number of heads; Jaccard: overlap of the two sets of heads that they keep, by the number of heads kept; "
    "random: one draw per seed"
)


def spearman(first: pd.Series, second: pd.Series) -> tuple[float, int]:
    """Rank correlation over the heads that have both values, and the number of these heads.

    NaN where there are fewer than two heads, or all values of one criterion are equal.
    """
    pairs = pd.concat([first, second], axis=1).dropna().to_numpy(float)
    if len(pairs) < 2:
        return np.nan, len(pairs)
    with warnings.catch_warnings(action="ignore", category=stats.ConstantInputWarning):
        return float(stats.spearmanr(pairs).statistic), len(pairs)


def jaccard(first: set, second: set) -> float:
    """Size of the intersection over size of the union; 1 for two empty sets."""
    return len(first & second) / len(first | second) if first | second else 1.0


def numbers(tables: dict[Model, pd.DataFrame]) -> pd.DataFrame:
    """Agreement of each pair of criteria, from their values of all heads (`pruning.compare`), one table per corpus and seed.

    One row per corpus, measure (spearman, jaccard), scope, type, kept (number of heads, for jaccard) and pair; heads: how many
    are compared, the fewest over seeds; value, low, high, sd: mean, range and standard deviation over seeds.
    """
    rows = []
    for of, table in tables.items():
        for scope, heads in table.groupby("scope", sort=False):
            values = heads.pivot(index=HEAD, columns="criterion", values="value")
            kept = heads.explode("counts").dropna(subset="counts")
            sets = {key: set(same[HEAD].itertuples(index=False)) for key, same in kept.groupby(["criterion", "counts"])}
            kinds = [kind for kind in style.TYPES if kind in set(heads["type"])]
            for first, second in combinations(heads["criterion"].unique(), 2):
                pair = {"corpus": of.corpus, "scope": scope, "first": first, "second": second}
                for kind in [*kinds, TOGETHER] if len(kinds) > 1 else kinds:
                    part = values if kind == TOGETHER else values.loc[[kind]]
                    value, count = spearman(part[first], part[second])
                    rows.append(pair | {"measure": "spearman", "type": kind, "heads": count, "value": value})
                for size in sorted(set(kept["counts"]), reverse=True):
                    overlap = jaccard(*(sets.get((name, size), set()) for name in (first, second)))
                    measured = {"measure": "jaccard", "kept": size, "heads": len(values), "value": overlap}
                    rows.append(pair | {"type": kinds[0] if len(kinds) == 1 else TOGETHER} | measured)
    groups = pd.DataFrame(rows, columns=[*KEYS, "heads", "value"]).groupby(KEYS, sort=False, dropna=False)
    merged = groups["value"].agg(seeds="count", value="mean", low="min", high="max", sd="std")
    return merged.assign(heads=groups["heads"].min()).reset_index().astype({"kept": "Int64"})


def draw(points: pd.DataFrame) -> Figure:
    """Draw a heat map of rank correlations for each corpus, scope and attention type."""
    correlations = points[points["measure"] == "spearman"]
    if correlations.empty:
        return style.message_figure(NOTHING, width=style.DOUBLE)
    corpora = style.by(correlations, "corpus")
    rows = [list(same.groupby(["scope", "type"], sort=False)) for same in corpora.values()]
    columns = max(map(len, rows))
    width = style.DOUBLE if columns > 2 else style.SINGLE
    height = 0.9 + 0.23 * correlations["second"].nunique()
    drawn = Figure(figsize=(width, height * len(corpora)), layout="constrained")
    grid = drawn.subplots(len(corpora), columns, squeeze=False)
    for row, corpus, panels in zip(grid, corpora, rows, strict=True):
        for axes, ((scope, kind), pairs) in zip(row, panels):
            mesh, names, others = style.correlations(axes, pairs, "first", "second", "value", size=4.8)
            axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
            axes.set_yticks(range(len(others)), others if axes is row[0] else [""] * len(others))
            axes.tick_params(labelsize=6)
            axes.set_title(f"pruning {scope}:\n{kind}, n = {pairs['heads'].min()}", size=6.5)
        for axes in row[len(panels) :]:
            axes.set_axis_off()
        if len(corpora) > 1:
            row[0].set_ylabel(style.wrap(corpus, inches=height - 0.6))
    seeds = correlations["seeds"].max()
    label = "Spearman's ρ" + (f", mean of {seeds} seeds" if seeds > 1 else "")
    style.colour_bar(drawn, mesh, grid, label, shrink=0.8, aspect=15, pad=0.01, ticks=[-1, 0, 1])
    return drawn


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per corpus, scope and pair; n (seeds) where there are several, ρ by type, the overlaps."""
    if points.empty:
        return pd.DataFrame(columns=["scope", "criteria", "Jaccard"])
    rows = []
    for (corpus, scope, first, second), same in points.groupby(["corpus", "scope", "first", "second"], sort=False):
        row = {"corpus": corpus, "scope": scope, "criteria": f"{first} – {second}", "n": str(same["seeds"].max())}
        for point in same[same["measure"] == "spearman"].itertuples():
            row[f"ρ {point.type}"] = f"{_cell(point)}, {point.heads} heads"
        overlaps = same[same["measure"] == "jaccard"].itertuples()
        rows.append(row | {"Jaccard": "; ".join(f"{point.kept}: {_cell(point)}" for point in overlaps)})
    table = pd.DataFrame(rows).fillna("")
    table["Jaccard"] = table.pop("Jaccard")  # after the correlations of all scopes
    return sweep.without_constant(table, "corpus")


def _cell(point: tuple) -> str:
    return sweep.value_text(point.value, sd=point.sd, digits=2) or "undefined"


def caption(points: pd.DataFrame) -> str:
    if points.empty:
        return f"{CAPTION}; {NOTHING}."
    return CAPTION + ("; mean ± standard deviation over n seeds." if points["seeds"].max() > 1 else ".")
