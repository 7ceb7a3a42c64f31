"""Stage: fine-tune a trained model with a gate on each head and a sparsity penalty, then remove the
closed heads.

Section 6. Scope "encoder" prunes the encoder's self-attention and freezes everything after the
encoder: decoder, target embeddings and softmax stay bit for bit the same. Scope "all" prunes the
three attention types and trains all weights. The penalty has a given λ, or one controlled to reach
a number of heads. With λ 0 there are no gates, whose noise would close some. The last weights are
kept; the penalised loss selects no model.

The development losses with soft gates ĝ = clip(1.2 σ(log α) - 0.1, 0, 1), multiplied into W^O, and
with gates of 0 or 1 show what rounding costs. They are measured where the heads are chosen: with a
given λ at the end, with a number of heads earlier.

With `--like`, the model starts from random weights and is trained as the baseline, but with gates
and penalty, a control of pruning a trained model (footnote 8). All weights are trained, whatever
the scope.

A remark says where pruning failed and what to do: gates that all stayed open, all closed, hardly
moved or ended undecided. The common causes are a λ that is off by a small factor and gates that are
too slow, or too fast for the weights to follow.
"""

import copy
from collections.abc import Iterable
from typing import Any

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.experiment.names import CERTAINTY, MIN_DECIDED, Scope
from specialized_heads.experiment.sections import Training
from specialized_heads.model.architecture import SCOPES, heads_of
from specialized_heads.model.checkpoint import architecture_of, load, save, set_weights
from specialized_heads.model.gates import HardConcrete, probability_open, soft
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.training.loop import Plan, load_data, train
from specialized_heads.training.objective import ConstantLambda, HeadCountController, evaluate
from specialized_heads.training.state import check, distributed, read_checkpoint

LOG_ALPHA = 2.0  # at the start; P(open) is 0.94
CERTAIN = 0.9  # a gate is decided where P(g = 0) or P(g = 1) is larger
MIN_MOVE = 0.2  # of log α; a smaller change has decided nothing


class FineTuning(stage.Section):
    """Settings of a training without gates."""

    seed: int
    scope: Scope
    dropout: float
    training: Training
    device: str


class Settings(FineTuning):
    lam: float | None  # None: controlled to reach `target_heads`
    target_heads: int | None  # of the scope; None: as many as λ leaves
    gate_learning_rate: float
    gate_seed: int | None = None


def freeze(model: Transformer, *, scope: str) -> None:
    """Freeze what a scope does not train: with "encoder" whatever the decoder uses too, with "all"
    nothing.

    A `UserError` says so if the encoder then cannot affect the output.
    """
    if scope == "encoder":
        if not any(model.architecture.cross):
            raise stage.UserError(
                "the baseline has no cross-attention heads, so its encoder has no effect and "
                "cannot be trained alone; leave pruning.encoder and pruning.heads empty, and prune "
                "heads of all types"
            )
        trained = "encoder" if model.architecture.tied == "all" else ("source_embedding", "encoder")
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.startswith(trained)


def attach_gates(model: Transformer, *, scope: str) -> None:
    for attention in model.attentions(*SCOPES[scope]):
        if attention.heads:
            attention.gate = HardConcrete(len(attention.heads), log_alpha=LOG_ALPHA)


def gate_rows(model: Transformer) -> list[dict[str, Any]]:
    """One row per gate, of a model with the log α that decided.

    The columns: type, layer and head (from 1), log α, P(open), soft (ĝ), decided (whether the gate
    is closed or fully open with probability above 0.9), kept.
    """
    rows = []
    for attention in model.attentions():
        if isinstance(attention.gate, HardConcrete):
            log_alpha = attention.gate.log_alpha.detach()
            # P(g = 1) at log α is P(g = 0) at -log α: the larger one is P(g = 0) at -|log α|.
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


def decided_share(rows: Iterable[dict[str, Any]]) -> float:
    """Share of gates with max(P(g = 0), P(g = 1)) > 0.9 among `gate_rows`; 1 without gates."""
    decisions = [row["decided"] for row in rows]
    return sum(decisions) / len(decisions) if decisions else 1.0


