"""Do the criteria mean the same heads? Rank correlation between them, and overlap of the sets that they keep.

Spearman's ρ is computed over the heads of one attention type, and for scope "all" also over those of the three types
together; a head for which one of the two criteria has no value is left out, and the number of heads says so. The overlap
of two sets of heads is that of Jaccard: heads in both over heads in either. Random choice is there as the level of chance,
one draw per seed. Over several seeds the table has mean and standard deviation.
"""

from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from specialized_heads.report import style, sweep
from specialized_heads.report.inputs import Titles
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import UserError, arguments, run
from specialized_heads.tables import read_table

HEAD = ["type", "layer", "head"]
TOGETHER = "all types"
KEYS = ["corpus", "measure", "scope", "type", "kept", "first", "second"]
COLUMNS = [*KEYS, "heads", "seeds", "value", "low", "high", "sd"]
NOTHING = "fewer than two criteria are compared in this experiment"
CAPTION = (
    "Agreement of criteria: Spearman's ρ between the values that two criteria give the heads of an attention type, with the "
    "number of heads; Jaccard: overlap of the sets of heads that both keep, by the number of heads kept; "
    "random: one draw per seed"
)
COLOURS = matplotlib.colormaps["PuOr_r"]


def spearman(first: pd.Series, second: pd.Series) -> tuple[float, int]:
    """Rank correlation over the heads that have both values, ties at their mean rank; and the number of these heads.

    NaN where there are fewer than two heads, or all values of one criterion are the same.
    """
    pairs = pd.concat([first, second], axis=1).dropna().rank().to_numpy()
    deviations = pairs - pairs.mean(axis=0) if len(pairs) else np.zeros((0, 2))
    norms = np.linalg.norm(deviations, axis=0)
    return (float(deviations[:, 0] @ deviations[:, 1] / norms.prod()) if norms.all() else np.nan), len(pairs)


def jaccard(first: set, second: set) -> float:
    """Elements of both sets over elements of either; two empty sets are the same."""
    return len(first & second) / len(first | second) if first | second else 1.0


