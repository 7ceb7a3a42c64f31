"""Stage: BLEU as heads are removed in order of importance, the least important first (Michel et al. 2019, section 4).

Heads are removed in steps of a share of them, of all three attention types together and of each type by itself. The model
is not trained in between, and importance is that of the whole model: it is not computed anew after a step.
"""

import math
from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.model.transformer import KINDS
from specialized_heads.pruning.ablation import SCORES, Decoded, write_scores
from specialized_heads.pruning.masking import Removal
from specialized_heads.tables import read_table

SCHEMA = pa.schema(
    {"pruned": pa.string(), "removed": pa.int64(), "heads": pa.int64(), "share": pa.float64(), **SCORES}  # type: ignore[arg-type]
)


class Settings(Decoded):
    step: float
    normalise: bool


def ranking(importance: pd.DataFrame, kind: str, *, normalise: bool) -> list[tuple[str, int, int]]:
    """Heads of a type, or of `all`, from the least to the most important; equal ones by type, layer and number.

    Args:
        importance: the table of the stage `importance`.
        kind: "all", "encoder", "decoder" or "cross".
        normalise: whether importance is divided by its norm in the layer.
    """
    rows = importance if kind == "all" else importance[importance["type"] == kind]
    place = rows["type"].map({name: number for number, name in enumerate(KINDS)})
    column = "importance_normalised" if normalise else "importance"
    ordered = rows.assign(place=place).sort_values([column, "place", "layer", "head"])
    return [(row.type, int(row.layer), int(row.head)) for row in ordered.itertuples()]


def steps(heads: int, *, step: float) -> list[int]:
    """How many of the heads are removed at each step: from none to all, each number once.

    A step is a share of the heads, rounded to a whole number, halves up.
    """
    share = Fraction(str(step))  # 0.1 as it was written: ten steps make a whole
    numbers = [math.floor(n * share * heads + Fraction(1, 2)) for n in range(math.ceil(1 / share))]
    return sorted({*numbers, heads})


def removals(importance: pd.DataFrame, *, step: float, normalise: bool) -> list[tuple[dict[str, Any], Removal]]:
    """What is removed at every step, with what the table says of it: pruned (all or a type), removed, heads, share."""
    found = []
    for kind in ("all", *KINDS):
        order = ranking(importance, kind, normalise=normalise)
        for number in steps(len(order), step=step):
            share = number / len(order) if order else 0.0
            row = {"pruned": kind, "removed": number, "heads": len(order), "share": share}
            found.append((row, frozenset(order[:number])))
    return found


def main() -> None:
    files = stage.arguments(__doc__, files=("model", "importance", "tokens", "bpe", "references", "output", "state"))
    settings = Settings.model_validate(files.settings)
    importance = read_table(files.importance).to_pandas()
    wanted = removals(importance, step=settings.step, normalise=settings.normalise)
    write_scores(wanted, settings, files, schema=SCHEMA)


if __name__ == "__main__":
    stage.run(main)
