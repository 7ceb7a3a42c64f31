"""A claim and its verdict: a measured number, the range that confirms the claim, and one of four verdicts.

The range is the paper's value with a tolerance; both are stated. A value in the range reproduces the claim; one outside
whose interval reaches the range reproduces it partly; any other does not. A claim that one thing is larger than another is
`directed`: chance alone gives every second difference the right sign, so the whole interval must lie in the range; with only
the value in it the claim is reproduced partly, and with the wrong sign not at all. A value in the range whose evidence is too
thin (`Measured.sufficient`) reproduces a claim partly, too. If the experiment cannot test the claim, the reason is given.
Nothing else enters a verdict.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scipy.stats import binomtest

from specialized_heads.report.claims.evidence import Evidence


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True)
class Measured:
    """A number with its 95% interval, if it has one.

    Attributes:
        value, low, high: the number and its interval.
        n, of: sample size, and the unit that it counts.
        note: what the number is compared with, or how strong the evidence is.
        sufficient: whether the evidence suffices for more than "partly".
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int | None = None
    of: str = ""
    note: str = ""
    sufficient: bool = True


class Unit(StrEnum):
    """The unit of a value, which decides its format."""

    BLEU = "BLEU"
    DIFFERENCE = "difference"  # of BLEU
    SHARE = "share"  # in percent
    POINTS = "points"  # difference of two shares, in percentage points
    CORRELATION = "correlation"
    RANK = "rank"

    def text(self, value: float) -> str:
        """The formatted value."""
        factor, form = FORMATS[self]
        return f"{factor * value:{form}}".replace("-", "−")


FORMATS = {
    Unit.BLEU: (1, ".1f"),
    Unit.DIFFERENCE: (1, "+.2f"),
    Unit.SHARE: (1, ".0%"),
    Unit.POINTS: (100, "+.0f"),
    Unit.CORRELATION: (1, ".2f"),
    Unit.RANK: (1, ".2g"),  # a mean over seeds need not be whole
}


@dataclass(frozen=True)
class Claim:
    """A quantitative statement of a paper.

    Attributes:
        name: short and unique; the key in the table.
        section: of the paper.
        text: the claim in our words.
        reported: the paper's value, formatted.
        unit: of the measured value.
        accepted: the range that confirms the claim, both ends included; infinite at an open end.
        tolerance: how the range follows from the paper's value.
        measure: the same quantity on an experiment's corpus; raises `evidence.NotTestable`.
        of_pruning: whether it needs a corpus that is pruned.
        directed: whether it only says that something is larger than something else.
    """

    name: str
    section: str
    text: str
    reported: str
    unit: Unit
    accepted: tuple[float, float]
    tolerance: str
    measure: Callable[[Evidence], Measured]
    of_pruning: bool = True
    directed: bool = False


def judge(measured: Measured, accepted: tuple[float, float], *, directed: bool = False) -> Verdict:
    """The verdict on a claim that can be tested; see the module's docstring. A comparison with a missing interval fails."""
    low, high = accepted
    if low <= measured.value <= high:
        certain = not directed or (low <= measured.low and measured.high <= high)
        return Verdict.REPRODUCED if certain and measured.sufficient else Verdict.PARTLY
    near = not directed and measured.low <= high and measured.high >= low
    return Verdict.PARTLY if near else Verdict.NOT_REPRODUCED


def proportion(count: int, total: int, *, of: str, note: str = "") -> Measured:
    """A share with Wilson's 95% interval."""
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return Measured(count / total, interval.low, interval.high, total, of, note)
