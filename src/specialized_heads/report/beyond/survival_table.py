"""The numbers of the survival figure as a table: one row per model and attention type, one column per score."""

import pandas as pd

from specialized_heads.report import experiment
from specialized_heads.report.beyond import survival
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, run

CAPTION = (
    "Survival of heads under pruning: area under the ROC curve with which a score of the unpruned model tells heads that survive "
    "from heads that do not (Newcombe's 95% interval; p: two-sided, by permutation, not corrected for the number of scores and "
    "models). 0.5 is chance; below it, lower scores survive. With a single head on one side there is no interval. specialised: "
    "whether the head has a function; layer: its layer, for reference, because scores differ by depth. The last row of a block "
    "compares heads by the number of models in which they survive, without an interval."
)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text; a dash where all heads survive or none, or where all have the same score."""
    lines = []
    for (scope, kind, target), same in rows.groupby(["scope", "type", "target"], sort=False):
        first = same.iloc[0]
        survivors = "" if pd.isna(first["survivors"]) else f"{first['survivors']} of {first['heads']}"
        line = {"scope": experiment.SCOPES[scope], "type": kind, "model": target, "survivors": survivors}
        line["with a function"] = str(first["labelled"])
        lines.append(line | {row["score"]: _text(row) for row in same.to_dict("records")})
    columns = ["scope", "type", "model", "survivors", "with a function", *survival.SCORES]
    return pd.DataFrame(lines, columns=columns).fillna("")


def _text(row: dict) -> str:
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
