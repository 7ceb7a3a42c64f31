"""Stage: fine-tune a trained model with a gate on each head and a sparsity penalty, then remove the closed heads.

Section 6. Scope "encoder" prunes the encoder's self-attention and freezes everything after the encoder: decoder, target
embeddings and softmax stay bit for bit the same. Scope "all" prunes the three attention types and trains all weights. The
penalty has a given λ, or one controlled to reach a number of heads (`penalty`). With λ 0 there are no gates, whose noise would
close some. The last weights are kept; the penalised loss selects no model.

The development losses with soft gates ĝ = clip(1.2 σ(log α) - 0.1, 0, 1), multiplied into W^O, and with gates of 0 or 1 show what
rounding costs. They are measured where the heads are chosen: with a given λ at the end, with a number of heads earlier.

With `--like`, the model starts from random weights and is trained as the baseline, but with gates and penalty, a control of
pruning a trained model (footnote 8). All weights are trained, whatever the scope.
"""

import copy
from typing import Any, Literal

from specialized_heads import stage
from specialized_heads.experiment.sections import Training
from specialized_heads.model.architecture import SCOPES, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, save, set_weights
from specialized_heads.model.gates import HardConcrete, probability_open, soft
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.pruning.collapse import chosen_by_order, decided_share, remark
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.objective import HeadCountController, Lambda, evaluate
from specialized_heads.training.parallel import distributed
from specialized_heads.training.state import finishing, read_checkpoint

LOG_ALPHA = 2.0  # at the start; P(open) is 0.94
CERTAIN = 0.9  # a gate is decided where P(g = 0) or P(g = 1) is larger


class FineTuning(stage.Section):
    """Settings of a training without gates."""

    seed: int
    scope: Literal["encoder", "all"]
    dropout: float
    training: Training
    device: str


class Settings(FineTuning):
    lam: float | None  # None: controlled to reach `target_heads`
    target_heads: int | None  # of the scope; None: as many as λ leaves
    gate_learning_rate: float
    gate_seed: int | None = None


def freeze(model: Transformer, *, scope: str) -> None:
    """Freeze what a scope does not train: with "encoder" whatever the decoder uses too, with "all" nothing.

    A `UserError` says so if the encoder then cannot affect the output.
    """
    if scope == "encoder":
        if not any(model.architecture.cross):
            raise stage.UserError(
                "the baseline has no cross-attention heads, so its encoder has no effect and cannot be trained alone; leave "
                "pruning.encoder and pruning.heads empty, and prune heads of all types"
            )
        trained = "encoder" if model.architecture.tied == "all" else ("source_embedding", "encoder")
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.startswith(trained)


def attach_gates(model: Transformer, *, scope: str) -> None:
    """Put a gate on each head that the scope prunes."""
    for attention in model.attentions(*SCOPES[scope]):
        if attention.heads:
            attention.gate = HardConcrete(len(attention.heads), log_alpha=LOG_ALPHA)


def gate_rows(model: Transformer) -> list[dict[str, Any]]:
    """One row per gate, of a model with the log α that decided.

    The columns: type, layer and head (from 1), log α, P(open), soft (ĝ), decided (whether the gate is closed or fully open with
    probability above 0.9), kept.
    """
    rows = []
    for attention in model.attentions():
        if isinstance(attention.gate, HardConcrete):
            log_alpha = attention.gate.log_alpha.detach()
            # P(g = 1) at log α is P(g = 0) at -log α: the larger of the two is P(g = 0) at -|log α|.
            certainty = 1 - probability_open(-log_alpha.abs())
            columns = {
                "log_alpha": log_alpha,
                "p_open": probability_open(log_alpha),
                "soft": soft(log_alpha),
                "decided": certainty > CERTAIN,
                "kept": attention.gate.decisions(),
            }
            for place, head in enumerate(attention.heads):
                row = {"type": attention.kind, "layer": attention.layer + 1, "head": head + 1}
                rows.append(row | {name: column[place].item() for name, column in columns.items()})
    return rows


