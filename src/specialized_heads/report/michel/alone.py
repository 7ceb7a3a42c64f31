"""Table: the best head of each layer and attention type, and BLEU with this head alone in its layer (Michel et al. 2019,
section 3.3).

The best head is chosen on the test set on which it is scored, which flatters it. With several seeds, each seed has its own best
head, and the table shows mean and standard deviation of the difference.
"""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.data import Tables, removed, score_name, with_ends
from specialized_heads.report.voita import paper, sweep

CAPTION = (
    "The best head of each layer, chosen on the same test set: {metric} when it is the only head left in the layer, minus "
    "{metric} of the whole model (with several seeds, n: mean ± standard deviation); *: differs at p < {level} (paired "
    "bootstrap; for every seed). {paper}"
)
KEYS = ["corpus", "type", "layer"]
COLUMNS = [*KEYS, "seeds", "heads", "head", "bleu_full", *with_ends("delta"), "delta_sd", "p_value", "metric"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, type and layer that has heads: its best head (missing where seeds differ) and its change of BLEU.

    heads: the most that a seed has in the layer; `_low`, `_high`: 95% interval, or range over seeds; `_sd`: over seeds.
    """
    alone = removed(tables, "alone")
    best = alone.sort_values(["bleu", "head"], ascending=[False, True]).groupby([*KEYS, "seed"]).head(1)
    best = best.sort_index().astype(dict.fromkeys(("bleu_full", "delta", "p_value"), float))
    best["heads"] = alone.groupby([*KEYS, "seed"])["head"].transform("size")
    best["head"] = best["head"].where(best.groupby(KEYS)["head"].transform("nunique") == 1)
    values, same = ["delta", "bleu_full", "heads"], {"p_values": "delta", "first": ["metric", "head"]}
    rows = sweep.over_seeds(best, values, KEYS, sort=False, **same)
    rows["heads"] = rows["heads_high"]
    return rows[COLUMNS].astype(dict.fromkeys(("layer", "seeds", "heads", "head"), "Int64"))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row per corpus and layer; per type the difference and, in brackets, the best head; n: seeds."""
    lines = []
    for corpus, same_corpus in style.by(rows, "corpus").items():
        for layer, same in same_corpus.groupby("layer"):
            cells = {style.TYPES[row["type"]][0]: _cell(row) for row in same.to_dict("records")}
            lines.append({"corpus": corpus, "layer": str(layer), "n": str(same["seeds"].max())} | cells)
    kinds = ["encoder"] if set(rows["type"]) == {"encoder"} else list(style.TYPES)
    names = [style.TYPES[kind][0] for kind in kinds]
    return sweep.without_constant(pd.DataFrame(lines, columns=["corpus", "layer", "n", *names]).fillna("–"))


def _cell(row: dict) -> str:
    text = sweep.value_text(row["delta"], sd=row["delta_sd"], digits=2, sign=True)
    if row["p_value"] < paper.SIGNIFICANT:
        text += "*"
    if pd.notna(row["head"]):
        text += f" (head {row['head']}" + (", the only one)" if row["heads"] == 1 else ")")
    return text


def caption(rows: pd.DataFrame) -> str:
    metric = score_name(rows)
    reported = paper.ALONE if metric == "BLEU" else paper.BERT_ALONE
    return CAPTION.format(metric=metric, level=paper.SIGNIFICANT, paper=reported)
