"""Table 1: how well the best encoder head finds the word in a relation, and the positional baseline (section 5.2.2).

Rows with the same relation and direction stand together, ours first, then the paper's. Accuracies are percentages.
"""

import pandas as pd

from specialized_heads.report import paper
from specialized_heads.report.dependency import accuracies
from specialized_heads.report.inputs import HEAD_COLUMNS, RELATION_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, run

CAPTION = (
    "Dependency scores: accuracy of the best encoder head and of the most frequent relative position (baseline), in "
    "percent, with 95% bootstrap intervals over sentences. The best head is chosen on the sentences that it is scored on, "
    "which flatters it, and its interval does not say by how much. Heads are named layer-head."
)
COLUMNS = [
    "relation", "direction", "corpus", "arcs", "layer", "head", "accuracy", "low", "high", "baseline",
    "syntactic", "reported",
]  # fmt: skip


def numbers(heads: dict[str, pd.DataFrame], relations: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The best head of every corpus, relation and direction, and the paper's.

    Returns:
        one row each: relation, direction, corpus, arcs, layer, head, accuracy, low, high, baseline (fractions),
        syntactic, reported (by the paper). Missing values where there are no arcs, no heads, or the paper does not
        say.
    """
    rows = accuracies(heads, relations)
    rows = rows[rows["best"] | rows["accuracy"].isna()]
    pairs = list(zip(rows["relation"], rows["direction"], strict=True))
    first = {pair: place for place, pair in reversed(list(enumerate(pairs)))}
    order = rows.assign(place=[first[pair] for pair in pairs]).sort_values("place", kind="stable", ignore_index=True)
    return order[COLUMNS]


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text."""
    return pd.DataFrame([_row(row) for row in rows.to_dict("records")])


def _row(row: dict) -> dict[str, str]:
    found = pd.notna(row["accuracy"])
    accuracy = f"{100 * row['accuracy']:.1f}" if found else "–"
    if pd.notna(row["low"]):
        accuracy += f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    reported = row["reported"]
    return {
        "relation": row["relation"],
        "direction": paper.direction_label(row["relation"], row["direction"]),
        "corpus": row["corpus"],
        "arcs": "" if reported else f"{row['arcs']:,}",
        "best head": f"{row['layer']}-{row['head']}" if pd.notna(row["layer"]) else "",
        "accuracy": f"{100 * row['accuracy']:.0f}" if reported else accuracy,
        "baseline": "–" if pd.isna(row["baseline"]) else f"{100 * row['baseline']:.{0 if reported else 1}f}",
        "syntactic": "" if reported or not found else "yes" if row["syntactic"] else "no",
    }


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads", "relations"])
    titles = Titles.model_validate(args.settings).titles
    heads = read_all(args.heads, titles, columns=HEAD_COLUMNS)
    rows = numbers(heads, read_all(args.relations, titles, columns=RELATION_COLUMNS))
    save_table(args.output, rows, shown(rows), caption=CAPTION)


if __name__ == "__main__":
    run(main)
