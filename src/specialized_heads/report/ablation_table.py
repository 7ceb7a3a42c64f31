"""Table: the difference in BLEU without each single head (Michel et al. 2019, table 1, here for all attention types)."""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.ablation import numbers
from specialized_heads.report.output import save_table
from specialized_heads.report.runs import ABLATION_COLUMNS, SIGNIFICANT, TOO_FEW, Runs, read_runs
from specialized_heads.stage import arguments, run

CAPTION = f"BLEU without a head minus BLEU of the whole model, head by head; *: differs at p < {SIGNIFICANT} (paired bootstrap)"


def shown(heads: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row per corpus, attention type and layer, a column per head; empty where there is none."""
    widest = int(heads["head"].max()) if len(heads) else 0
    rows = []
    for (corpus, kind, layer), same in heads.groupby(["corpus", "type", "layer"], sort=False):
        row = {"corpus": corpus, "BLEU": f"{same['bleu_full'].iloc[0]:.1f}", "type": style.TYPES[kind][0]}
        row |= {"layer": str(layer)} | {str(head): "" for head in range(1, widest + 1)}
        for head in same.to_dict("records"):
            row[str(head["head"])] = change(head["delta"]) + ("*" if head["significant"] else "")
        rows.append(row)
    columns = ["corpus", "BLEU", "type", "layer", *(str(head) for head in range(1, widest + 1))]
    return pd.DataFrame(rows, columns=columns)


def change(delta: float) -> str:
    """A difference in BLEU with its sign."""
    return f"{delta:+.2f}".replace("-", "−")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables"])
    runs = Runs.model_validate(args.settings).runs
    heads = numbers(read_runs(args.tables, runs, columns=ABLATION_COLUMNS))
    save_table(args.output, heads, shown(heads), caption=CAPTION + (f"; {TOO_FEW}." if heads.empty else "."))


if __name__ == "__main__":
    run(main)
