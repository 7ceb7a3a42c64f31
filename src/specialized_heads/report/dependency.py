"""How well heads find the word that stands in a relation, beside the positional baseline (figure 4, table 1; section 5.2).

The best head is chosen on the sentences that it is scored on, as in the paper; with many heads and few arcs that flatters it.
"""

import pandas as pd

from specialized_heads.report.inputs import encoder_heads
from specialized_heads.stage import UserError


def accuracies(heads: dict[str, pd.DataFrame], relations: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy of every encoder head for every relation and direction.

    Args:
        heads: per-head table of each corpus.
        relations: table of relations of each corpus, same keys.

    Returns:
        one row per corpus, relation, direction and head: corpus, relation, direction, arcs, baseline, layer, head,
        accuracy, low, high (95% interval), syntactic (whether the head counts as syntactic for this), best. A relation
        without arcs or a model without heads has one row with neither head nor accuracy.

    Raises:
        UserError: the two tables of a corpus do not hold the same relations.
    """
    rows = []
    for title, table in heads.items():
        encoder = encoder_heads(table)
        for relation in relations[title].to_dict("records"):
            name = f"{relation['relation']}_{relation['direction']}"
            if name not in encoder:
                raise UserError(f"{title}: the heads file has no column {name}, the relations file has that relation")
            known = encoder[encoder[name].notna()] if relation["arcs"] else encoder.iloc[:0]
            best = known[name].astype(float).idxmax() if len(known) else None
            shared = {
                "corpus": title,
                "relation": relation["relation"],
                "direction": relation["direction"],
                "arcs": relation["arcs"],
                "baseline": relation["baseline_accuracy"] if relation["arcs"] else None,
            }
            rows += [
                shared
                | {
                    "layer": head["layer"],
                    "head": head["head"],
                    "accuracy": head[name],
                    "low": head[f"{name}_low"],
                    "high": head[f"{name}_high"],
                    "syntactic": name in head["relations"],
                    "best": index == best,
                }
                for index, head in known.iterrows()
            ] or [shared | dict.fromkeys(("layer", "head", "accuracy", "low", "high")) | {"syntactic": False, "best": False}]
    frame = pd.DataFrame(rows)
    return frame.astype({"layer": "Int64", "head": "Int64"} | dict.fromkeys(("baseline", "accuracy", "low", "high"), float))
