"""Which functions a head has: positional, syntactic, rare words, several of them, or none (section 5).

The paper labels encoder heads. Here decoder heads can also be positional, and cross-attention heads diagonal (on the diagonal or
next to it).
"""

from collections.abc import Mapping

from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.positional import Position

POSITIONAL, SYNTACTIC, RARE_WORDS, DIAGONAL = "positional", "syntactic", "rare words", "diagonal"
FUNCTIONS = (POSITIONAL, SYNTACTIC, RARE_WORDS)  # of encoder heads
POSITIONAL_SHARE = 0.9  # share of argmaxes at one position that makes a head positional (section 5.1)
RARE_SHARE = 0.5  # share of argmaxes on the least frequent token that makes a rare-words head (section 5.3)
LEAST_ARCS = 30  # of a relation, for labels that hold on other sentences too
BESIDE = 1  # source tokens; the largest distance of a diagonal head's preferred position from the diagonal


def functions_of(
    kind: str, place: Position, settings: Heads, *, margins: Mapping[str, float], rarest: float
) -> tuple[list[str], list[str]]:
    """Label a head.

    Args:
        kind: attention type; only encoder heads have `margins` and `rarest`.
        place: from `positional.preferred`.
        settings: the margin of syntactic heads.
        margins: accuracy above the best fixed offset, per relation and direction; NaN where the relation does not occur.
        rarest: share of argmaxes on the least frequent token; NaN where no sentence qualifies.

    Returns:
        the functions, in the order of `FUNCTIONS`, and the relations that make the head syntactic.
    """
    at_one_place = place.share >= POSITIONAL_SHARE  # NaN is not
    if kind == "cross":
        return [DIAGONAL] if at_one_place and abs(place.offset) <= BESIDE else [], []
    # The tolerance lets a head pass that is exactly ten points above the baseline.
    relations = [name for name, margin in margins.items() if margin >= settings.syntactic_margin - 1e-12]
    labels = {POSITIONAL: at_one_place, SYNTACTIC: bool(relations), RARE_WORDS: rarest >= RARE_SHARE}
    return [name for name in FUNCTIONS if labels[name]], relations
