"""Table: the change in BLEU without each single head (Michel et al. 2019, table 1, here for all attention types)."""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.inputs import table
from specialized_heads.report.michel.ablation import numbers
from specialized_heads.report.runs import ABLATION_COLUMNS, SIGNIFICANT, TOO_FEW, Runs
from specialized_heads.report.voita.sweep import value_text
from specialized_heads.stage import run

CAPTION = f"BLEU without a head minus BLEU of the whole model, head by head; *: differs at p < {SIGNIFICANT} (paired bootstrap)"


def shown(heads: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row per corpus, attention type and layer, a column per head; empty where there is no head."""
    names = [str(head) for head in range(1, int(heads["head"].max()) + 1)] if len(heads) else []
    rows = []
    for (corpus, kind, layer), same in heads.groupby(["corpus", "type", "layer"], sort=False):
        row = {"corpus": corpus, "BLEU": f"{same['bleu_full'].iloc[0]:.1f}", "type": style.TYPES[kind][0]}
        for head in same.itertuples():
            row[str(head.head)] = value_text(head.delta, digits=2, sign=True) + "*" * head.significant
        rows.append(row | {"layer": str(layer)})
    return pd.DataFrame(rows, columns=["corpus", "BLEU", "type", "layer", *names]).fillna("")


def caption(heads: pd.DataFrame) -> str:
    return CAPTION + (f"; {TOO_FEW}." if heads.empty else ".")


def main() -> None:
    table(__doc__, numbers, shown, caption, settings=Runs, tables=ABLATION_COLUMNS)


if __name__ == "__main__":
    run(main)
