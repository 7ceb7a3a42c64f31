"""Table of speed: what removing encoder heads saves, by sentences per batch. Neither paper has it for translation.

The speed-up of the encoder compares times of the same batches. The speed-up of translation compares times per target
token, since models differ in how much they say.
"""

from pathlib import Path

import pandas as pd

from specialized_heads.report.inputs import Titles, read_all
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, run

MEASURED = (
    "heads", "sentences", "tokens", "encoder_seconds", "masked_seconds", "translation_seconds", "parameters", "device",
)  # fmt: skip
COLUMNS = ["corpus", *MEASURED, "encoder_speedup", "translation_speedup"]
CAPTION = (
    "Time per batch with encoder heads removed from the weights, and, for the encoder, with the same heads multiplied by "
    "zero; speed-up against the model with all heads, of translation per target token"
)


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of `speed.parquet` of every corpus, with the speed-up of the encoder and of translation."""
    frames = []
    for title, measured in tables.items():
        for _, group in measured.groupby("sentences", sort=False):
            whole = group.loc[group["heads"].idxmax()]
            per_token = group["translation_seconds"] / group["tokens"]
            frames.append(
                group.assign(
                    corpus=title,
                    encoder_speedup=whole["encoder_seconds"] / group["encoder_seconds"],
                    translation_speedup=whole["translation_seconds"] / whole["tokens"] / per_token,
                )
            )
    return pd.concat(frames, ignore_index=True)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text."""
    return pd.DataFrame(
        {
            "corpus": row["corpus"],
            "sentences": f"{row['sentences']:,}",
            "encoder heads": str(row["heads"]),
            "parameters": f"{row['parameters']:,}",
            "encoder, ms": f"{1000 * row['encoder_seconds']:.1f}",
            "speed-up": f"{row['encoder_speedup']:.2f}",
            "masked, ms": "" if pd.isna(row["masked_seconds"]) else f"{1000 * row['masked_seconds']:.1f}",
            "translation, ms": f"{1000 * row['translation_seconds']:.0f}",
            "tokens/s": f"{row['tokens'] / row['translation_seconds']:,.0f}",
            "speed-up per token": f"{row['translation_speedup']:.2f}",
        }
        for row in rows.to_dict("records")
    )


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["speed"])
    titles = Titles.model_validate(args.settings).titles
    tables = read_all(list(map(Path, args.speed)), titles, columns=MEASURED)
    rows = numbers(tables)
    devices = ", ".join(dict.fromkeys(rows["device"]))
    save_table(args.output, rows, shown(rows), caption=f"{CAPTION} ({devices}).")


if __name__ == "__main__":
    run(main)
