"""The Transformer of the paper (appendix B.2), in the variant of its released code.

Pre-norm sub-layers with a final LayerNorm on encoder and decoder, separate source and target embeddings scaled by √d, a softmax
matrix of its own without bias, sinusoidal positions. The number of heads may differ from layer to layer (a pruned configuration).

Shapes: B sentences, S source and T target tokens, D width, V target vocabulary.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.corpus.vocabulary import PAD
from specialized_heads.model.attention import MultiHeadAttention, Tape
from specialized_heads.model.functional import dropout

KINDS = ("encoder", "decoder", "cross")  # attention types, in the order of the paper's tables
Heads = tuple[tuple[int, ...], ...]  # per layer, the numbers of its heads, from 0


@dataclass(frozen=True)
class Architecture:
    """Everything that determines the shapes of the weights."""

    source_vocabulary: int
    target_vocabulary: int
    width: int
    feed_forward: int
    head_width: int
    encoder: Heads
    decoder: Heads
    cross: Heads

    @classmethod
    def full(
        cls, *, source_vocabulary: int, target_vocabulary: int, layers: int, heads: int, width: int, feed_forward: int
    ) -> "Architecture":
        """The unpruned architecture: `heads` heads in each attention sub-layer of `layers` + `layers` layers."""
        every = tuple(tuple(range(heads)) for _ in range(layers))
        return cls(
            source_vocabulary=source_vocabulary,
            target_vocabulary=target_vocabulary,
            width=width,
            feed_forward=feed_forward,
            head_width=width // heads,
            encoder=every,
            decoder=every,
            cross=every,
        )

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Architecture":
        """Inverse of `dataclasses.asdict`."""
        heads = {kind: tuple(tuple(layer) for layer in values[kind]) for kind in KINDS}
        return cls(**{**values, **heads})


class LayerNorm(nn.LayerNorm):
    """LayerNorm with ε 1e-6 in the precision of its weights, its result in that of the products that follow."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=1e-6)
        self.precision: torch.dtype | None = None  # None: that of the weights

    def forward(self, x: Tensor) -> Tensor:
        normalised = super().forward(x.to(self.weight.dtype))
        return normalised if self.precision is None else normalised.to(self.precision)


