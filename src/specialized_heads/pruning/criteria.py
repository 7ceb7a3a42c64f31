"""Which heads to keep: the heads of a scope in the order of a criterion, best first.

A criterion gives every head of a model one number. Only the heads of the scope are ranked; with scope "all" those of the
three attention types stand in one order. Equal numbers are broken by type, layer and head. A head without a number (no
confidence, since it was never measured on a real token) is taken for the worst; a type none of whose heads has one cannot be
compared, which is an error.
"""

from pathlib import Path

import numpy as np

from specialized_heads.pruning.scopes import Head
from specialized_heads.stage import UserError
from specialized_heads.tables import read_table


def values_of(path: Path, heads: list[Head], *, column: str) -> dict[Head, float]:
    """What a table says of these heads.

    Args:
        path: parquet table with the columns type, layer and head, one row per head.
        heads: whose values are wanted.
        column: of the value.

    Returns:
        the value of each head, in the order of `heads`; NaN where it is undefined.

    Raises:
        UserError: the file or the column is missing, or a head has not exactly one row.
    """
    table = read_table(path, columns=("type", "layer", "head", column)).to_pandas()
    names = list(zip(table["type"], table["layer"].astype(int), table["head"].astype(int)))
    for kind, layer, head in heads:
        if (rows := names.count((kind, layer, head))) != 1:
            raise UserError(
                f"{path}: {kind} head {head} of layer {layer} has {rows} rows instead of one; delete it and run again"
            )
    values = dict(zip(names, table[column].astype(float)))
    return {head: values[head] for head in heads}


def best_first(values: dict[Head, float], *, origin: str) -> list[Head]:
    """Heads by descending value.

    Args:
        values: of each head, in the order in which equal values stay.
        origin: file and column, for the error message.

    Raises:
        UserError: all heads of a type have no value.
    """
    for kind in {kind: None for kind, _, _ in values}:
        own = [value for (other, _, _), value in values.items() if other == kind]
        if np.isnan(own).all():
            raise UserError(
                f"{origin}: no {kind} head has a value, so that they cannot be ranked; take the criterion out of "
                "comparison.criteria, or leave pruning.heads_all empty"
            )
    return sorted(values, key=lambda head: -np.inf if np.isnan(values[head]) else values[head], reverse=True)


def at_random(heads: list[Head], *, seed: int) -> list[Head]:
    """Heads in a random order that depends on the seed alone; the first n and the first n + 1 differ by one head."""
    return [heads[index] for index in np.random.default_rng(seed).permutation(len(heads))]
