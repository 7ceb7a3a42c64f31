"""Judge every quantitative claim of both papers by the results of this experiment.

One row per claim and corpus: the paper's value, ours with its interval and sample size, the range that confirms the claim, and
the verdict (`claim`). Claims about pruning have a row for each corpus that is pruned.
"""

import math
from typing import Any

import pandas as pd

from specialized_heads.report.claims import michel, voita
from specialized_heads.report.claims.claim import Claim, Unit, Verdict, judge
from specialized_heads.report.claims.evidence import INTERVAL, TOTALS, Evidence, NotTestable
from specialized_heads.report.claims.of_ablation import DELTA
from specialized_heads.report.experiment import Model
from specialized_heads.report.inputs import ABLATION_COLUMNS, SCORE_COLUMNS, SYSTEMATIC_COLUMNS, Files, stack_models
from specialized_heads.stage import Section, read_json

PAPERS = {
    "Voita et al. 2019": voita.claims,
    "Michel et al. 2019": lambda: michel.claims() + michel.claims_of_bert(),
}
HEAD_COLUMNS = (
    "type", "layer", "head", "relevance", "confidence", "positional_share", "rarest", "two_rarest", "functions", "relations",
)  # fmt: skip
SINGLE, SYSTEMATIC = (*ABLATION_COLUMNS, *DELTA[1:]), (*SYSTEMATIC_COLUMNS, *DELTA[1:])
READS = {
    "scores": Files((*SCORE_COLUMNS, *INTERVAL, *TOTALS, "updates", "gates_decided")),
    "heads": Files(HEAD_COLUMNS, by="models"),
    "single": Files(SINGLE, by="ablated"),
    "second": Files(ABLATION_COLUMNS, by="ablated"),
    "systematic": Files(SYSTEMATIC, by="moments"),
    "baselines": Files(read_json, by="tasks"),
    "speed": Files(("sentences", "gain", "gain_low", "gain_high", "device"), by="tasks"),
}
COLUMNS = [
    "paper", "claim", "section", "text", "unit", "reported", "corpus", "value", "low", "high", "n", "of",
    "accepted_low", "accepted_high", "tolerance", "verdict", "reason", "note",
]  # fmt: skip
TINTS = {
    Verdict.REPRODUCED.value: "#d3ecd9",
    Verdict.PARTLY.value: "#fbf0c8",
    Verdict.NOT_REPRODUCED.value: "#f8ddd3",
}
CAPTION = (
    "Claims of both papers: the reported value, ours (with a 95% interval, if it has one; n: sample size), the range that "
    "confirms the claim, and the verdict. Reproduced: our value is in the range; if a claim only says that one thing is larger "
    "than another, the whole interval must be in the range. Partly: our value is outside, but its interval reaches the range; "
    "of two things compared, only the value is in the range, or the evidence is too thin. Not testable: the notes give the "
    "reason. With several seeds, values and intervals are means over seeds, while heads and models are counted over all seeds. "
    "Losses by pruning are measured against the baseline if it is converged, otherwise against a model trained for as long with "
    "λ 0. Losses of a classifier by pruning are relative to what it has learned: its score less that of the most frequent label."
)


class CorpusOf(Section):
    """A corpus; see `Evidence`."""

    title: str
    stands_for: str
    pruned: bool
    least_arcs: int


