"""Stage: collect the remaining heads, scores and size of all models of a corpus in one table.

Figures 7, 9 and 10, table 2, the figure and tables `criteria` and `controls`, and the claims read it.
"""

from typing import Literal

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.model.architecture import KINDS
from specialized_heads.tables import write_table

# Columns from `score.json`.
SCORES = {
    **dict.fromkeys(("bleu", "bleu_low", "bleu_high", "chrf", "p_value"), pa.float64()),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pa.float64()),  # of BLEU, from the baseline
    **dict.fromkeys(("signature", "signature_chrf"), pa.string()),
    **dict.fromkeys(("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high"), pa.float64()),
    "signature_tokenised": pa.string(),
    "sentences": pa.int64(),
}

# Of a model pruned with gates, in `model.json`; see `pruning.prune`.
GATES = ("expected", "decided", "loss_hard", "loss_soft")


class Row(stage.Section):
    """One model, as described by its path."""

    kind: str  # see `models` of the workflow
    scope: Literal["", "encoder", "all"]
    lam: float | None
    asked: int | None  # target number of heads
    criterion: str
    moment: int | None  # of the baseline's training, in updates
    seed: int


class Settings(stage.Section):
    rows: list[Row]  # in the order of `--models` and `--scores`


@stage.command("output", many=("models", "scores"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    rows = []
    for row, model_path, score_path in zip(settings.rows, files.models, files.scores, strict=True):
        model, score = stage.read_json(model_path), stage.read_json(score_path)
        heads = {kind: [len(layer) for layer in model["architecture"][kind]] for kind in KINDS}
        values = row.model_dump() | {key: score[key] for key in SCORES}
        values |= {f"{kind}_heads": layers for kind, layers in heads.items()}
        values |= {f"{kind}_total": sum(layers) for kind, layers in heads.items()}
        values |= {f"gates_{key}": model["training"].get("gates", {}).get(key) for key in GATES}
        trained = model["training"].get("training", {})
        updates = row.moment or trained.get("updates", 0)  # a checkpoint has fewer; an imported model none of ours
        rows.append(values | {"parameters": model["parameters"], "updates": updates})
    columns = dict.fromkeys(Row.model_fields, pa.string()) | {"lam": pa.float64(), **SCORES}
    columns |= {f"{kind}_heads": pa.list_(pa.int64()) for kind in KINDS}
    columns |= {f"{kind}_total": pa.int64() for kind in KINDS}
    columns |= dict.fromkeys(("asked", "moment", "seed", "parameters", "updates"), pa.int64())
    columns |= {f"gates_{key}": pa.float64() for key in GATES}
    write_table(files.output, pa.Table.from_pylist(rows, schema=pa.schema(columns)))
    stage.log.info("%d models", len(rows))