def chosen_by_order(rows: list[dict[str, Any]], *, target_heads: int | None) -> bool:
    """Whether the gates that were open differ so much from the number of heads that the order of
    log α alone chose them."""
    if target_heads in (None, 0, len(rows)):
        return False
    open_ = sum(row["log_alpha"] > 0 for row in rows)
    return abs(open_ - target_heads) > max(2, len(rows) // 10)


def remark(
    rows: list[dict[str, Any]],
    *,
    scope: str,
    lam: float | None,
    target_heads: int | None,
    updates: str,
) -> str | None:
    """What went wrong with the gates, and what to do about it; None if nothing did.

    `rows` are those of `gate_rows`, `updates` is the configuration key of their number.
    """
    if not rows or target_heads in (0, len(rows)):
        return None
    said, rate, number = [], "pruning.gate_learning_rate", len(rows)
    if (farthest := max(abs(row["log_alpha"] - LOG_ALPHA) for row in rows)) < MIN_MOVE:
        return (
            f"the gates hardly moved: log α is at most {farthest:.2f} from its start; raise "
            f"{rate} or {updates}"
        )
    if chosen_by_order(rows, target_heads=target_heads):
        open_ = sum(row["log_alpha"] > 0 for row in rows)
        said.append(
            f"{open_} of {number} gates were open when {stage.heads_text(target_heads)} had to be "
            f"chosen, so the order of log α alone decided; raise {updates}"
        )
    left = {row["type"] for row in rows if row["kept"]}
    gone = [kind for kind in dict.fromkeys(row["type"] for row in rows) if kind not in left]
    key = "pruning.heads" if scope == "encoder" else "pruning.heads_all"
    if lam is not None and all(row["kept"] for row in rows):
        said.append(
            f"no gate closed at λ {lam:g}; try a larger λ, a higher {rate} or more {updates}, or "
            f"set {key}"
        )
    elif lam is not None and gone:
        closed = f"all gates of type {' and '.join(gone)}" if left else f"all {number} gates"
        said.append(
            f"{closed} closed at λ {lam:g}; if that is not wanted, try a smaller λ or a lower "
            f"{rate}, or set {key}"
        )
    if decided_share(rows) < MIN_DECIDED:
        decided = sum(row["decided"] for row in rows)
        said.append(
            f"{decided} of {number} gates are decided (closed or fully open with probability above "
            f"0.9), so the choice of heads is a rounding; raise {updates} or {rate}"
        )
    return "; ".join(said) or None


def describe(
    deciding: Transformer,
    dev: TokenStore,
    settings: Settings,
    *,
    whole: int,
    decision: int,
    updates_key: str,
) -> dict[str, Any]:
    """What `gates.json` says of gates that have decided; `deciding` ends without gates, the soft
    ones folded into W^O.

    Args:
        whole: number of heads of the scope before pruning.
        decision: the update after which the gates decided.
        updates_key: the configuration key of the number of updates.
    """
    rows, loss_hard = gate_rows(deciding), evaluate(deciding, dev)
    fold_soft_gates(deciding)
    target = settings.model_dump(include={"scope", "lam", "target_heads"})
    found = {
        **target,
        "kept": whole - sum(not row["kept"] for row in rows),
        "gates_open": sum(row["log_alpha"] > 0 for row in rows),
        "decided_after": decision,
        "expected": sum(row["p_open"] for row in rows),  # open heads: L_C
        "decided": decided_share(rows),
        "by_order": chosen_by_order(rows, target_heads=settings.target_heads),
        "loss_hard": loss_hard,
        "loss_soft": evaluate(deciding, dev),
        "collapse": remark(rows, updates=updates_key, **target),
        "rows": rows,
    }
    said = "%d of %d heads left; log α above 0: %d"
    stage.log.info(said, found["kept"], whole, found["gates_open"])
    if found["collapse"]:
        stage.log.warning("%s", found["collapse"])
    return found


def train_gates(
    model: Transformer, settings: Settings, files: stage.Files, *, updates_key: str
) -> None:
    """Train a model with gates, remove the closed heads, and write the result; frozen weights stay
    as they are.

    `updates_key`: the configuration key of the number of updates, for remarks.
    """
    # Train. Gates decide at the end, or earlier where a number of heads is wanted.
    whole, heads = len(heads_of(model.architecture, scope=settings.scope)), settings.target_heads
    if settings.lam != 0:
        attach_gates(model, scope=settings.scope)
    if heads is None:
        penalty, decision = ConstantLambda(settings.lam), settings.training.updates
    elif heads <= whole:
        penalty = HeadCountController(heads, settings.training.updates)
        decision = penalty.decision
    else:
        raise stage.UserError(
            f"settings: target_heads: {stage.heads_text(heads)} asked for, but the model has "
            f"{whole} in scope {settings.scope}; ask for {whole} at most"
        )
    checkpoints = () if heads is None else (decision,)
    gates = settings.model_dump(include={"seed", "gate_learning_rate", "gate_seed"})
    plan = Plan(**gates, checkpoints=checkpoints, **settings.training.model_dump())
    data = load_data(files.train, files.dev)
    with distributed(settings.device, state=files.state) as (context, device):
        run = {"state": files.state, "records": files.records, "context": context}
        used = train(model.to(device), plan, data, penalty=penalty, **run)
        if not context.is_main:
            return
        # Decide, with the weights of that time.
        deciding = copy.deepcopy(model)
        if checkpoints:
            set_weights(deciding, read_checkpoint(files.state, decision))
        known = {"whole": whole, "decision": decision, "updates_key": updates_key}
        found = describe(deciding, data.dev, settings, **known)
        closed = [row for row in found["rows"] if not row["kept"]]
        model.remove_heads({(row["type"], row["layer"], row["head"]) for row in closed})
        # Describe.
        training = files.settings | {"matmul_precision": used, "data_hash": data.hash}
        if settings.lam != 0:
            training["gates"] = {name: found[name] for name in CERTAINTY}
        check(files.state)
        stage.write_json(files.gates, found)
        save(model, files.output, training=training)


FILES = ("train", "dev", "output", "records", "state", "gates")


@stage.command(*FILES, optional=("baseline", "like"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """Prune `--baseline`; or train a new model with the architecture of `--like`."""
    if files.like:
        model = Transformer(architecture_of(files.like), dropout=settings.dropout)
        initialise(model, seed=settings.seed)
        train_gates(model, settings, files, updates_key="pruning.retrain_updates")
        return
    model = load(files.baseline, dropout=settings.dropout)
    freeze(model, scope=settings.scope)
    train_gates(model, settings, files, updates_key="pruning.updates")
