"""Stage: one table of all models of a corpus: heads left in each layer, scores, size.

Figures 7, 9 and 10, table 2, and the figure and tables `criteria` and `controls`, and the claims read it.
"""

from typing import Literal

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.model.transformer import KINDS
from specialized_heads.stage import Section
from specialized_heads.tables import write_table

# Of `score.json`, in the order of the table's columns.
SCORES = {
    **dict.fromkeys(("bleu", "bleu_low", "bleu_high", "chrf", "p_value"), pa.float64()),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pa.float64()),  # of BLEU, from the baseline's
    **dict.fromkeys(("signature", "signature_chrf"), pa.string()),
    **dict.fromkeys(("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high"), pa.float64()),
    "signature_tokenised": pa.string(),
    "sentences": pa.int64(),
}


class Row(Section):
    """What the path of a model says of it, in the order of `--models` and `--scores`."""

    kind: str  # see `models` of the workflow
    scope: Literal["", "encoder", "all"]
    lam: float | None
    asked: int | None  # number of heads
    criterion: str
    moment: int | None  # of the baseline's training, in updates
    seed: int


class Settings(Section):
    rows: list[Row]


def main() -> None:
    files = stage.arguments(__doc__, files=("output",), many=("models", "scores"))
    settings = Settings.model_validate(files.settings)
    rows = []
    for row, model_path, score_path in zip(settings.rows, files.models, files.scores, strict=True):
        model, score = stage.read_json(model_path), stage.read_json(score_path)
        heads = {f"{kind}_heads": [len(layer) for layer in model["architecture"][kind]] for kind in KINDS}
        rows.append(
            row.model_dump()
            | {key: score[key] for key in SCORES}
            | heads
            | {f"{kind}_total": sum(heads[f"{kind}_heads"]) for kind in KINDS}
            | {
                "parameters": model["parameters"],
                "updates": row.moment or model["training"]["training"]["updates"],  # a checkpoint has had fewer
            }
        )
    columns = {
        "kind": pa.string(),
        "scope": pa.string(),
        "lam": pa.float64(),
        "asked": pa.int64(),
        "criterion": pa.string(),
        "moment": pa.int64(),
        "seed": pa.int64(),
        **SCORES,
        **{f"{kind}_heads": pa.list_(pa.int64()) for kind in KINDS},
        **{f"{kind}_total": pa.int64() for kind in KINDS},
        "parameters": pa.int64(),
        "updates": pa.int64(),
    }
    write_table(files.output, pa.Table.from_pylist(rows, schema=pa.schema(columns)))
    stage.log.info("%d models", len(rows))


if __name__ == "__main__":
    stage.run(main)
