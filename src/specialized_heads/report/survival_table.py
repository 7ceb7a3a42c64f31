"""The numbers of the survival figure as a table: one row per model along the sweep and attention type, one column per score."""

import pandas as pd

from specialized_heads.report import pruned, survival
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, run

CAPTION = (
    "Survival of heads under pruning: area under the ROC curve (Newcombe's 95% interval; p: two-sided, by permutation, not "
    "corrected for the number of scores and models) with which a score of the unpruned model tells the heads that survive from "
    "those that do not; 0.5 is chance, below it lower scores survive. One head alone has no interval. specialised: whether the "
    "head has a function; layer: its layer, for reference, since scores differ by depth. The last row of a block compares "
    "heads by the number of models in which they survive, without an interval."
)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; a dash stands where all heads survive or none, or where all have the same score."""
    lines = []
    for (scope, kind, target), own in rows.groupby(["scope", "type", "target"], sort=False):
        first = own.iloc[0]
        line = {"scope": pruned.SCOPES[scope], "type": kind, "model": target}
        line["survivors"] = "" if pd.isna(first["survivors"]) else f"{first['survivors']} of {first['heads']}"
        line["with a function"] = str(first["labelled"])
        for score in survival.SCORES:
            found = own[own["score"] == score]
            line[score] = "" if found.empty else _text(found.iloc[0])
        lines.append(line)
    columns = ["scope", "type", "model", "survivors", "with a function", *survival.SCORES]
    return pd.DataFrame(lines, columns=columns)


def _text(row: pd.Series) -> str:
    if pd.isna(row["auc"]):
        return "–"
    interval = "" if pd.isna(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    p_value = "p < 0.001" if row["p_value"] < 0.001 else f"p {row['p_value']:.3f}"
    return f"{row['auc']:.2f}{interval}, {p_value}"


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads", "models"])
    settings = survival.Settings.model_validate(args.settings)
    rows = survival.read_inputs(args, settings)
    save_table(args.output, rows, shown(rows), caption=f"{settings.title}. {CAPTION}")


if __name__ == "__main__":
    run(main)
