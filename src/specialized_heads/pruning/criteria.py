"""Stages: criteria of pruning. `importance` scores every head, `cut` keeps as many heads of the
baseline as the gates left, and `finetune` trains the resulting model further.

Importance (Michel et al. 2019, section 4.1) takes one forward and backward pass. Multiply a head's
output by a mask ξ_h: I_h measures how the loss changes with ξ_h near 1. By the chain rule ∂L/∂ξ_h
is the product of the head's output (its context) and its gradient, summed over positions. Here the
absolute value is taken at each position, before the mean, so that positions with opposite effects
do not cancel:

    I_h = mean over tokens of |Σ_d context · ∂L/∂context|

A token is a query of the head: a source token for encoder heads, a target position for the others,
end of sentence included, padding excluded. L is the cross-entropy of the reference, summed over a
sentence, without label smoothing; for a classifier, that of the label. The set is the development
set, on which no weight was trained.

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

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.experiment.names import Criterion, Scope
from specialized_heads.model.architecture import Head, heads_of
from specialized_heads.model.attention import Activations
from specialized_heads.model.checkpoint import architecture_of, load, load_on, save
from specialized_heads.model.transformer import Network
from specialized_heads.pruning.prune import FineTuning, freeze
from specialized_heads.tables import HEAD, read_table, write_table
from specialized_heads.training.batching import Batch, in_order, make_batch
from specialized_heads.training.objective import evaluate, objective_of
from specialized_heads.training.train import train_and_save

TOKENS = 2000  # per batch and side, padding included
SCHEMA = pa.schema(HEAD | dict.fromkeys(("importance", "importance_normalised"), pa.float64()))


class ImportanceSettings(stage.Section):
    device: str


def sensitivities(model: Network, batch: Batch) -> dict[tuple[str, int], Tensor]:
    """Σ_d context · ∂L/∂context with its sign, for every head and query; the sum over queries is
    ∂L/∂ξ_h.

    (B, H, T) per attention type and layer (from 0) with heads; T are source or target positions.
    """
    activations: Activations = {}
    with torch.enable_grad():
        loss = objective_of(model).loss(model, batch, label_smoothing=0.0, activations=activations)
    contexts = {key[:2]: value for key, value in activations.items() if key[2] == "context"}
    if not contexts:
        return {}
    # Without cross-attention the encoder does not affect the loss: its gradient is zero.
    gradients = torch.autograd.grad(loss, list(contexts.values()), materialize_grads=True)
    return {
        key: (context.detach() * gradient).sum(-1)
        for (key, context), gradient in zip(contexts.items(), gradients, strict=True)
    }


def importances(
    model: Network, store: TokenStore, *, tokens: int = TOKENS
) -> dict[tuple[str, int], np.ndarray]:
    """I_h of all heads over a set: (H,) in nats per attention type and layer with heads."""
    sums = {(a.kind, a.layer): np.zeros(len(a.heads)) for a in model.attentions() if a.heads}
    queries = dict.fromkeys(sums, 0)
    batches = in_order(store, tokens=tokens)
    for sentences in stage.progress(batches, what="importance", unit="batch"):
        batch = make_batch(store, sentences).to(model.device)
        real = {"encoder": batch.real(batch.source), "decoder": batch.real(batch.target_out)}
        real["cross"] = real["decoder"]
        for (kind, layer), values in sensitivities(model, batch).items():
            values = (values.abs() * real[kind][:, None]).sum((0, 2), dtype=torch.float64)
            sums[kind, layer] += values.cpu().numpy()
            queries[kind, layer] += int(real[kind].sum())
    return {key: total / queries[key] for key, total in sums.items()}


def table(
    model: Network, importances: dict[tuple[str, int], np.ndarray]
) -> list[dict[str, str | int | float]]:
    """One row per head: type, layer and head (from 1), importance, and importance divided by its L2
    norm over the heads of the layer and type (section 4.1), or 0 if the norm is 0."""
    rows = []
    for attention in model.attentions():
        if not attention.heads:
            continue
        values = importances[attention.kind, attention.layer]
        norm = float(np.linalg.norm(values))
        for head, value in zip(attention.heads, values.tolist(), strict=True):
            row = {"type": attention.kind, "layer": attention.layer + 1, "head": head + 1}
            row |= {"importance": value, "importance_normalised": value / norm if norm else 0.0}
            rows.append(row)
    return rows


@stage.command("model", "dev", "output", settings=ImportanceSettings)
def importance(files: stage.Files, settings: ImportanceSettings) -> None:
    model = load_on(files.model, settings.device)
    dev = load_tokens(files.dev)
    rows = table(model, importances(model, dev))
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("importance of %d heads over %d sentences", len(rows), len(dev))


class CutSettings(stage.Section):
    criterion: Criterion
    scope: Scope
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
            f"remove the criterion from comparison.criteria, or leave pruning.all and heads_all "
            f"empty"
        )
    if values.hasnans:
        stage.log.info("%d heads without %s rank last", values.isna().sum(), column)
    return list(values.sort_values(ascending=False, kind="stable").index)


def at_random(heads: list[Head], *, seed: int, draw: int = 0) -> list[Head]:
    """Heads in a random order that depends on seed and draw only."""
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
    said = "%d of %d heads left; development loss %.3f"
    stage.log.info(said, len(left), len(heads), losses[median])


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
