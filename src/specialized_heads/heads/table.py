"""The table of heads: its columns, and its rows made from what was counted (docs/heads.md describes every column)."""

from typing import Any

import pyarrow as pa

from specialized_heads.experiment.sections import Heads
from specialized_heads.heads import maps, positional, syntactic
from specialized_heads.heads.functions import LEAST_ARCS, functions_of
from specialized_heads.heads.measure import Counted
from specialized_heads.heads.shares import COLUMNS
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.transformer import Transformer
from specialized_heads.tables import HEAD, read_table


def table_schema(relations: list[str]) -> pa.Schema:
    """Columns of `heads/<model>.parquet`, for these relations."""
    columns: list[tuple[str, pa.DataType]] = list(HEAD.items())
    measured = ("relevance", "relevance_error", "confidence", "entropy", "output_norm", "eos_weight")
    columns += [(name, pa.float64()) for name in measured]
    columns += [("positional_offset", pa.int32())]
    columns += [(f"positional_{name}", pa.float64()) for name in ("share", "share_raw", "chance")]
    columns += [(f"share_{offset:+d}", pa.float64()) for offset in positional.NEIGHBOURS]
    for relation, names in zip(relations, syntactic.score_names(relations)):
        columns += [(f"{relation}_arcs", pa.int64())]
        columns += [(name + ending, pa.float64()) for name in names for ending in syntactic.ENDINGS]
    columns += [(name, pa.float64()) for name in COLUMNS]
    columns += [(name, pa.list_(pa.string())) for name in ("functions", "relations", "relations_certain")]
    return pa.schema(columns)


def read_relevance(path: Any) -> dict[tuple[str, int, int], tuple[float, float]]:
    """Read a table of the relevance stage: by the first rule, the relevance of each (type, layer, head) and its error."""
    table = read_table(path)
    rule = next(name for name in table.column_names if name not in HEAD)
    columns = (table[name].to_pylist() for name in (*HEAD, rule, f"{rule}_error"))
    return {(kind, layer, head): found for kind, layer, head, *found in zip(*columns)}


def head_rows(
    model: Transformer,
    counted: Counted,
    relevance: dict[tuple[str, int, int], tuple[float, float]],
    settings: Heads,
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """One row per head, in the order of the attention types."""
    syntax = syntactic_columns(counted, settings, seed=seed)
    names = syntactic.score_names(settings.relations)
    enough = names[counted.arcs.sum(0) >= LEAST_ARCS]
    rows = []
    for kind in KINDS:
        possible, chance = counted.visible[kind]
        for number, (layer, head) in enumerate(maps.head_numbers(model, kind)):
            counts = counted.offsets[kind][number]
            place = positional.preferred(kind, counts, possible)
            row = {"type": kind, "layer": layer, "head": head}
            row |= dict(zip(("relevance", "relevance_error"), relevance[kind, layer, head]))
            row |= {"confidence": counted.confidence[kind][number], "entropy": counted.entropy[kind][number]}
            row["output_norm"] = counted.norm[kind][number]
            row |= {"positional_offset": place.offset, "positional_share": place.share}
            if place.offset is not None:
                row["positional_chance"] = positional.share_at(kind, place.offset, chance, possible)
            if kind != "cross":
                row["positional_share_raw"] = place.share_raw
                for offset in positional.NEIGHBOURS[: 3 if kind == "encoder" else 2]:  # the decoder sees no next token
                    row[f"share_{offset:+d}"] = positional.share_at(kind, offset, counts, possible)
            if kind != "decoder":
                row["eos_weight"] = counted.eos[kind][number]
            if kind == "encoder":
                row |= syntax[number] | {name: shares[number] for name, shares in counted.shares.items()}
            margins = {name: row[f"{name}_margin"] for name in (names.flat if kind == "encoder" else ())}
            row["functions"], relations = functions_of(kind, place, margins=margins, shares=row)
            if kind == "encoder":
                # On other sentences too the head would beat the fixed offset; not corrected for the number of heads.
                certain = [name for name in relations if name in enough and row[f"{name}_margin_low"] > 0]
                row |= {"relations": relations, "relations_certain": certain}
            rows.append(row)
    return rows


def syntactic_columns(counted: Counted, settings: Heads, *, seed: int) -> list[dict[str, float]]:
    """The columns of section 5.2, one dictionary per encoder head."""
    heads = counted.hits.shape[1]
    if not heads:  # all encoder heads are pruned
        return []
    counts = counted.hits, counted.fixed, counted.arcs
    scores = syntactic.bootstrap_intervals(*counts, seed=seed)
    names = syntactic.score_names(settings.relations)
    arcs = {f"{relation}_arcs": int(number) for relation, number in zip(settings.relations, counted.arcs.sum(0)[:, 0])}
    return [
        arcs | {name + end: float(x) for end in scores for name, x in zip(names.flat, scores[end][head].flat)}
        for head in range(heads)
    ]
