"""Relevance rules: how similarly they rank the heads of the unpruned model, by attention type (our own figure).

A cell is Spearman's rank correlation of two rules over all heads of a type, from the mean relevances normalised in each layer:
1 where both put the heads in the same order, 0 where the orders are unrelated.
"""

from itertools import combinations

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.beyond.agreement import spearman
from specialized_heads.report.inputs import figure
from specialized_heads.stage import run

HEAD = ["type", "layer", "head"]
COLUMNS = ["corpus", "type", "rule", "other_rule", "correlation", "heads"]
NAMES = {
    "epsilon": "ε",
    "z_plus": "z⁺",
    "alpha_beta": "αβ",
    "attention": "AttnLRP",
    "gradient_input": "gradient × input",
}


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Rank correlations of each pair of rules.

    Returns:
        one row per corpus, attention type and pair: corpus, type, rule, other_rule (in the order of the table), correlation
        (missing where a rule gives no ranking: fewer than two heads, or all equal), heads (how many).
    """
    rows = []
    for title, table in tables.items():
        for kind in style.TYPES:
            heads = table[table["type"] == kind]
            for rule, other in combinations(table.columns.drop(HEAD), 2):
                rows.append([title, kind, rule, other, spearman(heads[rule], heads[other])[0], len(heads)])
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(pairs: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw one row of three panels per corpus; a type without a ranking gets a message."""
    if pairs.empty:
        return style.message_figure("Fewer than two relevance rules are configured (heads.relevance_rules).")
    drawn = Figure(figsize=(style.DOUBLE, 2.25 * len(titles) + 0.2), layout="constrained")
    for row, title in zip(style.blocks(drawn, titles), titles, strict=True):
        panels = row.subplots(1, len(style.TYPES))
        mesh = None
        for axes, (kind, (name, _)) in zip(panels, style.TYPES.items(), strict=True):
            same = pairs[(pairs["corpus"] == title) & (pairs["type"] == kind)]
            if same["correlation"].notna().any():
                axes.set_title(f"{name} (n = {same['heads'].iloc[0]})")
                mesh = _panel(axes, same)
            else:
                style.message(axes, f"{name}: fewer than two heads that differ", inches=style.DOUBLE / 3 - 0.3)
        if mesh:
            style.colour_bar(row, mesh, list(panels), "Spearman's ρ", pad=0.01, aspect=18)
    return drawn


def _panel(axes: Axes, pairs: pd.DataFrame) -> QuadMesh:
    """One type of one model: each pair once, without the diagonal, where a rule agrees with itself."""
    rules = list(dict.fromkeys([*pairs["rule"], *pairs["other_rule"]]))
    columns, rows = rules[:-1], rules[1:]
    matrix = pairs.pivot(index="other_rule", columns="rule", values="correlation").reindex(rows)[columns]
    colours = {"colours": matplotlib.colormaps["PuOr_r"], "low": -1, "high": 1}
    mesh = style.heat_map(axes, matrix.to_numpy(np.float64), digits="z.2f", **colours)
    axes.set_xticks(range(len(columns)), [NAMES[rule] for rule in columns], rotation=30, ha="right")
    axes.set_yticks(range(len(rows)), [NAMES[rule].replace(" × ", "\n× ") for rule in rows])
    axes.set_aspect("equal")
    return mesh


def main() -> None:
    figure(__doc__, numbers, draw, given=["titles"], relevance=HEAD)


if __name__ == "__main__":
    run(main)
