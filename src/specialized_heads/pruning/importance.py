"""Stage: the importance I_h of every head, by one forward and backward pass (Michel et al. 2019,
section 4.1).

Multiply a head's output by a mask ξ_h: I_h measures how the loss changes with ξ_h near 1. By the
chain rule ∂L/∂ξ_h is the product of the head's output (its context) and its gradient, summed over
positions. Here the absolute value is taken at each position, before the mean, so that positions
with opposite effects do not cancel:

    I_h = mean over tokens of |Σ_d context · ∂L/∂context|

A token is a query of the head: a source token for encoder heads, a target position for the others,
end of sentence included, padding excluded. L is the cross-entropy of the reference, summed over a
sentence, without label smoothing; for a classifier, that of the label. The set is the development
set, on which no weight was trained.
"""

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.attention import Activations
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Network
from specialized_heads.tables import HEAD, write_table
from specialized_heads.training.batching import Batch, in_order, make_batch
from specialized_heads.training.objective import objective_of

TOKENS = 2000  # per batch and side, padding included
SCHEMA = pa.schema(HEAD | dict.fromkeys(("importance", "importance_normalised"), pa.float64()))


class Settings(stage.Section):
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


def importance(
    model: Network, store: TokenStore, *, tokens: int = TOKENS
) -> dict[tuple[str, int], np.ndarray]:
    """I_h of all heads over a set: (H,) in nats per attention type and layer with heads."""
    sums = {(a.kind, a.layer): np.zeros(len(a.heads)) for a in model.attentions() if a.heads}
    queries = dict.fromkeys(sums, 0)
    for sentences in stage.progress(
        in_order(store, tokens=tokens), what="importance", unit="batch"
    ):
        batch = make_batch(store, sentences).to(model.device)
        real = {"encoder": batch.real(batch.source), "decoder": batch.real(batch.target_out)}
        real["cross"] = real["decoder"]
        for (kind, layer), values in sensitivities(model, batch).items():
            sums[kind, layer] += (
                (values.abs() * real[kind][:, None]).sum((0, 2), dtype=torch.float64).cpu().numpy()
            )
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
            row = {
                "type": attention.kind,
                "layer": attention.layer + 1,
                "head": head + 1,
                "importance": value,
            }
            rows.append(row | {"importance_normalised": value / norm if norm else 0.0})
    return rows


@stage.command("model", "dev", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    dev = load_tokens(files.dev)
    rows = table(model, importance(model, dev))
    write_table(files.output, pa.Table.from_pylist(rows, schema=SCHEMA))
    stage.log.info("importance of %d heads over %d sentences", len(rows), len(dev))
