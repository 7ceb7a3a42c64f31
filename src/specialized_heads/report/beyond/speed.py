"""Table of speed: time saved by removing encoder heads, by sentences per batch. Neither paper reports it for translation.

The speed-up of the encoder compares times of the same batches. The speed-up of translation compares times per target token,
because models differ in how many tokens they generate.
"""

from pathlib import Path

import pandas as pd

from specialized_heads.report.data import Tables, joined

MEASURED = (
    "heads", "sentences", "tokens", "encoder_seconds", "masked_seconds", "translation_seconds", "parameters", "device",
)  # fmt: skip
FILES = ("speed",)
CAPTION = (
    "Time per batch with encoder heads removed from the weights, and, for the encoder, with the same heads multiplied by "
    "zero; speed-up relative to the model with all heads, for translation per target token"
)


def numbers(tables: Tables, speed: dict[str, Path]) -> pd.DataFrame:
    """The rows of `speed.parquet` of each corpus, with the speed-up of the encoder and of translation."""
    rows = joined(speed, MEASURED)
    whole = rows.loc[rows.groupby(["corpus", "sentences"])["heads"].transform("idxmax")].set_index(rows.index)
    rows["encoder_speedup"] = whole["encoder_seconds"] / rows["encoder_seconds"]
    per_token = [table["translation_seconds"] / table["tokens"] for table in (whole, rows)]
    return rows.assign(translation_speedup=per_token[0] / per_token[1])


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text."""
    return pd.DataFrame(
        {
            "corpus": row.corpus,
            "sentences": f"{row.sentences:,}",
            "encoder heads": str(row.heads),
            "parameters": f"{row.parameters:,}",
            "encoder, ms": f"{1000 * row.encoder_seconds:.1f}",
            "speed-up": f"{row.encoder_speedup:.2f}",
            "masked, ms": "" if pd.isna(row.masked_seconds) else f"{1000 * row.masked_seconds:.1f}",
            "translation, ms": f"{1000 * row.translation_seconds:.0f}",
            "tokens/s": f"{row.tokens / row.translation_seconds:,.0f}",
            "speed-up per token": f"{row.translation_speedup:.2f}",
        }
        for row in rows.itertuples()
    )


def caption(rows: pd.DataFrame) -> str:
    return f"{CAPTION} ({', '.join(rows['device'].unique())})."