def numbers(
    scores: dict[str, pd.DataFrame],
    heads: dict[Model, pd.DataFrame],
    single: dict[Model, pd.DataFrame],
    second: dict[Model, pd.DataFrame],
    systematic: dict[Model, pd.DataFrame],
    baselines: dict[str, Any],
    speed: dict[str, pd.DataFrame],
    *,
    corpora: list[CorpusOf],
) -> pd.DataFrame:
    """`judged` of the evidence of each corpus and task; the latter have `baselines`."""
    labelled = [table.assign(**of._asdict()) for of, table in heads.items()]
    tables = {
        "single": stack_models(single, SINGLE),
        "second": stack_models(second, SINGLE),
        "systematic": stack_models(systematic, SYSTEMATIC),
    }
    every = []
    for corpus in corpora:
        # By corpus: another one may name its relations, and so its columns, differently.
        own = pd.concat([table for table, of in zip(labelled, heads) if of.corpus == corpus.title], ignore_index=True)
        ablated = {name: table[table["corpus"] == corpus.title] for name, table in tables.items()}
        every.append(Evidence(**corpus.model_dump(), scores=scores[corpus.title], heads=own, **ablated))
    for task, others in baselines.items():
        ablated = {name: table[table["corpus"] == task] for name, table in tables.items()}
        if "second" not in others:  # heads are ablated on held-out examples instead, which are of the same kind
            ablated["second"] = ablated["second"][:0]
        known = {"majority": others["test"]["majority"], "metric": others["metric"]}
        known["speed"] = speed.get(task, pd.DataFrame())
        nothing = {"stands_for": "", "scores": pd.DataFrame(), "heads": pd.DataFrame(), "least_arcs": 0}
        every.append(Evidence(title=task, pruned=True, of="classification", **nothing, **ablated, **known))
    return judged(every)


def judged(corpora: list[Evidence]) -> pd.DataFrame:
    """Judge every claim on every corpus to which it applies: one row for each."""
    rows = []
    for paper, claims in PAPERS.items():
        for claim in claims():
            for evidence in corpora:
                if evidence.of in claim.judged_on and (evidence.pruned or not claim.of_pruning):
                    rows.append({"paper": paper, "corpus": evidence.title} | row(claim, evidence))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n": "Int64"})


def row(claim: Claim, evidence: Evidence) -> dict[str, object]:
    """A claim, the measured value and the verdict."""
    try:
        measured = claim.measure(evidence)
        verdict = judge(measured, claim.accepted, directed=claim.directed)
        values = {**vars(measured), "reason": "", "verdict": verdict.value}
    except NotTestable as error:
        values = {"reason": str(error), "note": "", "verdict": Verdict.NOT_TESTABLE.value}
    low, high = claim.accepted
    return vars(claim) | values | {"claim": claim.name, "accepted_low": low, "accepted_high": high}


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text. A claim that no corpus can test, for the same reason, has one row."""
    table = []
    for (paper, _), same in rows.groupby(["paper", "claim"], sort=False):
        untestable = (same["verdict"] == Verdict.NOT_TESTABLE).all() and same["reason"].nunique() == 1
        for values in same.head(1).assign(corpus="any").to_dict("records") if untestable else same.to_dict("records"):
            unit = Unit(values["unit"])
            table.append(
                {
                    "paper": paper,
                    "section": values["section"],
                    "claim": values["text"],
                    "corpus": values["corpus"],
                    "verdict": values["verdict"],
                    "reported": values["reported"],
                    "ours": _ours(values, unit),
                    "n": _counted(values),
                    "accepted": _range(values["accepted_low"], values["accepted_high"], unit),
                    "notes": values["reason"] or values["note"],
                }
            )
    return pd.DataFrame(table)


def caption(rows: pd.DataFrame) -> str:
    """How to read the table, and the number of claims with each verdict on each corpus."""
    counts = []
    for corpus, same in rows.groupby("corpus", sort=False):
        verdicts = same["verdict"].value_counts()
        counts.append(f"{corpus}: " + ", ".join(f"{verdicts.get(v.value, 0)} {v.value}" for v in Verdict))
    return f"{CAPTION} {'; '.join(counts)}."


def _ours(values: dict, unit: Unit) -> str:
    if pd.isna(values["value"]):
        return ""
    text = unit.text(values["value"])
    if pd.notna(values["low"]):
        text += f" [{unit.text(values['low'])}, {unit.text(values['high'])}]"
    return text


def _counted(values: dict) -> str:
    if pd.isna(values["n"]):
        return ""
    return f"1 {values['of'].removesuffix('s')}" if values["n"] == 1 else f"{values['n']:,} {values['of']}"


def _range(low: float, high: float, unit: Unit) -> str:
    if math.isinf(high):
        return f"{unit.text(low)} or more"
    if math.isinf(low):
        return f"{unit.text(high)} or less"
    return unit.text(low) if low == high else f"{unit.text(low)} to {unit.text(high)}"
