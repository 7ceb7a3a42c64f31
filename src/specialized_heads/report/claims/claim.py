"""What a claim is, and how it is judged: a number, the range that bears the claim out, and one of four verdicts.

The range is the paper's value with a tolerance, both stated. A measured value within it reproduces the claim; one outside
whose interval reaches into it reproduces it partly; any other does not. A claim that one thing is better than another, by
whatever little, asks for more: chance alone gives every second difference its sign, so the whole interval has to lie in the
range, and a value that lies there by itself reproduces it partly. Where the experiment cannot tell, the claim is not testable
and the reason is given. Nothing else enters a verdict.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from specialized_heads.report.claims.evidence import Evidence


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True)
class Measured:
    """A number with its 95% interval, where it has one, and what it was counted over."""

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int | None = None
    of: str = ""  # what n counts


@dataclass(frozen=True)
class Untestable:
    """Why an experiment has nothing to say about a claim; whole clause, in lower case."""

    reason: str


class Unit(StrEnum):
    """What a value is, and so how it is written."""

    BLEU = "BLEU"  # absolute
    DIFFERENCE = "difference"  # of BLEU, with its sign
    SHARE = "share"  # of one, in percent
    POINTS = "points"  # difference of two shares, in percentage points
    CORRELATION = "correlation"
    RANK = "rank"

    def text(self, value: float) -> str:
        """The value as it is read."""
        factor, form = FORMATS[self]
        return f"{factor * value:{form}}".replace("-", "−")


FORMATS = {
    Unit.BLEU: (1, ".1f"),
    Unit.DIFFERENCE: (1, "+.2f"),
    Unit.SHARE: (1, ".0%"),
    Unit.POINTS: (100, "+.0f"),
    Unit.CORRELATION: (1, ".2f"),
    Unit.RANK: (1, ".2g"),  # a mean over seeds may lie between two
}


@dataclass(frozen=True)
class Claim:
    """One quantitative statement of a paper.

    Attributes:
        name: short, unique; the key of the table.
        section: of the paper.
        text: the claim in our words.
        reported: the paper's value as it is read.
        unit: of the value that is measured.
        accepted: the range that bears the claim out, both ends included, tolerance and all; infinite where it is open.
        tolerance: how the range follows from the paper's value.
        measure: the same quantity on an experiment's corpus.
        of_pruning: whether it needs a corpus that is pruned.
        directed: whether it says no more than that something is larger than something else.
    """

    name: str
    section: str
    text: str
    reported: str
    unit: Unit
    accepted: tuple[float, float]
    tolerance: str
    measure: Callable[[Evidence], Measured | Untestable]
    of_pruning: bool = True
    directed: bool = False


def judge(found: Measured | Untestable, accepted: tuple[float, float], *, directed: bool = False) -> Verdict:
    """The verdict on a claim: see the head of this file."""
    if isinstance(found, Untestable):
        return Verdict.NOT_TESTABLE
    low, high = accepted
    if low <= found.value <= high:
        certain = low <= found.low and found.high <= high  # never, where there is no interval
        return Verdict.REPRODUCED if certain or not directed else Verdict.PARTLY
    if found.low <= high and found.high >= low:  # never, where there is no interval
        return Verdict.PARTLY
    return Verdict.NOT_REPRODUCED


def proportion(count: int, total: int, *, of: str) -> Measured:
    """A share with Wilson's 95% interval."""
    z = 1.959964
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return Measured(share, max(0.0, middle - half), min(1.0, middle + half), total, of)
