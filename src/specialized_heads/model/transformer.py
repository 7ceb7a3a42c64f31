"""The Transformer of the paper (appendix B.2), in the variant of its released code.

Pre-norm sub-layers with a final LayerNorm on encoder and decoder, separate source, target and
output embeddings (the first two scaled by √d), no output bias, sinusoidal positions. The number of
heads may differ between layers (a pruned configuration). `Architecture` has a field for each point
in which other published models differ.

Shapes: B sentences, S source and T target tokens, D width, V target vocabulary. Lists of N tokens
(`packing`), (N, D), may replace (B, S, D) and (B, T, D).
"""

import copy
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.model.architecture import KINDS, Architecture, Head
from specialized_heads.model.attention import Activations, MultiHeadAttention
from specialized_heads.model.functional import dropout
from specialized_heads.model.packing import Blocks, Packing, padding_mask

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
            activations[self.name, self.layer, "input"] = x
            activations[self.name, self.layer, "hidden"] = hidden
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
        name: str,
        activations: Activations | None = None,
    ) -> Tensor:
        """Add what a sub-layer computes from the normalised residual stream (B, T, D), with
        dropout; with `post_norm` normalise the sum instead.

        `activations` records both summands under the sub-layer's name.
        """
        update = function(x if self.post_norm else norm(x))
        if activations is not None:
            activations[name, self.layer, "residual"] = x
            activations[name, self.layer, "update"] = update
        x = x + dropout(update, self.dropout, self.training).to(x.dtype)
        return norm(x) if self.post_norm else x

    def through_feed_forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        """The last sub-layer of encoder and decoder layers."""
        function = partial(self.feed_forward, activations=activations)
        name = self.feed_forward.name
        return self.sublayer(x, self.feed_forward_norm, function, name, activations)


