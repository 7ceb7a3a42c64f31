"""Table: the best head of each layer and attention type, and BLEU with this head alone in its layer (Michel et al. 2019,
section 3.3).

The best head is chosen on the set it is scored on, which flatters it. With several seeds: mean and standard deviation of
the difference, each seed with its own best head.
"""

import pandas as pd

from specialized_heads.report import paper, style
from specialized_heads.report.output import save_table
from specialized_heads.report.runs import ABLATION_COLUMNS, SIGNIFICANT, TOO_FEW, Runs, read_runs
from specialized_heads.report.sweep import p_of_seeds, spread, value_text
from specialized_heads.stage import arguments, run

CAPTION = (
    "Best head of each layer when it is the only one left there, chosen on this same test set, and BLEU minus that of the whole "
    "model, "
    f"over several seeds (n) mean ± standard deviation; *: differs at p < {SIGNIFICANT} (paired bootstrap; for every seed). "
    f"{paper.ALONE}"
)
COLUMNS = [
    "corpus", "type", "layer", "seeds", "heads", "head", "bleu_full", "delta", "delta_low", "delta_high", "delta_sd",
    "p_value",
]  # fmt: skip


def numbers(tables: pd.DataFrame) -> pd.DataFrame:
    """The best heads.

    Returns:
        one row per corpus, type and layer that has heads: seeds (how many), heads (the most that a seed has there), head
        (its number; missing where seeds differ), bleu_full (mean), delta with `_low` and `_high` (range over seeds)
        and `_sd` (missing where there is one seed), p_value (`sweep.p_of_seeds`).
    """
    alone = tables[tables["what"] == "alone"]
    rows = []
    for (corpus, kind, layer), same in alone.groupby(["corpus", "type", "layer"], sort=False):
        best = same.sort_values(["seed", "bleu", "head"], ascending=[True, False, True]).groupby("seed").head(1)
        row = {"corpus": corpus, "type": kind, "layer": layer, "seeds": len(best)}
        row |= {"heads": same.groupby("seed").size().max(), "bleu_full": best["bleu_full"].mean()}
        row |= {
            "head": best["head"].iloc[0] if best["head"].nunique() == 1 else None,
            "p_value": p_of_seeds(best["p_value"], best["delta"]),
        }
        rows.append(row | spread(best["delta"], "delta") | {"delta_sd": best["delta"].std()})
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.astype(dict.fromkeys(("layer", "seeds", "heads", "head"), "Int64"))


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row per corpus and layer; per type the best head, in brackets, and its difference; n: seeds."""
    table = []
    for (corpus, layer), same in rows.groupby(["corpus", "layer"]):
        cells = {row["type"]: _cell(row) for row in same.to_dict("records")}
        row = {"corpus": corpus, "layer": str(layer), "n": str(same["seeds"].max())}
        table.append(row | {name: cells.get(kind, "–") for kind, (name, _) in style.TYPES.items()})
    places = {corpus: place for place, corpus in enumerate(rows["corpus"].unique())}
    table.sort(key=lambda row: places[row["corpus"]])
    frame = pd.DataFrame(table, columns=["corpus", "layer", "n", *(name for name, _ in style.TYPES.values())])
    return frame.drop(columns="n") if (frame["n"] == "1").all() else frame


def _cell(row: dict) -> str:
    text = value_text(row["delta"], sd=row["delta_sd"], digits=2, sign=True)
    if row["p_value"] < SIGNIFICANT:
        text += "*"
    if pd.notna(row["head"]):
        text += f" (head {row['head']}" + (", the only one)" if row["heads"] == 1 else ")")
    return text


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables"])
    runs = Runs.model_validate(args.settings).runs
    rows = numbers(read_runs(args.tables, runs, columns=ABLATION_COLUMNS))
    save_table(args.output, rows, shown(rows), caption=CAPTION + (f" {TOO_FEW.capitalize()}." if rows.empty else ""))


if __name__ == "__main__":
    run(main)