class FeedForward(nn.Module):
    """ReLU feed-forward sub-layer (B, T, D) -> (B, T, D)."""

    def __init__(self, *, kind: str, layer: int, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.kind, self.layer, self.dropout = kind, layer, dropout
        self.expand = nn.Linear(width, inner)
        self.contract = nn.Linear(inner, width)

    def forward(self, x: Tensor, tape: Tape | None = None) -> Tensor:
        hidden = F.relu(self.expand(x))
        if tape is not None:
            tape[self.kind, self.layer, "input"], tape[self.kind, self.layer, "hidden"] = x, hidden
        return self.contract(dropout(hidden, self.dropout, self.training))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each on the normalised input and added to it."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.attention_norm = LayerNorm(a.width)
        self.attention = MultiHeadAttention(
            kind="encoder",
            layer=layer,
            heads=a.encoder[layer],
            width=a.width,
            head_width=a.head_width,
            dropout=dropout,
        )
        self.feed_forward_norm = LayerNorm(a.width)
        self.feed_forward = FeedForward(
            kind="encoder_feed_forward", layer=layer, width=a.width, inner=a.feed_forward, dropout=dropout
        )

    def forward(self, x: Tensor, bias: Tensor, tape: Tape | None = None) -> Tensor:
        x = add(x, self.attention(self.attention_norm(x), None, bias, tape), self, "encoder", tape)
        return add(x, self.feed_forward(self.feed_forward_norm(x), tape), self, "encoder_feed_forward", tape)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward."""

    def __init__(self, a: Architecture, layer: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        common = {"layer": layer, "width": a.width, "head_width": a.head_width, "dropout": dropout}
        self.attention_norm = LayerNorm(a.width)
        self.attention = MultiHeadAttention(kind="decoder", heads=a.decoder[layer], **common)
        self.cross_norm = LayerNorm(a.width)
        self.cross = MultiHeadAttention(kind="cross", heads=a.cross[layer], **common)
        self.feed_forward_norm = LayerNorm(a.width)
        self.feed_forward = FeedForward(
            kind="decoder_feed_forward", layer=layer, width=a.width, inner=a.feed_forward, dropout=dropout
        )

    def forward(
        self, x: Tensor, memory: Tensor, causal: Tensor, memory_bias: Tensor, tape: Tape | None = None
    ) -> Tensor:
        x = add(x, self.attention(self.attention_norm(x), None, causal, tape), self, "decoder", tape)
        x = add(x, self.cross(self.cross_norm(x), memory, memory_bias, tape), self, "cross", tape)
        return add(x, self.feed_forward(self.feed_forward_norm(x), tape), self, "decoder_feed_forward", tape)


def add(x: Tensor, update: Tensor, layer: nn.Module, kind: str, tape: Tape | None) -> Tensor:
    """Residual connection with dropout on the update; the tape keeps both summands."""
    if tape is not None:
        number = (layer.cross if kind == "cross" else layer.attention).layer
        tape[kind, number, "residual"], tape[kind, number, "update"] = x, update
    return x + dropout(update, layer.dropout, layer.training).to(x.dtype)


class Transformer(nn.Module):
    """Encoder-decoder model; `architecture` says how many heads each layer has."""

    def __init__(self, architecture: Architecture, *, dropout: float) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.dropout = dropout
        self.source_embedding = nn.Parameter(torch.empty(a.source_vocabulary, a.width))
        self.target_embedding = nn.Parameter(torch.empty(a.target_vocabulary, a.width))
        self.softmax_embedding = nn.Parameter(torch.empty(a.target_vocabulary, a.width))
        self.encoder = nn.ModuleList(EncoderLayer(a, n, dropout) for n in range(len(a.encoder)))
        self.encoder_norm = LayerNorm(a.width)
        self.decoder = nn.ModuleList(DecoderLayer(a, n, dropout) for n in range(len(a.decoder)))
        self.decoder_norm = LayerNorm(a.width)
        self.register_buffer("positions", sinusoids(512, a.width), persistent=False)

    def forward(self, source: Tensor, target: Tensor, tape: Tape | None = None) -> Tensor:
        """Decoder states for teacher-forced targets.

        Args:
            source: ids (B, S), each sentence ending in EOS, then PAD.
            target: ids (B, T), each sentence starting with BOS, then PAD after its last token.
            tape: if given, receives the activations that the analysis needs.

        Returns:
            states (B, T, D); `logits` turns them into scores of the next token.
        """
        memory, bias = self.encode(source, tape)
        return self.decode(target, memory, bias, tape)

    def encode(self, source: Tensor, tape: Tape | None = None) -> tuple[Tensor, Tensor]:
        """Memory (B, S, D) and the attention bias (B, 1, 1, S) that hides padding."""
        x = self.embed(self.source_embedding, source)
        bias = torch.zeros(source.shape, device=source.device).masked_fill(source == PAD, -torch.inf)[:, None, None]
        for layer in self.encoder:
            x = layer(x, bias.to(x.dtype), tape)
        if tape is not None:
            tape["encoder_norm", 0, "input"] = x
        return self.encoder_norm(x), bias

    def decode(self, target: Tensor, memory: Tensor, memory_bias: Tensor, tape: Tape | None = None) -> Tensor:
        """States (B, T, D) of the decoder for target prefixes (B, T)."""
        x = self.embed(self.target_embedding, target)
        t = target.shape[1]
        causal = torch.full((t, t), -torch.inf, device=target.device).triu(1)
        for layer in self.decoder:
            x = layer(x, memory, causal.to(x.dtype), memory_bias.to(x.dtype), tape)
        if tape is not None:
            tape["decoder_norm", 0, "input"] = x
        return self.decoder_norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """Scores (..., V) of the next token, from decoder states (..., D)."""
        return F.linear(states, self.softmax_embedding)

    def embed(self, table: Tensor, ids: Tensor, start: int = 0) -> Tensor:
        """Embeddings of ids (B, T), scaled by √d, plus positions from `start` on."""
        end = start + ids.shape[1]
        if end > len(self.positions):
            self.positions = sinusoids(2 * end, self.architecture.width).to(table.device)
        x = F.embedding(ids, table) * math.sqrt(self.architecture.width) + self.positions[start:end]
        return dropout(x, self.dropout, self.training)

    def attentions(self, *kinds: str) -> list[MultiHeadAttention]:
        """The attention sub-layers of these types (default: all), by type, then layer."""
        by_kind = {
            "encoder": [layer.attention for layer in self.encoder],
            "decoder": [layer.attention for layer in self.decoder],
            "cross": [layer.cross for layer in self.decoder],
        }
        return [attention for kind in kinds or KINDS for attention in by_kind[kind]]

    def in_precision(self, dtype: torch.dtype) -> "Transformer":
        """A copy for training whose matrix products run in a narrower type; `refresh` brings the weights up to date.

        LayerNorms, embeddings, gates and the residual stream stay in float32, and are the very tensors of this model.
        """
        shared = {id(tensor): tensor for tensor in (*self.parameters(), *self.buffers())}
        narrow = copy.deepcopy(self, shared)
        for layer in (*narrow.encoder, *narrow.decoder):
            for module in layer.modules():
                if isinstance(module, LayerNorm):
                    module.precision = dtype
                elif isinstance(module, MultiHeadAttention | nn.Linear):
                    for name, weight in list(module.named_parameters(recurse=False)):
                        setattr(module, name, nn.Parameter(weight.detach().to(dtype), weight.requires_grad))
        narrow.encoder_norm.precision = narrow.decoder_norm.precision = dtype
        return narrow

    def refresh(self, source: "Transformer") -> None:
        """Copy the weights of `source` into this model, which is in another precision."""
        pairs = [(new, old) for new, old in zip(self.parameters(), source.parameters(), strict=True) if new is not old]
        with torch.no_grad():
            for new, old in pairs:
                new.copy_(old)

    def keep_heads(self, kept: dict[str, list[list[int]]]) -> None:
        """Remove heads from the weight matrices for good.

        Args:
            kept: by attention type and layer, the positions (in the layer as it is now) of the heads that stay.
        """
        for kind, layers in kept.items():
            for attention, positions in zip(self.attentions(kind), layers, strict=True):
                attention.keep(positions)
        heads = {kind: tuple(attention.heads for attention in self.attentions(kind)) for kind in KINDS}
        self.architecture = replace(self.architecture, **heads)


def sinusoids(length: int, width: int) -> Tensor:
    """Positions (length, width): sines in the first half of the channels, cosines in the second, as the released code."""
    half = width // 2
    rates = torch.exp(torch.arange(half) * -(math.log(1e4) / max(half - 1, 1)))
    angles = torch.arange(length)[:, None] * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def initialise(model: Transformer, *, seed: int) -> None:
    """Draw all weights: embeddings with standard deviation d^-½, other matrices Glorot uniform, biases zero, LayerNorms 1.

    The bound of a matrix follows from its own shape: with fewer heads, those of attention are smaller and their weights larger.
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
