"""Stages: criteria of pruning. `cut` keeps as many heads of the baseline as gates left; `finetune`
trains it further.

Criterion "gates" keeps the very heads that gates left, with the baseline's weights; the others keep
the best heads of a table. "random" draws sets of heads and keeps the one with the median
development loss, since one draw says little and BLEU of each would cost a translation. The
description has the development loss of the model, and of all draws. Everything outside the scope
stays bit for bit the same. Scope "all" ranks the three attention types together; ties are broken by
type, layer and head. A head without a value (its confidence was never measured on a real token)
ranks last; a type in which no head has a value is an error.

Updates, schedule and frozen weights of fine-tuning are those of pruning. So a model pruned by gates
differs from one whose heads another criterion chose only by the choice, by gates that train while
they choose, and by its own draws for order and dropout. Fine-tuning also continues controls from
scratch, which so end with as many updates, in as many decays, as pruned models.
"""

import copy
from pathlib import Path
from typing import Literal

import numpy as np

from specialized_heads import stage
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.model.architecture import Head, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, load_on, save
from specialized_heads.pruning.prune import FineTuning, freeze
from specialized_heads.tables import HEAD, read_table
from specialized_heads.training.objective import evaluate
from specialized_heads.training.train import train_and_save


class CutSettings(stage.Section):
    criterion: Literal["gates", "importance", "relevance", "confidence", "random"]
    scope: Literal["encoder", "all"]
    column: str | None  # of the table that ranks them; None: gates and random
    seed: int  # of the random orders
    draws: int = 1  # of them
    device: str


def best_first(path: Path, heads: list[Head], *, column: str) -> list[Head]:
    """These heads by descending value in a column of a table of heads; of equal ones, the first of
    the list comes first."""
    table = read_table(path, columns=(*HEAD, column)).to_pandas()
    values = table.set_index(list(HEAD))[column].reindex(heads)
    known = values.groupby(level=0).count()
    if not known.all():
        raise stage.UserError(
            f"{path}: {column}: no {known.idxmin()} head has a value, so they cannot be ranked; "
            f"remove the criterion from "
            "comparison.criteria, or leave pruning.all and heads_all empty"
        )
    if values.hasnans:
        stage.log.info("%d heads without %s rank last", values.isna().sum(), column)
    return list(values.sort_values(ascending=False, kind="stable").index)


def at_random(heads: list[Head], *, seed: int, draw: int = 0) -> list[Head]:
    """Heads in a random order that depends on seed and draw only; the first n are among the first n
    + 1."""
    return [heads[index] for index in np.random.default_rng([seed, draw]).permutation(len(heads))]


@stage.command("model", "like", "dev", "output", optional=("table",), settings=CutSettings)
def cut(files: stage.Files, settings: CutSettings) -> None:
    model, dev = load_on(files.model, settings.device), load_tokens(files.dev)
    heads = heads_of(model.architecture, scope=settings.scope)
    left = heads_of(architecture_of(files.like), scope=settings.scope)
    if settings.criterion == "gates":
        choices = [left]
    elif settings.criterion == "random":
        orders = (at_random(heads, seed=settings.seed, draw=draw) for draw in range(settings.draws))
        choices = [order[: len(left)] for order in orders]
    else:
        choices = [best_first(files.table, heads, column=settings.column)[: len(left)]]
    losses = []
    for kept in choices:
        candidate = copy.deepcopy(model)
        candidate.remove_heads(set(heads) - set(kept))
        losses.append(evaluate(candidate, dev))
    median = sorted(range(len(losses)), key=losses.__getitem__)[(len(losses) - 1) // 2]
    model.remove_heads(set(heads) - set(choices[median]))
    baseline = stage.read_json(files.model.with_suffix(".json"))["training"]
    described = {**files.settings, "dev_loss": losses[median]}
    if settings.criterion == "random":
        described["dev_losses"] = losses
    save(model, files.output, training={**baseline, "cut": described})
    stage.log.info(
        "%d of %d heads kept; development loss %.3f", len(left), len(heads), losses[median]
    )


class FinetuneSettings(FineTuning):
    before: int = 0  # updates of a control's first part, for its description


@stage.command("model", "train", "dev", "output", "records", "state", settings=FinetuneSettings)
def finetune(files: stage.Files, settings: FinetuneSettings) -> None:
    model = load(files.model, dropout=settings.dropout)
    freeze(model, scope=settings.scope)
    described = stage.read_json(files.model.with_suffix(".json"))["training"]
    cut = {"cut": described["cut"]} if "cut" in described else {}
    job = settings.model_dump(include={"seed", "device"})
    train_and_save(model, settings.training, files, **job, **cut)


stage.no_stage(__name__)
