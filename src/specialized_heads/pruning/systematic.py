"""Stage: BLEU as heads are removed in order of importance, the least important first (Michel et al. 2019, section 4).

Each step removes a share of the heads, of all three attention types together and of each type separately. The model is not
trained in between, and importance is that of the whole model, not recomputed after a step. Of a model in the middle of its
training only the heads of all types together matter (section 6).
"""

from typing import Any

import pandas as pd
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.model.architecture import KINDS, Head
from specialized_heads.pruning.ablation import SCORES, Decoded, write_scores
from specialized_heads.pruning.masking import Removal
from specialized_heads.tables import read_table

SCHEMA = pa.schema({"pruned": pa.string(), "removed": pa.int64(), "heads": pa.int64(), "share": pa.float64()} | SCORES)
STEPS = 10  # as in the paper


class Settings(Decoded):
    by_type: bool  # also the heads of each type separately


def ranking(importance: pd.DataFrame, kind: str) -> list[Head]:
    """Heads of a type, or of "all", from the least to the most important; ties by type, layer and number.

    By importance divided by its norm in the layer, as in the paper.
    """
    rows = importance if kind == "all" else importance[importance["type"] == kind]
    places = rows.assign(place=rows["type"].map(KINDS.index))
    ordered = places.sort_values(["importance_normalised", "place", "layer", "head"])
    return [(row.type, int(row.layer), int(row.head)) for row in ordered.itertuples()]


def steps(heads: int) -> list[int]:
    """The numbers of heads removed, from none to all, without duplicates; halves are rounded up."""
    return sorted({(2 * n * heads + STEPS) // (2 * STEPS) for n in range(STEPS + 1)})


def removals(importance: pd.DataFrame, *, by_type: bool) -> list[tuple[dict[str, Any], Removal]]:
    """The heads removed at every step, with their row of the table: pruned (all or a type), removed, heads, share."""
    rows = []
    for kind in ("all", *KINDS) if by_type else ("all",):
        order = ranking(importance, kind)
        for number in steps(len(order)):
            share = number / len(order) if order else 0.0
            row = {"pruned": kind, "removed": number, "heads": len(order), "share": share}
            rows.append((row, frozenset(order[:number])))
    return rows


@stage.command("model", "importance", "tokens", "bpe", "references", "output", "state", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    importance = read_table(files.importance).to_pandas()
    wanted = removals(importance, by_type=settings.by_type)
    write_scores(wanted, settings, files, schema=SCHEMA)
