"""Table 1: accuracy of the best encoder head on each relation, and the positional baseline (section 5.2.2).

Rows with the same relation and direction are neighbours, ours first, then the paper's. Accuracies are percentages.
"""

import pandas as pd

from specialized_heads.parsing.relations import canonical
from specialized_heads.report.data import Tables, encoder_heads, first_seed
from specialized_heads.report.voita import paper
from specialized_heads.report.voita.sweep import value_text

CAPTION = (
    "Dependency scores: accuracy of the best encoder head and of the most frequent relative position (baseline), in "
    "percent, with 95% bootstrap intervals over sentences. The best head is chosen on the sentences on which it is scored; "
    "this flatters it, and its interval does not say by how much. Heads are named layer-head."
)
SCORES = ["layer", "head", "accuracy", "low", "high"]
ACCURACIES = ["corpus", "relation", "direction", "arcs", "baseline", *SCORES, "syntactic", "best", "reported"]
COLUMNS = ["relation", "direction", "corpus", "arcs", *SCORES, "baseline", "syntactic", "reported"]


def accuracies(tables: Tables) -> pd.DataFrame:
    """Accuracy of every encoder head of the baselines of the first seed for every relation, then of the paper's best heads.

    Numbers of arcs and baselines are those of the sentences on which heads were scored, or, for a model without encoder heads,
    of all parsed sentences.

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
    frame = pd.DataFrame(rows, columns=ACCURACIES).astype(dict.fromkeys(whole, "Int64") | dict.fromkeys(real, float))
    return frame.assign(**{flag: frame[flag].eq(True) for flag in ("syntactic", "best", "reported")})


def numbers(tables: Tables) -> pd.DataFrame:
    """The best head of each corpus, relation and direction, and the paper's; without arcs or heads, a row without accuracy."""
    rows = accuracies(tables)
    rows = rows[rows["best"] | rows["accuracy"].isna()]
    place = rows.groupby(["relation", "direction"], sort=False).ngroup()
    return rows.assign(place=place).sort_values("place", kind="stable", ignore_index=True)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for row in rows.to_dict("records"):
        known, reported = pd.notna(row["accuracy"]), row["reported"]
        digits = 0 if reported else 1
        accuracy, low, high, baseline = (100 * row[name] for name in ("accuracy", "low", "high", "baseline"))
        line = {"relation": row["relation"], "direction": paper.direction_label(row["relation"], row["direction"])}
        line |= {"corpus": row["corpus"], "arcs": "" if reported else f"{row['arcs']:,}"}
        line["best head"] = f"{row['layer']}-{row['head']}" if pd.notna(row["layer"]) else ""
        line["accuracy"] = value_text(accuracy, low=low, high=high, digits=digits) or "–"
        line["baseline"] = value_text(baseline, digits=digits) or "–"
        line["syntactic"] = "" if reported or not known else "yes" if row["syntactic"] else "no"
        lines.append(line)
    return pd.DataFrame(lines)
