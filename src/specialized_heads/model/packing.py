"""Training without padding on a CPU: lists of tokens for everything but attention, which pads its
blocks of sentences itself.

The tokens of a batch, one after the other, fill the rows of a list. Its length is rounded up, so
that few shapes occur: memory is reused, and oneDNN compiles few kernels. The filler at the end
takes part in everything token-wise. No real token attends to it, attention returns zeros for it,
and it has no label, so its gradients are zero.

Shapes: B sentences, P positions (padding included), N rows, H heads, T queries, S keys, K head
width.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from specialized_heads.model.functional import keep_mask, softmax_

ROWS = 64  # N is a multiple of this


class Packing:
    """Where the real tokens of a padded batch (B, P) are in a list of N rows."""

    def __init__(self, real: Tensor) -> None:
        """`real`: which positions (B, P) are not padding."""
        self.shape, self.tokens = real.shape, int(real.sum())
        self.rows = (self.tokens // ROWS + 1) * ROWS  # the last row is always filler
        # Of each row among the B * P positions; of filler: 0.
        self.place = torch.zeros(self.rows, dtype=torch.long)
        self.place[: self.tokens] = real.flatten().nonzero().flatten()
        self.row = torch.full(self.shape, self.rows - 1)  # of each position; of padding: the last
        self.row[real] = torch.arange(self.tokens)
        self._heads: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    @property
    def position(self) -> Tensor:
        """Position of each row's token in its sentence (N,)."""
        return self.place % self.shape[1]

    def pack(self, ids: Tensor, *, filler: int) -> Tensor:
        """Put ids (B, P) into a list (N,)."""
        packed = ids.flatten()[self.place]
        packed[self.tokens :] = filler
        return packed

    def heads(self, parts: int, heads: int) -> tuple[Tensor, Tensor]:
        """Two lists of indices of vectors of length K.

        The first brings (N, parts, H, K) into the order (parts, B, H, P, K), the second brings it
        back. The parts are queries, keys and values, or some of these.
        """
        if (parts, heads) not in self._heads:
            part, head = torch.arange(parts), torch.arange(heads)
            (b, p), column = self.shape, part[:, None] * heads + head  # (parts, H)
            there = self.row[None, :, None, :] * (parts * heads) + column[:, None, :, None]
            sentence, position = self.place // p, self.place % p
            first = (part[:, None] * b * heads + head) * p  # (parts, H): of sentence 0
            back = (sentence * heads * p + position)[:, None, None] + first
            self._heads[parts, heads] = there.flatten(), back.flatten()
        return self._heads[parts, heads]


@dataclass(frozen=True)
class Blocks:
    """What attention from one list of tokens to another needs in place of a mask."""

    queries: Packing
    keys: Packing
    attn_mask: Tensor  # broadcast over (B, H, T, S): 0 where attention is allowed, -inf elsewhere


def padding_mask(ids: Tensor, *, pad: int) -> Tensor:
    """Attention mask (B, 1, 1, S) that hides the padding of ids (B, S)."""
    visible = torch.zeros(ids.shape, device=ids.device)
    return visible.masked_fill(ids == pad, -torch.inf)[:, None, None]


def attend(
    query: Tensor, memory: Tensor | None, blocks: Blocks, *, heads: int, dropout: float
) -> Tensor:
    """Outputs of the heads (N, H*K), zero in the filler.

    Args:
        query: queries (N, H*K); without memory, queries, keys and values (N, 3*H*K).
        memory: keys and values of another list (M, 2*H*K), or None for self-attention.
    """
    return _Attention.apply(query, memory, blocks, heads, dropout)


class _Attention(torch.autograd.Function):
    """Scaled dot-product attention with its own backward pass, which reuses the blocks of the
    forward pass."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        query: Tensor,
        memory: Tensor | None,
        blocks: Blocks,
        heads: int,
        rate: float,
    ) -> Tensor:
        (b, t), (_, s) = blocks.queries.shape, blocks.keys.shape
        first = _unpack(query, blocks.queries, 3 if memory is None else 1, heads)  # 3: q, k, v
        q, k, v = first if memory is None else (*first, *_unpack(memory, blocks.keys, 2, heads))
        scale = q.shape[-1] ** -0.5
        scores = torch.bmm(q, k.mT, out=empty(b * heads, t, s, dtype=q.dtype))
        wide = torch.promote_types(q.dtype, torch.float32)
        p = torch.mul(scores, scale, out=empty(b * heads, t, s, dtype=wide)).view(b, heads, t, s)
        p = softmax_(p.add_(blocks.attn_mask)).view(b * heads, t, s)
        kept = keep_mask(p, rate)
        dropped = (p if kept is None else p * kept).to(q.dtype)
        context = torch.bmm(dropped, v, out=torch.empty_like(q))
        ctx.save_for_backward(q, k, v, p, kept, dropped)
        ctx.blocks, ctx.heads, ctx.own, ctx.scale = blocks, heads, memory is None, scale
        return _pack(context, blocks.queries, 1, heads)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, p, kept, dropped = ctx.saved_tensors
        blocks, heads = ctx.blocks, ctx.heads
        # Padding takes the gradient of the filler, which is zero.
        [gradient] = _unpack(gradient, blocks.queries, 1, heads)
        parts = torch.empty(3 if ctx.own else 1, *q.shape, dtype=q.dtype)  # gradients of q, ...
        others = parts[1:] if ctx.own else torch.empty(2, *k.shape, dtype=q.dtype)  # of k and v
        torch.bmm(dropped.mT, gradient, out=others[1])
        of_p = torch.bmm(gradient, v.mT, out=torch.empty_like(dropped)).to(p.dtype)
        if kept is not None:
            of_p *= kept
        of_p *= p
        of_scores = of_p.sub_(p * of_p.sum(-1, keepdim=True)).mul_(ctx.scale).to(q.dtype)
        torch.bmm(of_scores, k, out=parts[0])
        torch.bmm(of_scores.mT, q, out=others[0])
        of_query = _pack(parts, blocks.queries, len(parts), heads)
        return of_query, None if ctx.own else _pack(others, blocks.keys, 2, heads), None, None, None


def empty(*shape: int, dtype: torch.dtype) -> Tensor:
    """Uninitialised tensor with memory of one of few sizes, so that freed memory is used again."""
    size = math.prod(shape)
    step = max(2 ** (size.bit_length() - 4), 1)
    return torch.empty(-(-size // step) * step, dtype=dtype)[:size].view(shape)


def _unpack(x: Tensor, packing: Packing, parts: int, heads: int) -> Tensor:
    """(N, parts * H * K) -> (parts, B * H, P, K); padding repeats the filler."""
    b, p = packing.shape
    rows = x.contiguous().view(x.shape[0] * parts * heads, -1)
    out = empty(parts * b * heads * p, rows.shape[1], dtype=x.dtype)
    torch.index_select(rows, 0, packing.heads(parts, heads)[0], out=out)
    return out.view(parts, b * heads, p, -1)


def _pack(x: Tensor, packing: Packing, parts: int, heads: int) -> Tensor:
    """(parts, B * H, P, K) -> (N, parts * H * K); zero in the filler."""
    rows = x.reshape(-1, x.shape[-1])
    packed = rows.index_select(0, packing.heads(parts, heads)[1]).view(packing.rows, -1)
    packed[packing.tokens :] = 0.0
    return packed
