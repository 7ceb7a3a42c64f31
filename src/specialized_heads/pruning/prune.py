"""Stage: fine-tune a trained model with a gate on each head and λ on their number; then remove the closed heads (section 6).

Scope "encoder" prunes the encoder's self-attention and freezes everything after the encoder: decoder, target embeddings and
softmax come out bit for bit as they went in. Scope "all" prunes the three attention types and trains all weights. The last
weights are taken, never those of the lowest penalised loss.
"""

from typing import Literal

from specialized_heads import stage
from specialized_heads.config import Section, Training
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.gates import HardConcrete, hard, probability_open
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.training.loop import Plan, finish, load_data, train
from specialized_heads.training.parallel import team

SCOPES = {"encoder": ("encoder",), "all": KINDS}


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


def attach_gates(model: Transformer, *, scope: str, log_alpha: float) -> None:
    """Put a gate on each head that the scope prunes, and freeze what the scope leaves alone.

    Args:
        model: a plain model.
        scope: "encoder" or "all".
        log_alpha: initial log α of every gate.
    """
    for attention in model.attentions(*SCOPES[scope]):
        if attention.heads:
            attention.gate = HardConcrete(len(attention.heads), log_alpha=log_alpha)
    if scope == "encoder":
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.startswith(("source_embedding", "encoder"))


def remove_closed_heads(model: Transformer) -> list[dict[str, float | int | str | bool]]:
    """Make the gates' decisions final: remove closed heads from the weights, and all gates.

    Returns:
        one row per gated head: type, layer and head (from 1), log α, P(open), kept.
    """
    rows, kept = [], {kind: [] for kind in KINDS}
    for attention in model.attentions():
        positions = list(range(len(attention.heads)))
        if isinstance(attention.gate, HardConcrete):
            log_alpha = attention.gate.log_alpha.detach()
            decisions = hard(log_alpha).tolist()
            positions = [p for p in positions if decisions[p]]
            for head, value, p_open, keep in zip(
                attention.heads, log_alpha.tolist(), probability_open(log_alpha).tolist(), decisions, strict=True
            ):
                rows.append(
                    {
                        "type": attention.kind,
                        "layer": attention.layer + 1,
                        "head": head + 1,
                        "log_alpha": value,
                        "p_open": p_open,
                        "kept": keep,
                    }
                )
        kept[attention.kind].append(positions)
    model.keep_heads(kept)
    return rows


def main() -> None:
    files = stage.arguments(__doc__, files=("baseline", "train", "dev", "output", "records", "state", "gates"))
    settings = Settings.model_validate(files.settings)
    model = load(files.baseline, dropout=settings.dropout)
    attach_gates(model, scope=settings.scope, log_alpha=settings.gate_init)
    plan = Plan(
        seed=settings.seed,
        penalty=settings.penalty,
        gate_learning_rate=settings.gate_learning_rate,
        **settings.training.model_dump(),
    )
    data = load_data(files.train, files.dev)
    with team(settings.device) as (together, device):
        train(model.to(device), plan, data, state=files.state, records=files.records, team=together)
        if together.writes:
            gates = remove_closed_heads(model)
            stage.log.info("%d of %d heads kept", sum(row["kept"] for row in gates), len(gates))
            stage.write_json(files.gates, gates)
            save(model, files.output, training={**files.settings, "data_hash": data.hash})
            finish(files.state)


if __name__ == "__main__":
    stage.run(main)
