"""The table of heads: its columns, and its rows out of what was counted (docs/heads.md describes every column)."""

from typing import Any

import numpy as np
import pyarrow as pa

from specialized_heads.heads import maps, positional, syntactic
from specialized_heads.heads.functions import decoder_functions_of, functions_of
from specialized_heads.heads.measure import Counted
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.sections import Heads
from specialized_heads.stage import UserError
from specialized_heads.tables import read_table

KEY = ("type", "layer", "head")


def table_schema(relations: list[str], rules: list[str]) -> pa.Schema:
    """Columns of `heads/<model>.parquet`, for these relations and rules of relevance."""
    columns: list[tuple[str, pa.DataType]] = [("type", pa.string()), ("layer", pa.int32()), ("head", pa.int32())]
    columns += [(name, pa.float64()) for name in relevance_columns(rules)]
    columns += [(name, pa.float64()) for name in ("confidence", "entropy", "eos_weight")]
    columns += [
        ("positional_offset", pa.int32()),
        ("positional_share", pa.float64()),
        ("positional_chance", pa.float64()),
        ("positional_ceiling", pa.float64()),
    ]
    for relation in relations:
        columns.append((f"{relation}_arcs", pa.int64()))
        for direction in DIRECTIONS:
            ends = ("", "_low", "_high", "_baseline", "_margin", "_margin_low", "_margin_high")
            columns += [(f"{relation}_{direction}{end}", pa.float64()) for end in ends]
    columns += [("rarest", pa.float64()), ("two_rarest", pa.float64())]
    columns += [(name, pa.list_(pa.string())) for name in ("functions", "relations", "relations_certain")]
    return pa.schema(columns)


def relevance_columns(rules: list[str]) -> list[str]:
    """How the rules of relevance are called in the table: the first one is the relevance."""
    return ["relevance", *(f"relevance_{rule}" for rule in rules[1:])]


def read_relevance(path: Any) -> tuple[dict[tuple[str, int, int], dict[str, float]], list[str]]:
    """Read a table of the relevance stage.

    Returns:
        per (type, layer, head), the columns of `relevance_columns`; and the rules, in the order of the file.

    Raises:
        UserError: there is no such file, or it holds no rule.
    """
    table = read_table(path)
    rules = [name for name in table.column_names if name not in KEY]
    if len(rules) + len(KEY) != table.num_columns or not rules:
        raise UserError(f"{path}: not a table of relevances; delete it and run again")
    columns = relevance_columns(rules)
    rows = table.to_pylist()
    values = {
        tuple(row[name] for name in KEY): {column: row[rule] for column, rule in zip(columns, rules)} for row in rows
    }
    return values, rules


def head_rows(
    model: Transformer,
    counted: Counted,
    relevance: dict[tuple[str, int, int], dict[str, float]],
    baselines: dict[str, float],
    settings: Heads,
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """One row per head, in the order of the attention types.

    Args:
        model: whose heads they are.
        counted: from `measure`.
        relevance: from `read_relevance`.
        baselines: accuracy of the best fixed offset by `<relation>_<direction>`, NaN without arcs.
        settings: relations and thresholds.
        seed: of the bootstrap.

    Raises:
        UserError: a head has no relevance.
    """
    syntax = syntactic_columns(counted, baselines, settings, seed=seed)
    rows = []
    for kind in KINDS:
        for number, (layer, head) in enumerate(maps.head_numbers(model, kind)):
            if (kind, layer, head) not in relevance:
                raise UserError(
                    f"the table of relevances has no {kind} head {layer}-{head}: it is of another model; delete it and run again"
                )
            offset, share = positional.preferred(kind, counted.offsets[kind][number])
            row = {"type": kind, "layer": layer, "head": head, **relevance[kind, layer, head]}
            row |= {"confidence": counted.confidence[kind][number], "entropy": counted.entropy[kind][number]}
            row |= {"positional_offset": offset, "positional_share": share}
            if offset is not None:
                row["positional_chance"] = positional.share_at(kind, offset, counted.chance[kind])
            if kind != "decoder":
                row["eos_weight"] = counted.eos[kind][number]
            if kind != "cross" and offset is not None:
                row["positional_ceiling"] = positional.ceiling(kind, offset, counted.lengths[kind])
            if kind == "encoder":
                row |= syntax[number] | {
                    "rarest": counted.rarest[number],
                    "two_rarest": counted.two_rarest[number],
                }
                row |= encoder_labels(row, baselines, settings)
            else:
                row["functions"] = decoder_functions_of(
                    kind, offset=offset, positional_share=share, positional_threshold=settings.positional_share
                )
            rows.append(row)
    return rows


def syntactic_columns(
    counted: Counted, baselines: dict[str, float], settings: Heads, *, seed: int
) -> list[dict[str, float]]:
    """The columns of section 5.2, one dictionary per encoder head."""
    if not counted.hits.shape[1]:  # all encoder heads are pruned
        return []
    found = syntactic.bootstrap_intervals(
        counted.hits, counted.fixed, counted.arcs, samples=settings.bootstrap, seed=seed
    )
    arcs = counted.arcs.sum(0)  # (R, 2)
    rows = []
    for accuracy, low, high, margin, margin_low, margin_high in zip(*found):  # (R, 2) each
        row: dict[str, float] = {}
        for r, relation in enumerate(settings.relations):
            row[f"{relation}_arcs"] = int(arcs[r, 0])
            for d, direction in enumerate(DIRECTIONS):
                name = f"{relation}_{direction}"
                row |= {name: float(accuracy[r, d]), f"{name}_low": float(low[r, d]), f"{name}_high": float(high[r, d])}
                row |= {f"{name}_baseline": baselines[name], f"{name}_margin": float(margin[r, d])}
                row |= {f"{name}_margin_low": float(margin_low[r, d]), f"{name}_margin_high": float(margin_high[r, d])}
        rows.append(row)
    return rows


def encoder_labels(row: dict[str, Any], baselines: dict[str, float], settings: Heads) -> dict[str, list[str]]:
    """The functions of an encoder head, from its other columns.

    A relation is certain if there are enough arcs and the whole interval of the margin is above zero: on other sentences of this
    kind the head would do better than the fixed offset too. Nothing is corrected for the number of heads.
    """
    functions, relations = functions_of(
        positional_share=row["positional_share"],
        accuracies={name: row[name] for name in baselines},
        baselines=baselines,
        rarest=row["rarest"],
        positional_threshold=settings.positional_share,
        margin=settings.syntactic_margin,
        rare_threshold=settings.rare_share,
    )
    enough = {
        f"{relation}_{direction}": row[f"{relation}_arcs"] >= settings.least_arcs
        for relation in settings.relations
        for direction in DIRECTIONS
    }
    certain = [name for name in relations if enough[name] and row[f"{name}_margin_low"] > 0]
    return {"functions": functions, "relations": relations, "relations_certain": certain}


def baseline_offsets(table: pa.Table) -> dict[tuple[str, str], int | None]:
    """The best fixed offset by relation and direction, from `relation_table`; None without arcs."""
    return {(row["relation"], row["direction"]): row["baseline_offset"] for row in table.to_pylist()}


def baseline_accuracies(table: pa.Table) -> dict[str, float]:
    """The accuracy of the best fixed offset by `<relation>_<direction>`, from `relation_table`; NaN without arcs."""
    return {
        f"{row['relation']}_{row['direction']}": row["baseline_accuracy"] if row["arcs"] else np.nan
        for row in table.to_pylist()
    }
