"""Rank the heads of a scope by a criterion, best first.

A criterion gives every head one number. Only the heads of the scope are ranked; scope "all" ranks the three attention types
together. Ties are broken by type, layer and head. A head without a value (its confidence was never measured on a real token)
ranks last; a type in which no head has a value cannot be compared and is an error.
"""

from pathlib import Path

import numpy as np

from specialized_heads.pruning.scopes import Head
from specialized_heads.stage import UserError
from specialized_heads.tables import read_table


def values_of(path: Path, heads: list[Head], *, column: str) -> dict[Head, float]:
    """The values of these heads, in their order, from a column of a table of heads; NaN where one is undefined."""
    table = read_table(path, columns=("type", "layer", "head", column)).to_pandas()
    names = list(zip(table["type"], table["layer"].astype(int), table["head"].astype(int)))
    values = dict(zip(names, table[column].astype(float)))
    return {head: values[head] for head in heads}


def best_first(values: dict[Head, float], *, origin: str) -> list[Head]:
    """Heads by descending value; of equal ones, the first of `values` comes first. Errors name `origin`, file and column."""
    for kind in dict.fromkeys(kind for kind, _, _ in values):
        if np.isnan([value for head, value in values.items() if head[0] == kind]).all():
            raise UserError(
                f"{origin}: no {kind} head has a value, so they cannot be ranked; remove the criterion from "
                "comparison.criteria, or leave pruning.heads_all empty"
            )
    return sorted(values, key=lambda head: -np.inf if np.isnan(values[head]) else values[head], reverse=True)


def at_random(heads: list[Head], *, seed: int) -> list[Head]:
    """Heads in a random order that depends on the seed only; the first n are among the first n + 1."""
    return [heads[index] for index in np.random.default_rng(seed).permutation(len(heads))]
