"""Relevance rules: how similarly they rank the heads of the unpruned model, by attention type (our own figure).

A cell is Spearman's rank correlation of two rules over all heads of a type, from the mean relevances normalised in each layer:
1 where both put the heads in the same order, 0 where the orders are unrelated.
"""

from itertools import combinations

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.beyond.agreement import HEAD, spearman
from specialized_heads.report.inputs import Files

READS = {"relevance": Files(HEAD)}
COLUMNS = ["corpus", "type", "rule", "other_rule", "correlation", "heads"]
NAMES = {
    "epsilon": "ε",
    "z_plus": "z⁺",
    "alpha_beta": "αβ",
    "attention": "AttnLRP",
    "gradient_input": "gradient × input",
}


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Rank correlation of each pair of rules by corpus and attention type, missing where a rule gives no ranking."""
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
        mesh = None
        for axes, name, same in style.panel_per_type(row, pairs[pairs["corpus"] == title]):
            if same["correlation"].isna().all():
                style.message(axes, f"{name}: fewer than two heads that differ", inches=style.DOUBLE / 3 - 0.3)
                continue
            mesh, rules, others = style.correlations(axes, same, "rule", "other_rule", "correlation")
            axes.set_xticks(range(len(rules)), [NAMES[rule] for rule in rules], rotation=30, ha="right")
            axes.set_yticks(range(len(others)), [NAMES[rule].replace(" × ", "\n× ") for rule in others])
            axes.set(aspect="equal", title=f"{name} (n = {same['heads'].iloc[0]})")
        if mesh:
            style.colour_bar(row, mesh, list(row.axes), "Spearman's ρ", pad=0.01, aspect=18)
    return drawn
