"""Relevance rules: how far they rank the heads of the unpruned model alike, by attention type (figure of our own).

A cell is Spearman's rank correlation of two rules over all heads of a type, from the mean relevances normalised in each layer:
1 where both put the heads in the same order, 0 where they have nothing in common.
"""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.inputs import Titles, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.stage import arguments, run

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
    """Rank correlations of every pair of rules.

    Returns:
        one row per corpus, attention type and pair: corpus, type, rule, other_rule (in the order of the table), correlation
        (missing where a rule ranks nothing: fewer than two heads, or all equal), heads (how many).
    """
    rows = []
    for title, table in tables.items():
        rules = [name for name in table.columns if name not in HEAD]
        for kind in style.TYPES:
            ranks = table.loc[table["type"] == kind, rules].rank()
            pairs = [(rule, other) for number, rule in enumerate(rules) for other in rules[number + 1 :]]
            for rule, other in pairs:
                ranked = len(ranks) > 1 and min(ranks[rule].nunique(), ranks[other].nunique()) > 1
                correlation = ranks[rule].corr(ranks[other]) if ranked else np.nan
                rows.append([title, kind, rule, other, correlation, len(ranks)])
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(pairs: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw one row of three panels per corpus; a type without a ranking says so."""
    if pairs.empty:
        return style.message_figure("Fewer than two relevance rules are configured (heads.relevance_rules).")
    figure = Figure(figsize=(style.DOUBLE, 2.25 * len(titles) + 0.2), layout="constrained")
    rows = figure.subfigures(len(titles), 1, squeeze=False)[:, 0]
    for row, title in zip(rows, titles, strict=True):
        own = pairs[pairs["corpus"] == title]
        row.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
        panels = row.subplots(1, len(style.TYPES))
        meshes = []
        for axes, (kind, (name, _)) in zip(panels, style.TYPES.items(), strict=True):
            here = own[own["type"] == kind]
            if here["correlation"].notna().any():
                axes.set_title(f"{name} (n = {here['heads'].iloc[0]})")
                meshes.append(_panel(axes, here))
            else:
                style.message(axes, f"{name}: fewer than two heads that differ", inches=style.DOUBLE / 3 - 0.3)
        if meshes:
            bar = row.colorbar(meshes[0], ax=list(panels), pad=0.01, aspect=18)
            bar.outline.set_visible(False)
            bar.set_label("Spearman's ρ")
    return figure


def _panel(axes: Axes, pairs: pd.DataFrame) -> QuadMesh:
    """One type of one model: each pair once, the number in its cell."""
    rules = list(dict.fromkeys([*pairs["rule"], *pairs["other_rule"]]))
    below, beside = rules[:-1], rules[1:]  # the diagonal, where a rule agrees with itself, is left out
    matrix = np.ma.masked_all((len(beside), len(below)))
    for pair in pairs.to_dict("records"):
        matrix[beside.index(pair["other_rule"]), below.index(pair["rule"])] = pair["correlation"]
    matrix = np.ma.masked_invalid(matrix)
    edges = np.arange(len(rules)) - 0.5
    mesh = axes.pcolormesh(
        edges, edges, matrix, cmap=matplotlib.colormaps["PuOr_r"], vmin=-1, vmax=1, edgecolors="white", linewidth=1.0
    )
    for i, j in zip(*np.nonzero(~np.ma.getmaskarray(matrix)), strict=True):
        colour = "white" if abs(matrix[i, j]) > 0.7 else "black"
        text = f"{matrix[i, j]:.2f}".replace("-", "−")
        axes.text(j, i, text, ha="center", va="center_baseline", size=6.5, color=colour)
    axes.set_xticks(range(len(below)), [NAMES[rule] for rule in below], rotation=30, ha="right")
    axes.set_yticks(range(len(beside)), [NAMES[rule].replace(" × ", "\n× ") for rule in beside])
    axes.set(ylim=(len(beside) - 0.5, -0.5), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["relevance"])
    titles = Titles.model_validate(args.settings).titles
    pairs = numbers(read_all(args.relevance, titles, columns=HEAD))
    save_figure(args.output, pairs, lambda: draw(pairs, titles=titles))


if __name__ == "__main__":
    run(main)
