"""Layers of the Transformer: attention and feed-forward sub-layers around the residual stream.

Shapes: B sentences, T tokens, S tokens of the encoder's output, D width. Lists of N tokens, (N, D), may stand for (B, T, D).
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.model.architecture import Architecture
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.functional import dropout
from specialized_heads.model.packing import Blocks

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


class LayerNorm(nn.LayerNorm):
    """LayerNorm computed in the precision of its weights; the output may have another precision."""

    def __init__(self, a: Architecture) -> None:
        super().__init__(a.width, eps=a.norm_epsilon)
        self.precision: torch.dtype | None = None  # of the output; None: that of the weights

    def forward(self, x: Tensor) -> Tensor:
        normalised = super().forward(x.to(self.weight.dtype))
        return normalised if self.precision is None else normalised.to(self.precision)


class FeedForward(nn.Module):
    """Feed-forward sub-layer (B, T, D) -> (B, T, D)."""

    def __init__(self, a: Architecture, *, name: str, layer: int, dropout: float) -> None:
        super().__init__()
        self.name, self.layer, self.dropout = name, layer, dropout
        self.activation = ACTIVATIONS[a.activation]
        self.expand = nn.Linear(a.width, a.feed_forward)
        self.contract = nn.Linear(a.feed_forward, a.width)

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        hidden = self.activation(self.expand(x.to(self.expand.weight.dtype)))
        if activations is not None:
            activations[self.name, self.layer, "input"], activations[self.name, self.layer, "hidden"] = x, hidden
        return self.contract(dropout(hidden, self.dropout, self.training))


class Layer(nn.Module):
    """What encoder and decoder layers share: how a sub-layer updates the residual stream."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__()
        self.layer, self.dropout, self.post_norm = layer, dropout, a.post_norm

    def sublayer(
        self,
        x: Tensor,
        norm: LayerNorm,
        function: Callable[[Tensor], Tensor],
        name: str = "",
        activations: Activations | None = None,
    ) -> Tensor:
        """Add what a sub-layer computes from the normalised residual stream (B, T, D), with dropout.

        `activations` records both summands under the sub-layer's name. With `post_norm` the sum is normalised instead.
        """
        update = function(x if self.post_norm else norm(x))
        if activations is not None:
            activations[name, self.layer, "residual"], activations[name, self.layer, "update"] = x, update
        x = x + dropout(update, self.dropout, self.training).to(x.dtype)
        return norm(x) if self.post_norm else x


class EncoderLayer(Layer):
    """Self-attention and feed-forward."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__(a, layer, dropout)
        self.attention_norm = LayerNorm(a)
        self.attention = attention(a, "encoder", layer, dropout)
        self.feed_forward_norm = LayerNorm(a)
        self.feed_forward = FeedForward(a, name="encoder_feed_forward", layer=layer, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | Blocks,
        activations: Activations | None = None,
        *,
        memory: Tensor | None = None,
    ) -> Tensor:
        """`memory`: the states of all tokens (B, S, D), if x has only some of them; with `post_norm`."""
        attend = partial(self.attention, memory=memory, attn_mask=attn_mask, activations=activations)
        feed_forward = partial(self.feed_forward, activations=activations)
        x = self.sublayer(x, self.attention_norm, attend, "encoder", activations)
        return self.sublayer(x, self.feed_forward_norm, feed_forward, "encoder_feed_forward", activations)


class DecoderLayer(Layer):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__(a, layer, dropout)
        self.attention_norm = LayerNorm(a)
        self.attention = attention(a, "decoder", layer, dropout)
        self.cross_norm = LayerNorm(a)
        self.cross = attention(a, "cross", layer, dropout)
        self.feed_forward_norm = LayerNorm(a)
        self.feed_forward = FeedForward(a, name="decoder_feed_forward", layer=layer, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        causal: Tensor | Blocks,
        memory_mask: Tensor | Blocks,
        activations: Activations | None = None,
    ) -> Tensor:
        attend = partial(self.attention, memory=None, attn_mask=causal, activations=activations)
        attend_to_memory = partial(self.cross, memory=memory, attn_mask=memory_mask, activations=activations)
        feed_forward = partial(self.feed_forward, activations=activations)
        x = self.sublayer(x, self.attention_norm, attend, "decoder", activations)
        x = self.sublayer(x, self.cross_norm, attend_to_memory, "cross", activations)
        return self.sublayer(x, self.feed_forward_norm, feed_forward, "decoder_feed_forward", activations)


def attention(a: Architecture, kind: str, layer: int, dropout: float) -> MultiHeadAttention:
    """The attention sub-layer of a layer."""
    return MultiHeadAttention(
        kind=kind,
        layer=layer,
        heads=getattr(a, kind)[layer],
        width=a.width,
        head_width=a.head_width,
        dropout=dropout,
        bias=a.attention_bias,
        fixed_patterns=a.fixed_patterns and kind == "encoder",
    )
