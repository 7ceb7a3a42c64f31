"""Multi-head attention with any number of heads, down to none, and an optional gate per head.

Differs from the textbook in two ways. The number of heads belongs to the layer, not to the model,
so pruning makes a layer smaller instead of masking it. The paper's projections have no biases, so a
layer without heads adds exactly zero to the residual stream; with biases it adds that of its
output. `heads` holds the numbers that the heads left had before pruning.

In a positive control for the analysis of heads, seven heads of each encoder layer have fixed
patterns (Raganato et al. 2020, section 3): only their values and outputs are trained, so what the
analysis has to find in them is known beforehand.

Shapes: B sentences, H heads, T queries, S keys, D model width, K head width, P patterns.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.model.architecture import Architecture
from specialized_heads.model.functional import dropout, softmax
from specialized_heads.model.packing import Blocks, attend

# Fixed patterns in the order of the heads, each with the offset at which its largest weight lies
# wherever there is such a token, or None where it lies at one end of the sentence.
LABELS: dict[str, int | None] = {
    "current token": 0,
    "previous token": -1,
    "next token": 1,
    "left context": -2,
    "right context": 2,
    "end of the sentence": None,
    "start of the sentence": None,
}

# Recorded by a forward pass for analysis: tensors by (attention type or sub-layer, layer, name).
Activations = dict[tuple[str, int, str], Tensor]


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, sec. 3.2.2) with a gate per head (section 6.1)."""

    def __init__(self, a: Architecture, *, kind: str, layer: int, dropout: float) -> None:
        """`kind`: "encoder", "decoder" (both self-attention) or "cross"; `dropout`: on the
        attention weights."""
        super().__init__()
        self.kind, self.layer, self.heads = kind, layer, getattr(a, kind)[layer]
        self.head_width, self.dropout = a.head_width, dropout
        self.fixed_patterns = a.fixed_patterns and kind == "encoder"
        inner = len(self.heads) * a.head_width
        self.query = nn.Parameter(torch.empty(inner, a.width))
        self.key = nn.Parameter(torch.empty(inner, a.width))
        self.value = nn.Parameter(torch.empty(inner, a.width))
        self.output = nn.Parameter(torch.empty(a.width, inner))  # W^O
        for name, size in (("query", inner), ("key", inner), ("value", inner), ("output", a.width)):
            bias = nn.Parameter(torch.zeros(size)) if a.attention_bias else None
            setattr(self, f"{name}_bias", bias)
        self.gate: nn.Module | None = None  # returns (H,) or (B, H), multiplies the heads' outputs

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        attn_mask: Tensor | Blocks | None,
        activations: Activations | None = None,
    ) -> Tensor:
        """Attend from x to memory, or to x itself if memory is None.

        Args:
            x: input of the queries (B, T, D).
            memory: input of the keys and values (B, S, D), or None for self-attention.
            attn_mask: added to the scores, broadcast over (B, H, T, S): 0 where attention is
                allowed, -inf elsewhere. Or the blocks of lists of tokens: x, memory and the result
                then have no padding (`attend_packed`).
            activations: if given, records `keys_input`, `weights`, `values` and `context`.

        Returns:
            the update of the residual stream (B, T, D).
        """
        if not self.heads:
            return self.nothing(x)
        if isinstance(attn_mask, Blocks):
            return self.attend_packed(x, memory, attn_mask)
        if memory is None:
            query, key, value = self.project(x, "query", "key", "value")
        else:
            query, key, value = *self.project(x, "query"), *self.project(memory, "key", "value")
        context = self.attend(query, key, value, attn_mask, activations)
        if activations is not None:
            activations[self.kind, self.layer, "keys_input"] = x if memory is None else memory
        return self.combine(context)

    def nothing(self, x: Tensor) -> Tensor:
        """The update of a residual stream like x without heads."""
        return torch.zeros_like(x) if self.output_bias is None else self.output_bias.expand_as(x)

    def attend_packed(self, x: Tensor, memory: Tensor | None, blocks: Blocks) -> Tensor:
        """As `forward`, for lists of tokens: x (N, D), memory (M, D) or None.

        A head whose gate is 0 adds nothing and gets no gradient, so it is not computed.
        """
        gate, rows, heads = None if self.gate is None else self.gate(), None, len(self.heads)
        if gate is not None and not gate.all():
            open_ = gate.nonzero().flatten()
            gate, heads = gate[open_], len(open_)
            if not heads:
                return self.nothing(x)
            rows = (open_[:, None] * self.head_width + torch.arange(self.head_width)).flatten()
        if memory is None:
            query, pair = self.joint(x, "query", "key", "value", rows=rows), None
        else:
            query = self.joint(x, "query", rows=rows)
            pair = self.joint(memory, "key", "value", rows=rows)
        rate = self.dropout if self.training else 0.0
        context = attend(query, pair, blocks, heads=heads, dropout=rate)
        if gate is not None:  # in float32
            by_head = context.view(-1, heads, self.head_width)
            context = (by_head * gate[:, None]).to(context.dtype).view_as(context)
        output = self.output if rows is None else self.output.index_select(1, rows)
        return F.linear(context, output, self.output_bias)

    def project(self, x: Tensor, *names: str) -> tuple[Tensor, ...]:
        """These projections of x (B, P, D), each (B, H, P, K), in a single matrix product."""
        shape = (len(names), len(self.heads), self.head_width)
        return self.joint(x, *names).unflatten(-1, shape).permute(2, 0, 3, 1, 4).unbind()

    def joint(self, x: Tensor, *names: str, rows: Tensor | None = None) -> Tensor:
        """Several projections of x side by side, (..., number*H*K), or some rows of each matrix."""

        def beside(suffix: str = "") -> Tensor:
            parts = [getattr(self, f"{name}{suffix}") for name in names]
            return torch.cat(parts if rows is None else [p.index_select(0, rows) for p in parts])

        weight, bias = beside(), None if self.query_bias is None else beside("_bias")
        return F.linear(x.to(weight.dtype), weight, bias)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        activations: Activations | None = None,
    ) -> Tensor:
        """Gated outputs of the heads (B, H, T, K)."""
        if activations is None and query.is_cuda and not self.fixed_patterns:
            rate = self.dropout if self.training else 0.0
            mask = None if attn_mask is None else attn_mask.to(query.dtype)
            how = {"attn_mask": mask, "dropout_p": rate}
            context = F.scaled_dot_product_attention(query, key, value, **how)
        else:  # plain products beat the fused kernel on short sentences on a CPU
            scores = (query / math.sqrt(self.head_width)) @ key.transpose(-1, -2)  # (B, H, T, S)
            if attn_mask is not None:
                scores = scores + attn_mask
            weights = softmax(scores)
            if self.fixed_patterns:
                weights = self.fix(weights, keys=attn_mask[:, 0, 0] == 0)
            context = dropout(weights.to(value.dtype), self.dropout, self.training) @ value
        if self.gate is not None:
            gate = self.gate()
            if gate.dim() == 2:  # one row per sentence; in beam search every hypothesis is a row
                gate = gate.repeat_interleave(len(context) // len(gate), dim=0)
            context = (context * gate[..., None, None]).to(context.dtype)  # gates are float32
        if activations is not None:
            for name, tensor in (("weights", weights), ("values", value), ("context", context)):
                activations[self.kind, self.layer, name] = tensor
        return context

    def fix(self, weights: Tensor, *, keys: Tensor) -> Tensor:
        """The weights (B, H, S, S) with those of the heads that have a fixed pattern replaced;
        keys: real tokens (B, S)."""
        number = sum(map(self.is_fixed, self.heads))  # heads are in the order of their numbers
        patterns = fixed_weights(keys)[:, list(self.heads[:number])].to(weights.dtype)
        return torch.cat([patterns, weights[:, number:]], dim=1)

    def is_fixed(self, head: int) -> bool:
        return self.fixed_patterns and head < len(LABELS)

    def combine(self, context: Tensor) -> Tensor:
        """Concatenate the heads' outputs (B, H, T, K) and project them with W^O: (B, T, D)."""
        return F.linear(context.transpose(1, 2).flatten(2), self.output, self.output_bias)

    def keep(self, positions: list[int]) -> None:
        """Permanently remove the gate and all heads except those at `positions` in the current
        layer."""
        k = self.head_width
        rows = torch.tensor([p * k + i for p in positions for i in range(k)], dtype=torch.long)
        for name in ("query", "key", "value", "query_bias", "key_bias", "value_bias"):
            if (weight := getattr(self, name)) is not None:
                setattr(self, name, nn.Parameter(weight.data[rows].clone()))
        self.output = nn.Parameter(self.output.data[:, rows].clone())
        self.heads = tuple(self.heads[p] for p in positions)
        self.gate = None


def fixed_weights(keys: Tensor) -> Tensor:
    """The weights (B, P, S, S), from query to key, of all patterns, zero for padding; `keys` are
    the real tokens (B, S).

    A row without a key (the first token has no previous one) is zero: the head then passes nothing
    on.
    """
    size = keys.shape[1]
    place = torch.arange(size, device=keys.device)
    offset = place[None, :] - place[:, None]  # key minus query
    length = keys.sum(1)[:, None, None]
    rising = (place + 1.0) ** 3  # the nearer to the end, the larger
    falling = (length - place).clamp(min=0.0) ** 3  # (B, 1, S)
    patterns = [
        (offset == 0).float(),
        (offset == -1).float(),
        (offset == 1).float(),
        (offset <= -2) * rising,
        (offset >= 2) * falling,
        rising.expand(size, size),
        falling,
    ]
    weights = torch.stack([pattern.expand(len(keys), size, size) for pattern in patterns], dim=1)
    weights = weights * keys[:, None, None] * keys[:, None, :, None]
    return weights / weights.sum(-1, keepdim=True).clamp(min=1.0)
