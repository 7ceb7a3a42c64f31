"""Which functions a head has: positional, syntactic, rare words, several of them, or none (section 5).

The paper labels encoder heads. Here decoder heads can also be positional, and cross-attention heads diagonal (on the diagonal or
next to it). A further function that is a share of argmaxes is registered in two places: how it is counted in `shares.SHARES`, and
its threshold, name and look in `FUNCTIONS`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from specialized_heads.heads.positional import Position


class Function(NamedTuple):
    """A function of encoder heads."""

    name: str  # in tables and figures
    score: str  # the column of the table of heads that decides; "": the margins of relations
    threshold: float  # the least score of a head with this function
    measure: str  # the score in words
    colour: str
    hatch: str


POSITIONAL, SYNTACTIC, RARE_WORDS, DIAGONAL = "positional", "syntactic", "rare words", "diagonal"
FUNCTIONS = (
    Function(POSITIONAL, "positional_share", 0.9, "share at one position", "#5AA2E0", "/////"),  # section 5.1
    Function(SYNTACTIC, "", 0.1, "margin over the fixed offset", "#E8743B", "-----"),  # section 5.2
    Function(RARE_WORDS, "rarest", 0.5, "share at the rarest token", "#F3D34A", "xxxxx"),  # section 5.3
)
BY_NAME = {function.name: function for function in FUNCTIONS}
OF_TOKENS = tuple(function for function in FUNCTIONS if function.name not in (POSITIONAL, SYNTACTIC))
LEAST_ARCS = 30  # of a relation, for labels that hold on other sentences too
BESIDE = 1  # source tokens; the largest distance of a diagonal head's preferred position from the diagonal


def functions_of(
    kind: str, place: Position, *, margins: Mapping[str, float], shares: Mapping[str, float]
) -> tuple[list[str], list[str]]:
    """The functions of a head, in the order of `FUNCTIONS`, and the relations that make it syntactic.

    Args:
        kind: attention type; only encoder heads have `margins` and `shares`.
        margins: accuracy above the best fixed offset, per relation and direction; NaN where the relation does not occur.
        shares: of argmaxes, by column (`shares.SHARES`); NaN where no sentence qualifies.
    """
    at_one_place = place.share >= BY_NAME[POSITIONAL].threshold  # NaN is not
    if kind == "cross":
        return [DIAGONAL] if at_one_place and abs(place.offset) <= BESIDE else [], []
    # The tolerance lets a head pass that is exactly ten points above the baseline.
    relations = [name for name, margin in margins.items() if margin >= BY_NAME[SYNTACTIC].threshold - 1e-12]
    labels = {POSITIONAL: at_one_place, SYNTACTIC: bool(relations)}
    labels |= {function.name: shares.get(function.score, float("nan")) >= function.threshold for function in OF_TOKENS}
    return [function.name for function in FUNCTIONS if labels[function.name]], relations
