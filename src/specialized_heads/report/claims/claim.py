"""Judge every quantitative claim of both papers by the results of this experiment.

One row per claim and corpus: the paper's value, ours with its interval and sample size, the range
that confirms the claim, and the verdict. Claims about pruning have a row for each corpus that is
pruned.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache, partial
from itertools import product
from math import inf, isinf
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml

from specialized_heads.report.claims import of_ablation, of_heads, of_scores, of_survival
from specialized_heads.report.claims.evidence import (
    LEAST_BASELINES,
    Evidence,
    Measured,
    NotTestable,
    Unit,
    every_evidence,
)
from specialized_heads.report.data import Tables, joined, with_ends
from specialized_heads.stage import Section

LIST = Path(__file__).with_name("claims.yaml")
MEASURES = vars(of_heads) | vars(of_survival) | vars(of_scores) | vars(of_ablation)


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    AFTER_SELECTION = "reproduced after selection"
    PARTLY = "partly"
    INCONCLUSIVE = "inconclusive"
    CONFOUNDED = "confounded"
    NOT_REPRODUCED = "not reproduced"
    IN_TOO_FEW = "not reproduced in one or two baselines"
    BY_OUR_THRESHOLD = "not reproduced (our threshold)"
    VALUE_ONLY = "value only"
    NOT_TESTABLE = "not testable"


VERDICTS = {
    Verdict.REPRODUCED: "our whole interval is in the accepted range, with three baselines or more",
    Verdict.AFTER_SELECTION: "reproduced, but the training recipe was selected by this measure",
    Verdict.PARTLY: "our whole interval is in the range, but it rests on fewer than three "
    "baselines, on few heads, or on a weak test",
    Verdict.INCONCLUSIVE: "our interval contains an end of the range, or is unknown",
    Verdict.CONFOUNDED: "the models compared differ in more than the claim is about",
    Verdict.NOT_REPRODUCED: "our whole interval is outside the range, with three baselines or more",
    Verdict.IN_TOO_FEW: "our whole interval is outside the range, with one or two baselines",
    Verdict.BY_OUR_THRESHOLD: "not reproduced, but the paper gives no number: the limit is ours",
    Verdict.VALUE_ONLY: "a control or a value for comparison, which neither paper claims",
}


class Claim(Section):
    """A quantitative statement of a paper, or a value that neither paper has but a reader of the
    claim needs (`judged`)."""

    name: str  # short and unique; the key in the tables
    paper: Literal["Voita et al. 2019", "Michel et al. 2019"]
    finding: str  # its group on the page of evidence
    section: str  # of the paper
    text: str  # the claim in our words
    reported: str = ""  # the paper's value, formatted
    # the range that confirms the claim, both ends included; null: open
    accepted: tuple[float | None, float | None] = (None, None)
    tolerance: str = ""  # how the range follows from the paper's value
    unit: Unit  # of the measured value
    measure: str  # the function that measures it
    given: dict[str, Any] = {}  # further arguments of the function
    judged: bool = True  # false: a value without a verdict
    selected: bool = False  # whether the training recipe was selected by this measure
    of_baselines: bool = False  # whether it says that something exists, in most baselines
    # whether the paper gives no number, so that the limit is ours: not where it is zero or chance
    our_threshold: bool = False
    scopes: list[str] = []  # of the models pruned by gates that it judges; none: the baseline
    of_pruning: bool = False  # whether it needs a corpus that is pruned, or whose heads are ablated
    judged_on: list[Literal["translation", "classification"]] = ["translation"]
    # whether it says nothing about models that have hardly learned (`Evidence.require_trained`)
    of_trained: bool = True

    @property
    def range(self) -> tuple[float, float]:
        """The accepted range, infinite at an open end."""
        low, high = self.accepted
        return (-inf if low is None else low), (inf if high is None else high)

    def measured(self, evidence: Evidence) -> Measured:
        """The measure, of a model that has learned enough to say something about the claim; raises
        `NotTestable`."""
        measured = measure(self)(evidence)
        if self.of_trained:
            evidence.require_trained()
        return measured


SPEED = ["sentences", *with_ends("gain"), "device"]
COLUMNS = "paper claim finding section text unit reported corpus value low high n of".split()
COLUMNS += "baselines accepted_low accepted_high tolerance verdict reason note".split()
LEGEND = " ".join(
    f"{verdict.value.capitalize()}: {meaning}." for verdict, meaning in VERDICTS.items()
)
CAPTION = (
    "Claims of both papers: the reported value, ours (with a 95% interval, if it has one; n: "
    "sample size), the range that confirms the claim (accepted), and the verdict. "
    f"{LEGEND} A value is the mean over baselines, trained with different seeds. Its interval "
    "covers that within baselines (of BLEU, over sentences) and, with "
    f"{LEAST_BASELINES} of them or more, Student's over baselines. Losses by pruning are measured "
    "against models with λ 0, which train for as long. Claims that this experiment cannot test are "
    "below the table, by reason. Losses of a classifier by pruning are relative to what it has "
    "learned: its score less that of the most frequent label."
)


@cache
def claims() -> tuple[Claim, ...]:
    """All claims of both papers, in the order of the list."""
    groups = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    rows = [group | row for group in groups for row in group.pop("claims")]
    return tuple(Claim.model_validate(row) for row in rows)


def measure(claim: Claim) -> Callable[[Evidence], Measured]:
    return partial(MEASURES[claim.measure], **claim.given)


def judge(claim: Claim, measured: Measured) -> Verdict:
    """The verdict on a claim that can be tested; see `VERDICTS`. A comparison with a missing end of
    an interval fails."""
    if not claim.judged:
        return Verdict.VALUE_ONLY
    if measured.confounded:
        return Verdict.CONFOUNDED
    low, high = claim.range
    enough = measured.baselines >= LEAST_BASELINES
    if measured.high < low or measured.low > high:
        if not enough:
            return Verdict.IN_TOO_FEW
        return Verdict.BY_OUR_THRESHOLD if claim.our_threshold else Verdict.NOT_REPRODUCED
    if not (low <= measured.low and measured.high <= high):
        return Verdict.INCONCLUSIVE
    if not (enough and measured.sufficient):
        return Verdict.PARTLY
    return Verdict.AFTER_SELECTION if claim.selected else Verdict.REPRODUCED


def numbers(tables: Tables, speed: dict[str, Path] | None = None) -> pd.DataFrame:
    """`judged` of the evidence of each corpus and task; `speed`: the file of each task whose speed
    is measured."""
    return judged(every_evidence(tables, joined(speed or {}, SPEED)))


def judged(corpora: list[Evidence]) -> pd.DataFrame:
    """Judge every claim on every corpus to which it applies: one row for each, with the measured
    value and the verdict."""
    rows = []
    for claim, evidence in product(claims(), corpora):
        if evidence.of not in claim.judged_on or (claim.of_pruning and not evidence.pruned):
            continue
        try:
            measured = claim.measured(evidence)
            values = vars(measured) | {"reason": "", "verdict": judge(claim, measured).value}
        except NotTestable as error:
            values = {"reason": str(error), "note": "", "verdict": Verdict.NOT_TESTABLE.value}
        ends = dict(zip(("accepted_low", "accepted_high"), claim.range, strict=True))
        rows.append(dict(claim) | values | ends | {"corpus": evidence.title, "claim": claim.name})
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n": "Int64", "baselines": "Int64"})


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The claims that can be judged, as text."""
    judged = rows[rows["verdict"] != Verdict.NOT_TESTABLE].to_dict("records")
    table = [
        {
            name: values[name]
            for name in ("paper", "section", "text", "corpus", "verdict", "reported")
        }
        | {"ours": ours(values, unit), "n": _counted(values)}
        | {"accepted": accepted(values, unit), "notes": values["note"]}
        for values, unit in ((values, Unit(values["unit"])) for values in judged)
    ]
    return pd.DataFrame(table or {"text": ["none can be judged"]}).rename(columns={"text": "claim"})


