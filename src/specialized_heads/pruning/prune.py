"""Stage: fine-tune a trained model with a gate on each head and a penalty on their number; then remove the closed heads.

Section 6. Scope "encoder" prunes the encoder's self-attention and freezes everything after the encoder: decoder, target
embeddings and softmax come out bit for bit as they went in. Scope "all" prunes the three attention types and trains all
weights. The penalty has a given λ, or one that is steered to a number of heads (`penalty`). The last weights are taken,
never those of the lowest penalised loss.

A second model is written beside: the one before gates became 0 or 1, with the gates ĝ = clip(1.2 σ(log α) - 0.1, 0, 1)
multiplied into W^O. With λ these are the last weights; with a number of heads, those at the moment when the heads were
chosen, since the updates after it know hard gates alone.
"""

import argparse
import copy
from pathlib import Path
from typing import Any, Literal

import torch

from specialized_heads import stage
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.gates import HardConcrete, probability_open, soft
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.pruning.collapse import remark
from specialized_heads.pruning.penalty import Lambda, Steering
from specialized_heads.pruning.scopes import SCOPES
from specialized_heads.sections import Training
from specialized_heads.stage import Section
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.parallel import team
from specialized_heads.training.state import finish, read_moment


class Settings(Section):
    seed: int
    scope: Literal["encoder", "all"]
    penalty: float | None  # λ; None: steered to `heads`
    heads: int | None  # how many of the scope's heads to keep; None: as many as λ leaves
    penalty_warmup: int
    dropout: float
    training: Training
    gate_learning_rate: float
    gate_init: float
    device: str


def freeze(model: Transformer, *, scope: str) -> None:
    """Leave alone, in training, what a scope does not train: with "encoder" everything after the encoder; else nothing."""
    if scope == "encoder":
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.startswith(("source_embedding", "encoder"))


def attach_gates(model: Transformer, *, scope: str, log_alpha: float) -> None:
    """Put a gate on each head that the scope prunes.

    Args:
        model: a plain model.
        scope: "encoder" or "all".
        log_alpha: initial log α of every gate.
    """
    for attention in model.attentions(*SCOPES[scope]):
        if attention.heads:
            attention.gate = HardConcrete(len(attention.heads), log_alpha=log_alpha)


def gate_rows(decisive: Transformer, decided: Transformer) -> list[dict[str, Any]]:
    """What became of each gate.

    Args:
        decisive: the model with the log α that decided.
        decided: the same model at the end of training, with the decisions.

    Returns:
        one row per gated head: type, layer and head (from 1), log α, P(open), soft (ĝ), kept.
    """
    rows = []
    for before, after in zip(decisive.attentions(), decided.attentions(), strict=True):
        if isinstance(before.gate, HardConcrete):
            log_alpha = before.gate.log_alpha.detach()
            columns = (log_alpha, probability_open(log_alpha), soft(log_alpha), after.gate.decisions())
            for head, *values in zip(before.heads, *(column.tolist() for column in columns), strict=True):
                place = {"type": before.kind, "layer": before.layer + 1, "head": head + 1}
                rows.append(place | dict(zip(("log_alpha", "p_open", "soft", "kept"), values, strict=True)))
    return rows


def remove_closed_heads(model: Transformer) -> None:
    """Make the gates' decisions final: remove closed heads from the weights, and all gates."""
    _keep(model, {id(a): a.gate.decisions() for a in model.attentions() if isinstance(a.gate, HardConcrete)})


def fold_soft_gates(model: Transformer) -> None:
    """Multiply each head's columns of W^O by its soft gate ĝ; remove heads whose ĝ is 0, and all gates."""
    gates = {id(a): soft(a.gate.log_alpha.detach()) for a in model.attentions() if isinstance(a.gate, HardConcrete)}
    for attention in model.attentions():
        if id(attention) in gates:
            attention.output.data *= gates[id(attention)].repeat_interleave(attention.head_width)
    _keep(model, {key: values > 0 for key, values in gates.items()})


def _keep(model: Transformer, open_: dict[int, torch.Tensor]) -> None:
    """Remove heads that are not open; a sub-layer without gates, by its id, keeps all of its own."""
    kept: dict[str, list[list[int]]] = {kind: [] for kind in KINDS}
    for attention in model.attentions():
        stays = open_[id(attention)].tolist() if id(attention) in open_ else [True] * len(attention.heads)
        kept[attention.kind].append([position for position, stay in enumerate(stays) if stay])
    model.keep_heads(kept)


def train_gates(
    model: Transformer, settings: Settings, files: argparse.Namespace, *, soft_model: Path | None, updates_key: str
) -> None:
    """Train a model with gates, decide, and write what is left of it.

    Args:
        model: a plain model; frozen weights stay as they are.
        settings: how.
        files: train, dev (read); output, records, gates (written); state.
        soft_model: where the model with soft gates is written; None: nowhere.
        updates_key: what to raise in the configuration for more updates.

    Raises:
        UserError: more heads are asked for than there are.
    """
    attach_gates(model, scope=settings.scope, log_alpha=settings.gate_init)
    gated = sum(len(a.heads) for a in model.attentions() if a.gate is not None)
    if (settings.heads or 0) > gated:
        raise stage.UserError(
            f"settings: heads: {settings.heads} heads were asked for, but the model has {gated} in scope "
            f"{settings.scope}; ask for {gated} at most"
        )
    updates = settings.training.updates
    steered = settings.heads is not None
    penalty = Steering(settings.heads, updates) if steered else Lambda(settings.penalty, settings.penalty_warmup)
    plan = Plan(
        seed=settings.seed,
        gate_learning_rate=settings.gate_learning_rate,
        moments=(penalty.decision,) if steered else (),
        **settings.training.model_dump(),
    )
    data = load_data(files.train, files.dev)
    with team(settings.device) as (together, device):
        used = train(
            model.to(device), plan, data, state=files.state, records=files.records, penalty=penalty, team=together
        )
        if not together.writes:
            return
        decisive = copy.deepcopy(model)
        if steered:
            decisive.load_state_dict(read_moment(files.state, penalty.decision))
        rows = gate_rows(decisive, model)
        asked = {"scope": settings.scope, "penalty": settings.penalty, "heads": settings.heads}
        said = remark(rows, init=settings.gate_init, updates=updates_key, **asked)
        kept, by_themselves = (sum(row["kept"] for row in rows), sum(row["log_alpha"] > 0 for row in rows))
        stage.log.info("%d of %d heads kept; log α above 0: %d", kept, len(rows), by_themselves)
        if said:
            stage.log.info("%s", said)
        summary = {
            "kept": kept,
            "gates_open": by_themselves,  # by log α > 0, at the update of the decision
            "decided_after": penalty.decision if steered else updates,
            "collapse": said,
        }
        training = {**files.settings, "products": used, "data_hash": data.hash}
        stage.write_json(files.gates, {**asked, **summary, "rows": rows})
        remove_closed_heads(model)
        save(model, files.output, training=training)
        if soft_model:
            fold_soft_gates(decisive)
            save(decisive, soft_model, training=training)
        finish(files.state)


def main() -> None:
    names = ("baseline", "train", "dev", "output", "records", "state", "gates", "soft")
    files = stage.arguments(__doc__, files=names)
    settings = Settings.model_validate(files.settings)
    model = load(files.baseline, dropout=settings.dropout)
    freeze(model, scope=settings.scope)
    train_gates(model, settings, files, soft_model=files.soft, updates_key="pruning.updates")


if __name__ == "__main__":
    stage.run(main)
