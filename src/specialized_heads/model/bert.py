"""BERT (Devlin et al. 2019): an encoder with learned positions, for masked language modelling or
classification.

The layers are those of the translation model's encoder, normalised after each sub-layer and with
biases in attention, so gates, masks, importance and removal of heads work alike. With labels the
model classifies from the state of the first token; without, it predicts masked tokens, with the
word embeddings as output matrix.

Shapes: B sentences, S tokens, N rows of a packed list, D width, V vocabulary, L labels.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specialized_heads.corpus.tokens import STRICT, Id
from specialized_heads.model.architecture import Epsilon, Heads, Size, Vocabulary, Width
from specialized_heads.model.attention import Activations
from specialized_heads.model.functional import dropout
from specialized_heads.model.packing import Blocks, Packing, padding_mask
from specialized_heads.model.transformer import ACTIVATIONS, EncoderLayer, LayerNorm, Network


@dataclass(frozen=True)
class BertArchitecture:
    """Everything that determines what the weights compute; the defaults are those of
    bert-base-uncased."""

    __pydantic_config__ = STRICT
    vocabulary: Vocabulary
    width: Width
    feed_forward: Size
    head_width: Size
    encoder: Heads
    labels: Id  # of the classifier; 0: the model predicts masked tokens
    decoder: tuple[()] = ()
    cross: tuple[()] = ()
    positions: Size = 512  # longest input
    segments: Size = 2
    activation: Literal["relu", "gelu"] = "gelu"
    norm_epsilon: Epsilon = 1e-12
    pad: Id = 0
    separator: Id = 102  # id of [SEP], after which the second segment begins
    mask: Id = 103  # id of [MASK]

    # What the layers also ask for.
    post_norm: ClassVar[bool] = True
    attention_bias: ClassVar[bool] = True
    fixed_patterns: ClassVar[bool] = False

    @classmethod
    def full(cls, *, layers: int, heads: int, width: int, **sizes: Any) -> "BertArchitecture":
        """`layers` layers with `heads` heads each; `sizes` are the remaining fields."""
        encoder = (tuple(range(heads)),) * layers
        return cls(width=width, head_width=width // heads, encoder=encoder, **sizes)


class Bert(Network):
    """The encoder with the head of its task."""

    def __init__(self, architecture: BertArchitecture, *, dropout: float) -> None:
        super().__init__()
        a = self.architecture = architecture
        self.dropout = dropout
        self.word_embedding = nn.Parameter(torch.empty(a.vocabulary, a.width))
        self.position_embedding = nn.Parameter(torch.empty(a.positions, a.width))
        self.segment_embedding = nn.Parameter(torch.empty(a.segments, a.width))
        self.embedding_norm = LayerNorm(a)
        self.encoder = nn.ModuleList(EncoderLayer(a, n, dropout) for n in range(len(a.encoder)))
        self.decoder = nn.ModuleList()
        # The pooler of a classifier; otherwise before the output matrix.
        self.transform = nn.Linear(a.width, a.width)
        if a.labels:
            self.classifier = nn.Linear(a.width, a.labels)
        else:
            self.transform_norm = LayerNorm(a)
            self.output_bias = nn.Parameter(torch.zeros(a.vocabulary))

    def forward(self, ids: Tensor, activations: Activations | None = None) -> Tensor:
        """States (B, S, D) of the last layer from padded ids (B, S).

        The second segment begins after the first [SEP]. `activations` records what the analysis
        needs.
        """
        packs = activations is None and self.packs()
        packing = Packing(ids != self.architecture.pad) if packs else None
        x, attn_mask = self.embed(ids, packing)
        for layer in self.encoder:
            x = layer(x, attn_mask, activations)
        return x if packing is None else x[packing.row]

    def embed(self, ids: Tensor, packing: Packing | None = None) -> tuple[Tensor, Tensor | Blocks]:
        """Input of the first layer (B, S, D), or packed (N, D), and the attention mask of all
        layers."""
        a = self.architecture
        hidden = padding_mask(ids, pad=a.pad)
        separators = (ids == a.separator).int()
        segments = (separators.cumsum(1) - separators).clamp(max=a.segments - 1)
        positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        if packing:
            given = (ids, segments, positions)
            ids, segments, positions = (packing.pack(each, filler=0) for each in given)
        x = F.embedding(ids, self.word_embedding) + F.embedding(segments, self.segment_embedding)
        x = self.embedding_norm(x + F.embedding(positions, self.position_embedding))
        x = dropout(x, self.dropout, self.training)
        return x, Blocks(packing, packing, hidden) if packing else hidden.to(x.dtype)

    def classify(self, x: Tensor, attn_mask: Tensor, *, start: int = 0) -> Tensor:
        """Scores of the labels (B, L) from the input (B, S, D) of layer `start`, counted from 0.

        Of the last layer, only the state that the classifier reads is computed.
        """
        for layer in self.encoder[start:-1]:
            x = layer(x, attn_mask)
        return self.logits(self.encoder[-1](x[:, :1], attn_mask, memory=x))

    def logits(self, states: Tensor) -> Tensor:
        """Scores of the labels (B, L) from states (B, S, D)."""
        pooled = torch.tanh(self.transform(states[:, 0]))
        return self.classifier(dropout(pooled, self.dropout, self.training))

    def before_output(self, states: Tensor) -> Tensor:
        """States (..., D) as the output matrix of the masked language model takes them."""
        activation = ACTIVATIONS[self.architecture.activation]
        return self.transform_norm(activation(self.transform(states)))


def initialise(model: Bert, *, seed: int, only: Collection[str] = ()) -> None:
    """Draw all weights, or those whose names start with one of `only`: N(0, 0.02), biases 0,
    LayerNorm gains 1.

    Models narrower than BERT's 768 draw N(0, 0.02 · √(768 / D)), so that the products of their
    matrices have its size.
    """
    generator = torch.Generator().manual_seed(seed)
    deviation = 0.02 * math.sqrt(max(1.0, 768 / model.architecture.width))
    for name, parameter in model.named_parameters():
        if only and not name.startswith(tuple(only)):
            continue
        if parameter.dim() == 2:
            parameter.data.normal_(0.0, deviation, generator=generator)
        else:
            parameter.data.fill_(float("norm" in name and name.endswith("weight")))