def caption(rows: pd.DataFrame) -> str:
    """How to read the table, and the number of claims with each verdict on each corpus."""
    counts = []
    for corpus, same in rows.groupby("corpus", sort=False):
        verdicts = same["verdict"].value_counts()
        counts.append(
            f"{corpus}: " + ", ".join(f"{verdicts.get(v.value, 0)} {v.value}" for v in Verdict)
        )
    return f"{CAPTION} {'; '.join(counts)}."


def notes(rows: pd.DataFrame) -> list[str]:
    """Why claims cannot be tested, with their names: a line for each corpus and reason, the most
    common reasons first."""
    untested = rows[rows["verdict"] == Verdict.NOT_TESTABLE]
    lines = []
    for corpus, same in untested.groupby("corpus", sort=False):
        reasons = same.groupby("reason", sort=False)["claim"].agg(list)
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
            lines.append(f"Not testable on {corpus}: {reason} ({', '.join(names)}).")
    return lines


def ours(values: dict, unit: Unit) -> str:
    """The measured value with its interval."""
    if pd.isna(values["value"]):
        return ""
    text = unit.text(values["value"])
    if pd.notna(values["low"]):
        text += f" [{unit.text(values['low'])}, {unit.text(values['high'])}]"
    return text


def _counted(values: dict) -> str:
    if pd.isna(values["n"]):
        return ""
    # For n = 1, the first plural becomes singular.
    of = re.sub(r"s\b", "", values["of"], count=1) if values["n"] == 1 else values["of"]
    return f"{values['n']:,} {of}"


def accepted(values: dict, unit: Unit) -> str:
    """The range that confirms the claim; "" for values without a verdict."""
    low, high = values["accepted_low"], values["accepted_high"]
    if isinf(low) and isinf(high):
        return ""
    if isinf(high):
        return f"{unit.text(low)} or more"
    if isinf(low):
        return f"{unit.text(high)} or less"
    return unit.text(low) if low == high else f"{unit.text(low)} to {unit.text(high)}"
