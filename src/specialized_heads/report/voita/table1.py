"""Table 1: accuracy of the best encoder head on each relation, and the positional baseline (section 5.2.2).

Rows with the same relation and direction are neighbours, ours first, then the paper's. Accuracies are percentages.
"""

import pandas as pd

from specialized_heads.report.data import Tables
from specialized_heads.report.voita import dependency, paper

CAPTION = (
    "Dependency scores: accuracy of the best encoder head and of the most frequent relative position (baseline), in "
    "percent, with 95% bootstrap intervals over sentences. The best head is chosen on the sentences on which it is scored; "
    "this flatters it, and its interval does not say by how much. Heads are named layer-head."
)
COLUMNS = [
    "relation", "direction", "corpus", "arcs", "layer", "head", "accuracy", "low", "high", "baseline",
    "syntactic", "reported",
]  # fmt: skip


def numbers(tables: Tables) -> pd.DataFrame:
    """The best head of each corpus, relation and direction, and the paper's; without arcs or heads, a row without accuracy."""
    rows = dependency.accuracies(tables)
    rows = rows[rows["best"] | rows["accuracy"].isna()]
    place = rows.groupby(["relation", "direction"], sort=False).ngroup()
    return rows.assign(place=place).sort_values("place", kind="stable", ignore_index=True)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame([_row(row) for row in rows.to_dict("records")])


def _row(row: dict) -> dict[str, str]:
    known, reported = pd.notna(row["accuracy"]), row["reported"]
    digits = 0 if reported else 1
    accuracy = f"{100 * row['accuracy']:.{digits}f}" if known else "–"
    if pd.notna(row["low"]):
        accuracy += f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    return {
        "relation": row["relation"],
        "direction": paper.direction_label(row["relation"], row["direction"]),
        "corpus": row["corpus"],
        "arcs": "" if reported else f"{row['arcs']:,}",
        "best head": f"{row['layer']}-{row['head']}" if pd.notna(row["layer"]) else "",
        "accuracy": accuracy,
        "baseline": "–" if pd.isna(row["baseline"]) else f"{100 * row['baseline']:.{digits}f}",
        "syntactic": "" if reported or not known else "yes" if row["syntactic"] else "no",
    }
