"""The training objective, cross-entropy per target token with label smoothing, and its evaluation on held-out text."""

import torch
from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.model.attention import Activations
from specialized_heads.model.functional import cross_entropy
from specialized_heads.model.transformer import Transformer
from specialized_heads.training.batching import Batch, in_order, make_batch


def cross_entropy_sum(
    model: Transformer, batch: Batch, *, label_smoothing: float, activations: Activations | None = None
) -> Tensor:
    """Cross-entropy summed over the target tokens (EOS included, padding excluded), in nats, in float32."""
    states = model(batch.source, batch.target_in, activations)
    return cross_entropy(
        states.flatten(0, 1),
        model.output_embedding,
        batch.target_out.flatten(),
        bias=model.output_bias,
        smoothing=label_smoothing,
        ignore=batch.tokens.pad,
    )


@torch.inference_mode()
def evaluate(model: Transformer, store: TokenStore) -> float:
    """Cross-entropy per target token on a held-out set, without dropout, label smoothing or penalty."""
    device = model.source_embedding.device
    was_training = model.training
    model.eval()
    total, tokens = 0.0, 0
    for sentences in in_order(store, tokens=4000):
        batch = make_batch(store, sentences).to(device)
        total += float(cross_entropy_sum(model, batch, label_smoothing=0.0))
        tokens += batch.target_tokens
    model.train(was_training)
    return total / tokens