class EncoderLayer(Layer):
    """Self-attention and feed-forward."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__(a, layer, dropout)
        self.attention_norm = LayerNorm(a)
        self.attention = MultiHeadAttention(a, kind="encoder", layer=layer, dropout=dropout)
        self.feed_forward_norm = LayerNorm(a)
        name = "encoder_feed_forward"
        self.feed_forward = FeedForward(a, name=name, layer=layer, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | Blocks,
        activations: Activations | None = None,
        *,
        memory: Tensor | None = None,
    ) -> Tensor:
        """`memory`: the states of all tokens (B, S, D) if x has only some; with `post_norm`."""
        given = {"memory": memory, "attn_mask": attn_mask, "activations": activations}
        attend = partial(self.attention, **given)
        x = self.sublayer(x, self.attention_norm, attend, "encoder", activations)
        return self.through_feed_forward(x, activations)


class DecoderLayer(Layer):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__(a, layer, dropout)
        self.attention_norm = LayerNorm(a)
        self.attention = MultiHeadAttention(a, kind="decoder", layer=layer, dropout=dropout)
        self.cross_norm = LayerNorm(a)
        self.cross = MultiHeadAttention(a, kind="cross", layer=layer, dropout=dropout)
        self.feed_forward_norm = LayerNorm(a)
        name = "decoder_feed_forward"
        self.feed_forward = FeedForward(a, name=name, layer=layer, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        causal: Tensor | Blocks,
        memory_mask: Tensor | Blocks,
        activations: Activations | None = None,
    ) -> Tensor:
        attend = partial(self.attention, memory=None, attn_mask=causal, activations=activations)
        given = {"memory": memory, "attn_mask": memory_mask, "activations": activations}
        attend_to_memory = partial(self.cross, **given)
        x = self.sublayer(x, self.attention_norm, attend, "decoder", activations)
        x = self.sublayer(x, self.cross_norm, attend_to_memory, "cross", activations)
        return self.through_feed_forward(x, activations)


class Network(nn.Module):
    """What the translation model and BERT share: attention sub-layers whose heads can be gated,
    masked and removed.

    `architecture` is a frozen dataclass with the heads of each attention type; `encoder` and
    `decoder` hold the layers.
    """

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def attentions(self, *kinds: str) -> list[MultiHeadAttention]:
        """The attention sub-layers of these types (default: all), by type, then layer."""
        by_kind = {
            "encoder": [layer.attention for layer in self.encoder],
            "decoder": [layer.attention for layer in self.decoder],
            "cross": [layer.cross for layer in self.decoder],
        }
        return [attention for kind in kinds or KINDS for attention in by_kind[kind]]

    def packs(self) -> bool:
        """Whether to train on packed tokens: on a CPU, where it is faster, and without fixed
        patterns, which need padding."""
        return self.training and self.device.type == "cpu" and not self.has_fixed_heads()

    def has_fixed_heads(self) -> bool:
        return any(any(map(each.is_fixed, each.heads)) for each in self.attentions())

    def in_precision(self, dtype: torch.dtype) -> Self:
        """A copy for training whose matrix products run in a narrower type; `refresh` updates its
        weights.

        LayerNorms, embeddings, gates and the residual stream stay in float32; the copy shares those
        tensors with this model.
        """
        # With post-norm, the output of a LayerNorm is the residual stream.
        post_norm = self.architecture.post_norm
        shared = {id(tensor): tensor for tensor in (*self.parameters(), *self.buffers())}
        narrow = copy.deepcopy(self, shared)
        for layer in (*narrow.encoder, *narrow.decoder):
            for module in layer.modules():
                if isinstance(module, LayerNorm):
                    module.precision = None if post_norm else dtype
                elif isinstance(module, MultiHeadAttention | nn.Linear):
                    for name, weight in list(module.named_parameters(recurse=False)):
                        copied = nn.Parameter(weight.detach().to(dtype), weight.requires_grad)
                        setattr(module, name, copied)
        return narrow

    def refresh(self, source: Self) -> None:
        """Copy the weights of `source` that are trained into this model, which `in_precision` has
        made from it."""
        with torch.no_grad():
            for new, old in zip(self.parameters(), source.parameters(), strict=True):
                if new is not old and new.requires_grad:
                    new.copy_(old)

    def keep_heads(self, kept: dict[str, list[list[int]]]) -> None:
        """Permanently remove heads from the weight matrices; `kept`: places of those that stay, by
        attention type and layer."""
        for kind, layers in kept.items():
            for attention, positions in zip(self.attentions(kind), layers, strict=True):
                attention.keep(positions)
        heads = {kind: tuple(each.heads for each in self.attentions(kind)) for kind in KINDS}
        self.architecture = replace(self.architecture, **heads)

    def remove_heads(self, removed: Collection[Head]) -> None:
        kept: dict[str, list[list[int]]] = {kind: [] for kind in KINDS}
        for a in self.attentions():
            heads = [(a.kind, a.layer + 1, head + 1) for head in a.heads]
            kept[a.kind].append([place for place, head in enumerate(heads) if head not in removed])
        self.keep_heads(kept)


class Transformer(Network):
    """Encoder-decoder model; `architecture` lists the heads of each layer."""

    def __init__(self, architecture: Architecture, *, dropout: float) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.dropout = dropout
        self.source_embedding = nn.Parameter(torch.empty(a.source_vocabulary, a.width))
        self.target_embedding = nn.Parameter(torch.empty(a.target_vocabulary, a.width))
        self.output_embedding = nn.Parameter(torch.empty(a.target_vocabulary, a.width))
        if a.tied == "all":
            self.target_embedding = self.source_embedding
        if a.tied:
            self.output_embedding = self.target_embedding
        bias = nn.Parameter(torch.zeros(a.target_vocabulary), requires_grad=False)
        self.output_bias = bias if a.output_bias else None
        self.encoder = nn.ModuleList(EncoderLayer(a, n, dropout) for n in range(len(a.encoder)))
        self.encoder_norm = nn.Identity() if a.post_norm else LayerNorm(a)
        self.decoder = nn.ModuleList(DecoderLayer(a, n, dropout) for n in range(len(a.decoder)))
        self.decoder_norm = nn.Identity() if a.post_norm else LayerNorm(a)
        # encodings, made on demand
        self.register_buffer("positions", torch.empty(0, a.width), persistent=False)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        activations: Activations | None = None,
        *,
        targets: Packing | None = None,
    ) -> Tensor:
        """Decoder states (B, T, D) for teacher-forced targets, from which `logits` computes the
        scores of the next token.

        Padded ids: the source (B, S) ends in EOS, the target (B, T) begins with the start token.
        `activations` records what the analysis needs. With the places `targets` of the target's
        tokens, nothing is computed for padding: states (N, D).
        """
        sources = Packing(source != self.architecture.tokens.pad) if targets else None
        memory, attn_mask = self.encode(source, activations, packing=sources)
        x = self.embed(self.target_embedding, target, packing=targets)
        causal = x.new_full((target.shape[1],) * 2, -torch.inf).triu(1)
        memory_mask = attn_mask.to(x.dtype)
        if targets:
            causal = Blocks(targets, targets, causal)
            memory_mask = Blocks(targets, sources, memory_mask)
        for layer in self.decoder:
            x = layer(x, memory, causal, memory_mask, activations)
        return self.decoder_norm(x)

    def encode(
        self,
        source: Tensor,
        activations: Activations | None = None,
        *,
        packing: Packing | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Encoder output, called memory, (B, S, D) or with `packing` (N, D); attention mask (B, 1,
        1, S) that hides padding."""
        x = self.embed(self.source_embedding, source, packing=packing)
        attn_mask = padding_mask(source, pad=self.architecture.tokens.pad)
        mask = Blocks(packing, packing, attn_mask) if packing else attn_mask.to(x.dtype)
        for layer in self.encoder:
            x = layer(x, mask, activations)
        return self.encoder_norm(x), attn_mask

    def logits(self, states: Tensor) -> Tensor:
        """Scores (..., V) of the next token, from decoder states (..., D)."""
        return F.linear(states, self.output_embedding, self.output_bias)

    def embed(
        self, table: Tensor, ids: Tensor, *, start: int = 0, packing: Packing | None = None
    ) -> Tensor:
        """Embeddings of ids (B, T), scaled by √d, plus the encodings of their positions, from
        `start` on: (B, T, D) or (N, D)."""
        encodings = self.encodings(start, start + ids.shape[1])
        if packing:
            ids = packing.pack(ids, filler=self.architecture.tokens.pad)
            encodings = encodings[packing.position]
        x = F.embedding(ids, table)
        if self.architecture.scale_embeddings:
            x = x * math.sqrt(self.architecture.width)
        return dropout(x + encodings, self.dropout, self.training)

    def encodings(self, start: int, end: int) -> Tensor:
        """Position encodings (end - start, D) of tokens number `start` to `end` - 1."""
        start, end = (place + self.architecture.position_start for place in (start, end))
        positions = self.positions
        if end > len(positions):  # micro-batches in other threads may extend it, too
            positions = self.positions = self.sinusoids(max(2 * end, 512)).to(positions.device)
        return positions[start:end]

    def sinusoids(self, length: int) -> Tensor:
        a = self.architecture
        how = {"frequency": a.position_frequency, "base": a.position_base, "last": a.position_last}
        return a.position_scale * sinusoids(length, a.width, **how)

    def in_precision(self, dtype: torch.dtype) -> Self:
        narrow = super().in_precision(dtype)
        narrow.encoder_norm.precision = narrow.decoder_norm.precision = dtype
        return narrow


