"""Stage: keep as many heads of the baseline as pruning with gates left, chosen by a criterion; nothing is trained.

Criterion "gates" keeps the very heads that gates left, with the baseline's weights; the others keep the best heads of a table
or, for "random", the first of a random order. Everything outside the scope stays bit for bit the same.
Scope "all" ranks the three attention types together; ties are broken by type, layer and head. A head without a value (its
confidence was never measured on a real token) ranks last; a type in which no head has a value is an error.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.pruning.scopes import Head, heads_of, remove_heads
from specialized_heads.tables import read_table


class Settings(stage.Section):
    criterion: Literal["gates", "importance", "relevance", "confidence", "random"]
    scope: Literal["encoder", "all"]
    column: str | None  # of the table that ranks them; None: gates and random
    seed: int  # of the random order


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
            raise stage.UserError(
                f"{origin}: no {kind} head has a value, so they cannot be ranked; remove the criterion from "
                "comparison.criteria, or leave pruning.all and heads_all empty"
            )
    return sorted(values, key=lambda head: -np.inf if np.isnan(values[head]) else values[head], reverse=True)


def at_random(heads: list[Head], *, seed: int) -> list[Head]:
    """Heads in a random order that depends on the seed only; the first n are among the first n + 1."""
    return [heads[index] for index in np.random.default_rng(seed).permutation(len(heads))]


@stage.command("model", "like", "output", optional=("table",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load(files.model)
    heads = heads_of(model.architecture, scope=settings.scope)
    left = heads_of(architecture_of(files.like), scope=settings.scope)
    if not set(left) <= set(heads):
        raise stage.UserError(f"{files.like}: some of its heads are not in {files.model}; prune again")
    if settings.criterion == "gates":
        kept = left
    elif settings.criterion == "random":
        kept = at_random(heads, seed=settings.seed)[: len(left)]
    else:
        values = values_of(files.table, heads, column=settings.column)
        undefined = sum(value != value for value in values.values())
        if undefined:
            stage.log.info("%d heads without %s rank last", undefined, settings.criterion)
        kept = best_first(values, origin=f"{files.table}: {settings.column}")[: len(left)]
    remove_heads(model, set(heads) - set(kept))
    baseline = stage.read_json(files.model.with_suffix(".json"))["training"]
    save(model, files.output, training={**baseline, "cut": files.settings})
    stage.log.info("%d of %d heads kept", len(kept), len(heads))
