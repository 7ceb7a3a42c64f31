"""Scopes of pruning: the attention types whose heads may be removed, and a model's heads in a scope.

Heads are named (type, layer, head), layer and head from 1; the heads of a pruned model keep their original numbers.
"""

from collections.abc import Collection

from specialized_heads.model.architecture import KINDS, Architecture
from specialized_heads.model.transformer import Transformer

Head = tuple[str, int, int]

SCOPES = {"encoder": ("encoder",), "all": KINDS}


def heads_of(architecture: Architecture, *, scope: str) -> list[Head]:
    """The heads of a scope, by type, layer and number."""
    return [
        (kind, number, head + 1)
        for kind in SCOPES[scope]
        for number, layer in enumerate(getattr(architecture, kind), start=1)
        for head in layer
    ]


def remove_heads(model: Transformer, removed: Collection[Head]) -> None:
    """Remove these heads from the weights."""
    positions = {
        kind: [
            [position for position, head in enumerate(layer) if (kind, number, head + 1) not in removed]
            for number, layer in enumerate(getattr(model.architecture, kind), start=1)
        ]
        for kind in KINDS
    }
    model.keep_heads(positions)
