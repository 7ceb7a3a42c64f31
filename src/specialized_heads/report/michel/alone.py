"""Table: the best head of each layer and attention type, and BLEU with this head alone in its layer (Michel et al. 2019,
section 3.3).

The best head is chosen on the test set on which it is scored, which flatters it. With several seeds, each seed has its own best
head, and the table shows mean and standard deviation of the difference.
"""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.inputs import table
from specialized_heads.report.runs import ABLATION_COLUMNS, SIGNIFICANT, TOO_FEW, Runs
from specialized_heads.report.voita import paper, sweep
from specialized_heads.stage import run

CAPTION = (
    "The best head of each layer, chosen on this same test set: BLEU when it is the only head left in the layer minus BLEU of "
    "the whole model, "
    f"over several seeds (n) mean ± standard deviation; *: differs at p < {SIGNIFICANT} (paired bootstrap; for every seed). "
    f"{paper.ALONE}"
)
KEYS = ["corpus", "type", "layer"]
COLUMNS = [*KEYS, "seeds", "heads", "head", "bleu_full", "delta", "delta_low", "delta_high", "delta_sd", "p_value"]


def numbers(tables: pd.DataFrame) -> pd.DataFrame:
    """The best heads.

    Returns:
        one row per corpus, type and layer that has heads: seeds (how many), heads (the most that a seed has there), head (its
        number; missing where seeds differ), bleu_full (mean), delta with `_low` and `_high` (range over seeds) and `_sd`
        (missing for one seed), p_value (`sweep.p_of_seeds`).
    """
    alone = tables[tables["what"] == "alone"]
    best = alone.sort_values(["bleu", "head"], ascending=[False, True]).groupby([*KEYS, "seed"]).head(1)
    best = best.sort_index().astype(dict.fromkeys(("bleu_full", "delta", "p_value"), float))
    rows = sweep.over_seeds(best, ["delta", "bleu_full"], KEYS, sort=False, p_values="delta")
    chosen = best.groupby(KEYS, sort=False)
    rows["delta_sd"] = chosen["delta"].std().to_numpy()
    rows["head"] = chosen["head"].first().where(chosen["head"].nunique() == 1).to_numpy()
    heads = alone.groupby([*KEYS, "seed"], sort=False).size().groupby(KEYS, sort=False).max()
    rows["heads"] = heads.to_numpy()
    return rows[COLUMNS].astype(dict.fromkeys(("layer", "seeds", "heads", "head"), "Int64"))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row per corpus and layer; per type the difference and, in brackets, the best head; n: seeds."""
    lines = []
    for corpus, same_corpus in style.by(rows, "corpus").items():
        for layer, same in same_corpus.groupby("layer"):
            cells = {style.TYPES[row["type"]][0]: _cell(row) for row in same.to_dict("records")}
            lines.append({"corpus": corpus, "layer": str(layer), "n": str(same["seeds"].max())} | cells)
    names = [name for name, _ in style.TYPES.values()]
    cells = pd.DataFrame(lines, columns=["corpus", "layer", "n", *names]).fillna("–")
    return cells.drop(columns="n") if (cells["n"] == "1").all() else cells


def _cell(row: dict) -> str:
    text = sweep.value_text(row["delta"], sd=row["delta_sd"], digits=2, sign=True)
    if row["p_value"] < SIGNIFICANT:
        text += "*"
    if pd.notna(row["head"]):
        text += f" (head {row['head']}" + (", the only one)" if row["heads"] == 1 else ")")
    return text


def caption(rows: pd.DataFrame) -> str:
    return CAPTION + (f" {TOO_FEW.capitalize()}." if rows.empty else "")


def main() -> None:
    table(__doc__, numbers, shown, caption, settings=Runs, tables=ABLATION_COLUMNS)


if __name__ == "__main__":
    run(main)