def sinusoids(
    length: int, width: int, *, frequency: float = 1.0, base: float = 1e4, last: bool = True
) -> Tensor:
    """Position encodings (length, width): sines in the first half of the channels, cosines in the
    second (released code).

    Rates fall geometrically from `frequency` to `frequency` / `base` radians per token, the lowest
    left out unless `last`. An odd width has one sine more or, with `last`, a channel of zeros at
    the end, as in transformers.
    """
    half, odd = width // 2, width % 2
    fall = math.log(base) / max(half - 1 if last else width / 2, 1)
    rates = frequency * torch.exp(torch.arange(half + odd) * -fall)
    angles = torch.arange(length)[:, None] * rates[None, :]
    sines = angles.sin()[:, : half + odd * (not last)]
    return F.pad(torch.cat([sines, angles.cos()[:, :half]], dim=1), (0, odd * last))


def initialise(model: Transformer, *, seed: int) -> None:
    """Draw all weights: embeddings N(0, d^-½), other matrices Glorot uniform, biases 0, LayerNorm
    gains 1.

    The bound of a matrix follows from its own shape, so attention matrices with fewer heads have
    larger weights.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if name.endswith("embedding"):
            parameter.data.normal_(0.0, model.architecture.width**-0.5, generator=generator)
        elif parameter.dim() == 2:
            bound = math.sqrt(6.0 / max(sum(parameter.shape), 1))
            parameter.data.uniform_(-bound, bound, generator=generator)
        elif "norm" in name and name.endswith("weight"):
            parameter.data.fill_(1.0)
        else:
            parameter.data.zero_()
