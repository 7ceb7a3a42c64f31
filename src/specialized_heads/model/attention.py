"""Multi-head attention with any number of heads, down to none, and an optional gate per head.

Differs from the textbook in two ways: the number of heads is a property of the layer, not of the model, so that a pruned
layer is a smaller one and not a masked one; and there are no biases in the projections, so that a layer without heads adds
exactly nothing to the residual stream. `heads` keeps the numbers that the heads had before pruning.

Shapes: B sentences, H heads, T queries, S keys, D width, K width of a head.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.model.functional import dropout, softmax

# What a forward pass leaves behind for analysis: tensors by (attention type or sub-layer, layer, name).
Tape = dict[tuple[str, int, str], Tensor]


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention (Vaswani et al. 2017, sec. 3.2.2), its heads gated one by one (section 6.1)."""

    def __init__(
        self, *, kind: str, layer: int, heads: tuple[int, ...], width: int, head_width: int, dropout: float
    ) -> None:
        """
        Args:
            kind: "encoder", "decoder" (both self-attention) or "cross".
            layer: number of the layer, from 0.
            heads: original numbers of the heads in this layer, from 0.
            width: D.
            head_width: K.
            dropout: on the attention weights.
        """
        super().__init__()
        self.kind, self.layer, self.heads = kind, layer, heads
        self.head_width, self.dropout = head_width, dropout
        inner = len(heads) * head_width
        self.query = nn.Parameter(torch.empty(inner, width))
        self.key = nn.Parameter(torch.empty(inner, width))
        self.value = nn.Parameter(torch.empty(inner, width))
        self.output = nn.Parameter(torch.empty(width, inner))  # W^O
        self.gate: nn.Module | None = None  # returns (H,) or (B, H), multiplied into the heads' outputs

    def forward(self, x: Tensor, memory: Tensor | None, bias: Tensor | None, tape: Tape | None = None) -> Tensor:
        """Attend from x to memory, or to x itself where memory is None.

        Args:
            x: queries' input (B, T, D).
            memory: keys' and values' input (B, S, D), or None for self-attention.
            bias: added to the scores, broadcast over (B, H, T, S): 0 where attention is allowed, -inf where it is not.
            tape: if given, receives `input`, `keys_input`, `weights`, `values`, `context`.

        Returns:
            (B, T, D), to be added to the residual stream.
        """
        if not self.heads:
            return torch.zeros_like(x)
        query, key, value = self.project(x, memory)
        context = self.attend(query, key, value, bias, tape)
        if tape is not None:
            tape[self.kind, self.layer, "input"] = x
            tape[self.kind, self.layer, "keys_input"] = x if memory is None else memory
        return self.combine(context)

    def project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, K), keys and values (B, H, S, K); one matrix product where the input is the same."""
        if memory is None:
            q, k, v = F.linear(x, torch.cat([self.query, self.key, self.value])).chunk(3, dim=-1)
            return self.split(q), self.split(k), self.split(v)
        return (self.split(F.linear(x, self.query)), *self.project_memory(memory))

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, K) of a memory (B, S, D)."""
        k, v = F.linear(memory, torch.cat([self.key, self.value])).chunk(2, dim=-1)
        return self.split(k), self.split(v)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, tape: Tape | None = None
    ) -> Tensor:
        """The heads' outputs (B, H, T, K), gated."""
        if tape is None and query.is_cuda:
            rate = self.dropout if self.training else 0.0
            mask = None if bias is None else bias.to(query.dtype)
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        else:  # on short sentences on a CPU plain products are faster than the fused kernel
            scores = (query / math.sqrt(self.head_width)) @ key.transpose(-1, -2)  # (B, H, T, S)
            if bias is not None:
                scores = scores + bias
            weights = softmax(scores)
            context = dropout(weights.to(value.dtype), self.dropout, self.training) @ value
        if self.gate is not None:
            gate = self.gate()
            if gate.dim() == 2:  # in decoding, the hypotheses of a sentence are rows of their own
                gate = gate.repeat_interleave(len(context) // len(gate), dim=0)
            context = (context * gate[..., None, None]).to(context.dtype)  # gates are float32
        if tape is not None:
            tape[self.kind, self.layer, "weights"] = weights
            tape[self.kind, self.layer, "values"] = value
            tape[self.kind, self.layer, "context"] = context
        return context

    def combine(self, context: Tensor) -> Tensor:
        """Concatenate the heads' outputs (B, H, T, K) and multiply by W^O: (B, T, D)."""
        return F.linear(context.transpose(1, 2).flatten(2), self.output)

    def split(self, x: Tensor) -> Tensor:
        """(B, T, H*K) -> (B, H, T, K)"""
        return x.unflatten(-1, (len(self.heads), self.head_width)).transpose(1, 2)

    def keep(self, positions: list[int]) -> None:
        """Remove all heads but those at `positions` from the weights, for good, together with the gate."""
        k = self.head_width
        rows = torch.tensor([p * k + i for p in positions for i in range(k)], dtype=torch.long)
        for name in ("query", "key", "value"):
            setattr(self, name, nn.Parameter(getattr(self, name).data[rows].clone()))
        self.output = nn.Parameter(self.output.data[:, rows].clone())
        self.heads = tuple(self.heads[p] for p in positions)
        self.gate = None
