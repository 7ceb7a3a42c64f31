"""Stages: criteria of pruning. `cut` keeps as many heads of the baseline as gates left; `finetune` trains the cut model further.

Criterion "gates" keeps the very heads that gates left, with the baseline's weights; the others keep the best heads of a table
or, for "random", the first of a random order. Everything outside the scope stays bit for bit the same.
Scope "all" ranks the three attention types together; ties are broken by type, layer and head. A head without a value (its
confidence was never measured on a real token) ranks last; a type in which no head has a value is an error.

Updates, schedule and frozen weights of fine-tuning are those of pruning. So a model pruned by gates differs from one whose heads
another criterion chose only by the choice, by gates that train while they choose, and by its own draws for order and dropout.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from specialized_heads import stage
from specialized_heads.model.architecture import Head, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.pruning.prune import FineTuning, freeze
from specialized_heads.tables import HEAD, read_table
from specialized_heads.training.train import train_and_save


class CutSettings(stage.Section):
    criterion: Literal["gates", "importance", "relevance", "confidence", "random"]
    scope: Literal["encoder", "all"]
    column: str | None  # of the table that ranks them; None: gates and random
    seed: int  # of the random order


def best_first(path: Path, heads: list[Head], *, column: str) -> list[Head]:
    """These heads by descending value in a column of a table of heads; of equal ones, the first of the list comes first."""
    table = read_table(path, columns=(*HEAD, column)).to_pandas()
    values = table.set_index(list(HEAD))[column].reindex(heads)
    known = values.groupby(level=0).count()
    if not known.all():
        raise stage.UserError(
            f"{path}: {column}: no {known.idxmin()} head has a value, so they cannot be ranked; remove the criterion from "
            "comparison.criteria, or leave pruning.all and heads_all empty"
        )
    if values.hasnans:
        stage.log.info("%d heads without %s rank last", values.isna().sum(), column)
    return list(values.sort_values(ascending=False, kind="stable").index)


def at_random(heads: list[Head], *, seed: int) -> list[Head]:
    """Heads in a random order that depends on the seed only; the first n are among the first n + 1."""
    return [heads[index] for index in np.random.default_rng(seed).permutation(len(heads))]


@stage.command("model", "like", "output", optional=("table",), settings=CutSettings)
def cut(files: stage.Files, settings: CutSettings) -> None:
    model = load(files.model)
    heads = heads_of(model.architecture, scope=settings.scope)
    left = heads_of(architecture_of(files.like), scope=settings.scope)
    if settings.criterion == "gates":
        kept = left
    elif settings.criterion == "random":
        kept = at_random(heads, seed=settings.seed)[: len(left)]
    else:
        kept = best_first(files.table, heads, column=settings.column)[: len(left)]
    model.remove_heads(set(heads) - set(kept))
    baseline = stage.read_json(files.model.with_suffix(".json"))["training"]
    save(model, files.output, training={**baseline, "cut": files.settings})
    stage.log.info("%d of %d heads kept", len(kept), len(heads))


@stage.command("model", "train", "dev", "output", "records", "state", settings=FineTuning)
def finetune(files: stage.Files, settings: FineTuning) -> None:
    model = load(files.model, dropout=settings.dropout)
    freeze(model, scope=settings.scope)
    described = stage.read_json(files.model.with_suffix(".json"))["training"]
    job = settings.model_dump(include={"seed", "device"})
    train_and_save(model, settings.training, files, **job, cut=described["cut"])


stage.no_stage(__name__)