def fold_soft_gates(model: Transformer) -> None:
    """Multiply each head's columns of W^O by its soft gate ĝ, and remove the gates."""
    for attention in model.attentions():
        if isinstance(attention.gate, HardConcrete):
            gates = soft(attention.gate.log_alpha.detach())
            attention.output.data *= gates.repeat_interleave(attention.head_width)
            attention.gate = None


def train_gates(model: Transformer, settings: Settings, files: stage.Files, *, updates_key: str) -> None:
    """Train a model with gates, remove the closed heads, and write the result; frozen weights stay as they are.

    `updates_key`: the configuration key of the number of updates, for remarks.
    """
    if settings.lam != 0:
        attach_gates(model, scope=settings.scope)
    whole = len(heads_of(model.architecture, scope=settings.scope))
    steered = settings.target_heads is not None
    if steered and settings.target_heads > whole:
        raise stage.UserError(
            f"settings: target_heads: {stage.heads_text(settings.target_heads)} asked for, but the model has {whole} in scope "
            f"{settings.scope}; ask for {whole} at most"
        )
    updates = settings.training.updates
    penalty = HeadCountController(settings.target_heads, updates) if steered else Lambda(settings.lam)
    decision = penalty.decision if steered else updates
    plan = Plan(
        seed=settings.seed,
        gate_learning_rate=settings.gate_learning_rate,
        gate_seed=settings.gate_seed,
        checkpoints=(decision,) if steered else (),
        **settings.training.model_dump(),
    )
    data = load_data(files.train, files.dev)
    with distributed(settings.device, state=files.state) as (context, device):
        run = {"state": files.state, "records": files.records, "context": context}
        used = train(model.to(device), plan, data, penalty=penalty, **run)
        if not context.is_main:
            return
        deciding = copy.deepcopy(model)
        if steered:
            set_weights(deciding, read_checkpoint(files.state, decision))
        rows = gate_rows(deciding)
        loss_hard = evaluate(deciding, data.dev)
        fold_soft_gates(deciding)
        target = {"scope": settings.scope, "lam": settings.lam, "target_heads": settings.target_heads}
        text = remark(rows, init=LOG_ALPHA, updates=updates_key, **target)
        model.remove_heads({(row["type"], row["layer"], row["head"]) for row in rows if not row["kept"]})
        kept = len(heads_of(model.architecture, scope=settings.scope))
        open_ = sum(row["log_alpha"] > 0 for row in rows)
        certainty = {
            "expected": sum(row["p_open"] for row in rows),  # open heads: L_C
            "decided": decided_share(rows),
            "by_order": chosen_by_order(rows, target_heads=settings.target_heads),
            "loss_hard": loss_hard,
            "loss_soft": evaluate(deciding, data.dev),
        }
        stage.log.info("%d of %d heads kept; log α above 0: %d", kept, whole, open_)
        if text:
            stage.log.warning("%s", text)
        summary = {"kept": kept, "gates_open": open_, "decided_after": decision} | certainty | {"collapse": text}
        training = {**files.settings, "matmul_precision": used, "data_hash": data.hash}
        if settings.lam != 0:
            training["gates"] = certainty
        with finishing(files.state):
            stage.write_json(files.gates, {**target, **summary, "rows": rows})
            save(model, files.output, training=training)


@stage.command("train", "dev", "output", "records", "state", "gates", optional=("baseline", "like"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """Prune `--baseline`; or train from random initialisation a model of the architecture of `--like`."""
    if files.like:
        model = Transformer(architecture_of(files.like), dropout=settings.dropout)
        initialise(model, seed=settings.seed)
        train_gates(model, settings, files, updates_key="pruning.retrain_updates")
        return
    model = load(files.baseline, dropout=settings.dropout)
    freeze(model, scope=settings.scope)
    train_gates(model, settings, files, updates_key="pruning.updates")
