"""A claim and its verdict: a measured number, the range that confirms the claim, and one of five verdicts.

The range is the paper's value with a tolerance; `table.VERDICTS` says what each verdict means. A claim that one thing is larger
than another (`directed`) needs an interval, since chance alone gives half of all differences the right sign. Any other value
without an interval must keep a hundredth away from a limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan

from scipy.stats import binomtest

from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.style import minus


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    PARTLY = "partly"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True)
class Measured:
    """A number with its 95% interval, if it has one."""

    value: float
    low: float = nan
    high: float = nan
    n: int | None = None  # sample size
    of: str = ""  # what it counts
    note: str = ""  # what the number is compared with, or how strong the evidence is
    sufficient: bool = True  # whether the evidence suffices for more than "partly"


NEAR_LIMIT = 0.01  # of a share, a point or BLEU


class Unit(StrEnum):
    """The unit of a value, which decides its format."""

    BLEU = "BLEU"
    DIFFERENCE = "difference"  # of BLEU
    SHARE = "share"  # in percent
    POINTS = "points"  # difference of two shares, in percentage points
    CORRELATION = "correlation"
    AREA = "AUC"
    RANK = "rank"  # a mean over seeds need not be whole

    def text(self, value: float) -> str:
        """The formatted value."""
        return minus(f"{100 * value if self is Unit.POINTS else value:{FORMS.get(self, '.2f')}}")

    def is_bound(self, value: float) -> bool:
        """Whether no value of this unit can be beyond this one, whatever the evidence."""
        return self is Unit.RANK or (self in (Unit.SHARE, Unit.CORRELATION, Unit.AREA) and value in (-1.0, 0.0, 1.0))


FORMS = {Unit.BLEU: ".1f", Unit.DIFFERENCE: "+.2f", Unit.SHARE: ".0%", Unit.POINTS: "+z.0f", Unit.RANK: ".2g"}


@dataclass(frozen=True)
class Claim:
    """A quantitative statement of a paper."""

    name: str  # short and unique; the key in the table
    section: str  # of the paper
    text: str  # in our words
    reported: str  # the paper's value, formatted
    accepted: tuple[float, float]  # the range that confirms the claim, both ends included; infinite at an open end
    tolerance: str  # how the range follows from the paper's value
    unit: Unit  # of the measured value
    measure: Callable[[Evidence], Measured]  # the same quantity on a corpus of ours; raises `evidence.NotTestable`
    of_pruning: bool = True  # whether it needs a corpus that is pruned, or whose heads are ablated
    scopes: tuple[str, ...] = ()  # of the models pruned by gates that it judges; none: it judges the baseline
    control: str = ""  # kind of the models from scratch that it compares them with
    judged_on: tuple[str, ...] = ("translation",)  # translation, classification or both
    directed: bool = False  # whether it only says that something is larger than something else
    least_seeds: int = 1  # for more than "partly"
    of_trained: bool = (
        True  # whether it says nothing about models that have hardly learned (`Evidence.require_trained`)
    )

    def measured(self, evidence: Evidence) -> Measured:
        """The measure, of a model that has learned enough to say something about the claim."""
        measured = self.measure(evidence)
        if self.of_trained:
            evidence.require_trained()
        return measured


def judge(
    measured: Measured, accepted: tuple[float, float], *, directed: bool = False, unit: Unit = Unit.DIFFERENCE
) -> Verdict:
    """The verdict on a claim that can be tested; see the module's docstring. A comparison with a missing interval fails."""
    low, high = accepted
    known = not isnan(measured.low)
    if directed and not known:
        return Verdict.INCONCLUSIVE
    if not low <= measured.value <= high:
        reaches = measured.low <= high and measured.high >= low
        return Verdict.INCONCLUSIVE if reaches else Verdict.NOT_REPRODUCED
    certain = low <= measured.low and measured.high <= high
    if directed and not certain:
        return Verdict.INCONCLUSIVE
    if not directed and not known:
        limits = [limit for limit in accepted if not unit.is_bound(limit)]
        certain = all(abs(measured.value - limit) >= NEAR_LIMIT for limit in limits)
    return Verdict.REPRODUCED if certain and measured.sufficient else Verdict.PARTLY


def proportion(count: int, total: int, *, of: str, note: str = "") -> Measured:
    """A share with Wilson's 95% interval."""
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return Measured(count / total, interval.low, interval.high, total, of, note)
