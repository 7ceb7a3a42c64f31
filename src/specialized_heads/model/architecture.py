"""The architecture of a translation model as data: sizes, the heads of each layer, and the options
in which models differ."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from specialized_heads.corpus.tokens import OURS, STRICT, Id, SpecialTokens

KINDS = ("encoder", "decoder", "cross")  # attention types, in the order of the paper's tables
SCOPES = {"encoder": ("encoder",), "all": KINDS}  # of pruning: the types whose heads may be removed
# Type, layer and head, both from 1; heads of a pruned model keep their original numbers.
Head = tuple[str, int, int]


def _once(layer: tuple[int, ...]) -> tuple[int, ...]:
    """Results join tables by the numbers of heads."""
    if len(set(layer)) < len(layer):
        raise ValueError("each head of a layer needs a number of its own")
    return layer


Layer = Annotated[tuple[Id, ...], AfterValidator(_once)]
Heads = Annotated[tuple[Layer, ...], Field(max_length=1000)]  # of each layer, numbers from 0
Size = Annotated[int, Field(ge=1)]
Vocabulary = Annotated[int, Field(ge=4)]
Width = Annotated[int, Field(ge=2)]
Positive = Annotated[float, Field(gt=0)]
Epsilon = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class Architecture:
    """Everything that determines what the weights compute. The defaults are the paper's."""

    __pydantic_config__ = STRICT
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    width: Width
    feed_forward: Size
    head_width: Size
    encoder: Heads
    decoder: Heads
    cross: Heads
    position_frequency: Positive = 1.0  # highest frequency of the sinusoids, radians per token
    position_base: Annotated[float, Field(gt=1)] = 1e4  # ratio of their highest to their lowest
    position_scale: Positive = 1.0  # their amplitude
    position_start: Annotated[int, Field(ge=0, le=1000)] = 0  # position of a sentence's first token
    position_last: bool = True  # the lowest is 1 / base; False: the next after it would be
    fixed_patterns: bool = False  # encoder heads 1 to 7 attend as in `attention.LABELS`
    # Normalise the sum after each sub-layer, not its input, and nothing after the last layer.
    post_norm: bool = False
    activation: Literal["relu", "gelu", "swish"] = "relu"  # one of `transformer.ACTIVATIONS`
    attention_bias: bool = False  # biases in the four projections of attention
    output_bias: bool = False  # a constant bias on the logits
    norm_epsilon: Epsilon = 1e-6  # ε of LayerNorm
    scale_embeddings: bool = True  # by √d
    # Embeddings that are one matrix: "output" (target and output), "all", or none.
    tied: Literal["", "output", "all"] = ""
    tokens: SpecialTokens = OURS

    @classmethod
    def full(
        cls,
        *,
        layers: int,
        heads: int,
        width: int,
        decoder_layers: int | None = None,
        head_width: int | None = None,
        **sizes: float,
    ) -> "Architecture":
        """The unpruned architecture: `heads` heads in each attention sub-layer of `layers` +
        `decoder_layers` layers.

        The decoder has as many layers as the encoder unless `decoder_layers` is given, and heads
        are `width` / `heads` wide unless `head_width` is; `sizes` are the remaining fields.
        """
        layer = (tuple(range(heads)),)
        decoder = layer * (decoder_layers or layers)
        by_type = {"encoder": layer * layers, "decoder": decoder, "cross": decoder}
        return cls(width=width, head_width=head_width or width // heads, **by_type, **sizes)


def heads_of(architecture: Architecture, *, scope: str) -> list[Head]:
    """The heads of a scope, by type, layer and number."""
    return [
        (kind, number, head + 1)
        for kind in SCOPES[scope]
        for number, layer in enumerate(getattr(architecture, kind), start=1)
        for head in layer
    ]
