"""Scopes of pruning: which attention types compete for the heads to keep, and the heads that a model has of them.

Heads are named (type, layer, head), layer and head from 1, as in all tables; a pruned model's heads keep the numbers that
they had before.
"""

from specialized_heads.model.transformer import KINDS, Architecture

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
