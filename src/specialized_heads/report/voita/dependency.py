"""How well heads, and a fixed position, find the other word of a relation (figure 4, table 1).

Numbers of arcs and baselines come from the table of heads, that is, from the sentences on which heads were scored: those that
could be aligned with their subwords. The best head is chosen on the sentences on which it is scored, as in the paper; with
many heads and few arcs this flatters it.
"""

import pandas as pd

from specialized_heads.parsing.relations import canonical
from specialized_heads.report.data import Tables, encoder_heads, first_seed
from specialized_heads.report.voita import paper

COLUMNS = [
    "corpus", "relation", "direction", "arcs", "baseline",
    "layer", "head", "accuracy", "low", "high", "syntactic", "best", "reported",
]  # fmt: skip


def accuracies(tables: Tables) -> pd.DataFrame:
    """Accuracy of every encoder head of the baselines of the first seed for every relation, then of the paper's best heads.

    The table of relations says which relations there are and, for a model without encoder heads, their arcs and baselines over
    all parsed sentences.

    Returns:
        one row per corpus, relation, direction and head, with its 95% interval; syntactic: whether the head counts as syntactic
        for it; reported: by the paper. A relation without arcs and a model without heads have one row, without a head.
    """
    rows = []
    for title in tables.corpora():
        own = tables.of(title)
        encoder = encoder_heads(first_seed(own.analysed(title, "baseline")))
        for relation in own.relations.to_dict("records"):
            name = f"{relation['relation']}_{relation['direction']}"
            arcs, baseline = relation["arcs"], relation["baseline_accuracy"]
            if len(encoder):
                arcs, baseline = encoder[[f"{relation['relation']}_arcs", f"{name}_baseline"]].iloc[0]
            shared = {"corpus": title, "arcs": arcs, "baseline": baseline if arcs else None}
            shared |= {key: relation[key] for key in ("relation", "direction")}
            known = encoder[encoder[name].notna()] if arcs else encoder.iloc[:0]
            best = known[name].astype(float).idxmax() if len(known) else None
            for index, head in known.iterrows():
                accuracy = {"accuracy": head[name], "low": head[f"{name}_low"], "high": head[f"{name}_high"]}
                labels = {"syntactic": name in head["relations"], "best": index == best}
                rows.append(shared | {"layer": head["layer"], "head": head["head"]} | accuracy | labels)
            if known.empty:
                rows.append(shared)
    # The paper's rows take the name of the relation in our data: obj, or dobj.
    names = dict.fromkeys(row["relation"] for row in rows)
    for row in paper.TABLE1:
        for name in (name for name in names if canonical(name) == row.relation):
            accuracy = {"accuracy": row.best, "baseline": row.baseline, "best": True, "reported": True}
            rows.append({"corpus": row.corpus, "relation": name, "direction": row.direction} | accuracy)
    whole, real = ("arcs", "layer", "head"), ("baseline", "accuracy", "low", "high")
    frame = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(whole, "Int64") | dict.fromkeys(real, float))
    return frame.assign(**{flag: frame[flag].eq(True) for flag in ("syntactic", "best", "reported")})