def numbers(tables: list[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Agreement of each pair of criteria.

    Args:
        tables: title of the corpus and what the criteria say of its heads, one table per seed (`pruning.compare`).

    Returns:
        one row per corpus, measure (spearman, jaccard), scope, type, kept (number of heads; for jaccard) and pair (first,
        second), with heads (compared, the fewest over seeds), seeds (how many), value (mean), low and high (range), sd
        (missing where there is one seed).
    """
    rows = []
    for title, table in tables:
        for scope, own in table.groupby("scope", sort=False):
            values = own.pivot(index=HEAD, columns="criterion", values="value")
            kept = own.explode("counts").dropna(subset="counts")
            sizes = sorted(set(kept["counts"]), reverse=True)
            kinds = [kind for kind in style.TYPES if kind in set(own["type"])]
            for first, second in combinations(own["criterion"].unique(), 2):
                pair = {"corpus": title, "scope": scope, "first": first, "second": second}
                for kind in [*kinds, TOGETHER] if len(kinds) > 1 else kinds:
                    part = values if kind == TOGETHER else values.loc[[kind]]
                    value, heads = spearman(part[first], part[second])
                    rows.append(pair | {"measure": "spearman", "type": kind, "heads": heads, "value": value})
                for size in sizes:
                    sets = [
                        set(
                            kept.loc[(kept["criterion"] == name) & (kept["counts"] == size), HEAD].itertuples(
                                index=False
                            )
                        )
                        for name in (first, second)
                    ]
                    measured = {"measure": "jaccard", "kept": size, "heads": len(values), "value": jaccard(*sets)}
                    rows.append(pair | {"type": kinds[0] if len(kinds) == 1 else TOGETHER} | measured)
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    groups = pd.DataFrame(rows, columns=[*KEYS, "heads", "value"]).groupby(KEYS, sort=False, dropna=False)
    merged = groups.agg(
        heads=("heads", "min"),
        seeds=("value", "count"),
        value=("value", "mean"),
        low=("value", "min"),
        high=("value", "max"),
        sd=("value", "std"),
    )
    return merged.reset_index().astype({"kept": "Int64"})[COLUMNS]


def draw(points: pd.DataFrame) -> Figure:
    """A heat map of rank correlations for each corpus, scope and attention type."""
    shown = points[points["measure"] == "spearman"]
    if shown.empty:
        return style.message_figure(NOTHING, width=style.DOUBLE)
    corpora = list(shown.groupby("corpus", sort=False))
    panels = [list(own.groupby(["scope", "type"], sort=False)) for _, own in corpora]
    columns = max(map(len, panels))
    width = style.DOUBLE if columns > 2 else style.SINGLE
    height = 0.9 + 0.23 * shown["second"].nunique()
    figure = Figure(figsize=(width, height * len(corpora)), layout="constrained")
    grid = figure.subplots(len(corpora), columns, squeeze=False)
    for row, (corpus, _), own in zip(grid, corpora, panels, strict=True):
        for axes, ((scope, kind), pairs) in zip(row, own):
            mesh = _heat_map(axes, pairs, labels=axes is row[0])
            axes.set_title(f"pruning {scope}:\n{kind}, n = {pairs['heads'].min()}", size=6.5)
        for axes in row[len(own) :]:
            axes.set_axis_off()
        if len(corpora) > 1:
            row[0].set_ylabel(style.wrap(corpus, inches=height - 0.6))
    bar = figure.colorbar(mesh, ax=grid, shrink=0.8, aspect=15, pad=0.01, ticks=[-1, 0, 1])
    seeds = shown["seeds"].max()
    bar.set_label("Spearman's ρ" + (f", mean of {seeds} seeds" if seeds > 1 else ""))
    return figure


def _heat_map(axes: Axes, pairs: pd.DataFrame, *, labels: bool) -> QuadMesh:
    """Criteria against criteria, below the diagonal; a value that is not defined is hatched."""
    columns, rows = list(pairs["first"].unique()), list(pairs["second"].unique())
    values = np.ma.masked_all((len(rows), len(columns)))
    for pair in pairs.to_dict("records"):
        x, y = columns.index(pair["first"]), rows.index(pair["second"])
        if np.isnan(pair["value"]):
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor="#BBBBBB", hatch="////"))
            continue
        values[y, x] = pair["value"]
        colour = "white" if abs(pair["value"]) > 0.55 else "black"
        text = f"{pair['value']:.2f}".replace("-", "−")
        axes.text(x, y, text, size=4.8, ha="center", va="center", color=colour)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows if labels else [""] * len(rows))
    axes.tick_params(length=0, labelsize=6)
    axes.spines[:].set_visible(False)
    edges = np.arange(len(columns) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5
    mesh = axes.pcolormesh(*edges, values, cmap=COLOURS, vmin=-1, vmax=1, edgecolors="white", linewidth=1.0)
    axes.invert_yaxis()
    return mesh


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per corpus, scope and pair; n (seeds) where there are several, ρ by type, the overlaps."""
    rows = []
    for (corpus, scope, first, second), same in points.groupby(["corpus", "scope", "first", "second"], sort=False):
        row = {"corpus": corpus, "scope": scope, "criteria": f"{first} – {second}", "n": str(same["seeds"].max())}
        for point in same[same["measure"] == "spearman"].to_dict("records"):
            row[f"ρ {point['type']}"] = f"{_cell(point)}, {point['heads']} heads"
        overlaps = same[same["measure"] == "jaccard"].to_dict("records")
        row["Jaccard"] = "; ".join(f"{point['kept']}: {_cell(point)}" for point in overlaps)
        rows.append(row)
    if not rows:
        return pd.DataFrame(columns=["scope", "criteria", "Jaccard"])
    table = pd.DataFrame(rows).fillna("")
    table["Jaccard"] = table.pop("Jaccard")  # after the correlations of all scopes
    needless = {"corpus": table["corpus"].nunique() == 1, "n": (table["n"] == "1").all()}
    return table.drop(columns=[name for name, drop in needless.items() if drop])


def _cell(point: dict) -> str:
    return sweep.value_text(point["value"], sd=point["sd"], digits=2) or "undefined"


def caption(points: pd.DataFrame) -> str:
    """What stands above the table."""
    if points.empty:
        return f"{CAPTION}; {NOTHING}."
    seeds = points["seeds"].max()
    return CAPTION + ("; mean ± standard deviation over n seeds." if seeds > 1 else ".")


def read(paths: list[Path], titles: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """The tables with the titles of their corpora; a missing file is a `UserError`."""
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise UserError(f"{missing[0]}: no such file")
    return list(zip(titles, (read_table(path).to_pandas() for path in paths), strict=True))


def main() -> None:
    args = arguments(__doc__, files=["figure", "table"], many=["criteria"])
    points = numbers(read(args.criteria, Titles.model_validate(args.settings).titles))
    save_figure(args.figure, points, lambda: draw(points))
    save_table(args.table, points, shown(points), caption=caption(points))


if __name__ == "__main__":
    run(main)
