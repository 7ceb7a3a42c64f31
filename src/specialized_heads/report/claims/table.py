"""Judge every quantitative claim of both papers by the results of this experiment.

One row per claim and corpus: the paper's value, ours with its interval and sample size, the range that confirms the claim, and
the verdict (`claim`). Claims about pruning have a row for each corpus that is pruned.
"""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from specialized_heads.report.claims.claim import LEAST_BASELINES, VERDICTS, Unit, Verdict, claims, judge
from specialized_heads.report.claims.evidence import Evidence, NotTestable
from specialized_heads.report.data import Tables, in_order_of_importance, joined, removed, with_ends

FILES = ("speed",)
SPEED = ["sentences", *with_ends("gain"), "device"]
COLUMNS = [
    "paper",
    "claim",
    "finding",
    "section",
    "text",
    "unit",
    "reported",
    "corpus",
    "value",
    "low",
    "high",
    "n",
    "of",
]
COLUMNS += ["baselines", "accepted_low", "accepted_high", "tolerance", "verdict", "reason", "note"]
LEGEND = " ".join(f"{verdict.value.capitalize()}: {meaning}." for verdict, meaning in VERDICTS.items())
CAPTION = (
    "Claims of both papers: the reported value, ours (with a 95% interval, if it has one; n: sample size), the range that "
    f"confirms the claim (accepted), and the verdict. {LEGEND} A value is the mean over baselines, trained with different seeds, "
    f"and with {LEAST_BASELINES} or more its interval is Student's over them, or a wider one within them; intervals of BLEU are "
    "over sentences, the same for all seeds. Losses by pruning are measured against models with λ 0, which train for as long. "
    "Claims that this experiment cannot test are only in claims.csv, with the reason. Losses of a classifier by pruning are "
    "relative to what it has learned: its score less that of the most frequent label."
)


def numbers(tables: Tables, speed: dict[str, Path]) -> pd.DataFrame:
    """`judged` of the evidence of each corpus and task; `speed`: the file of each task whose speed is measured."""
    return judged(every_evidence(tables, joined(speed, SPEED)))


def every_evidence(tables: Tables, speed: pd.DataFrame) -> list[Evidence]:
    """The evidence of each corpus, then of each task; `speed`: rows of the table of speed, with `task`."""
    every = [evidence_of(tables.of(corpus)) for corpus in tables.corpora()]
    for task in tables.tasks()["corpus"].unique():
        every.append(evidence_of(tables.of(task), speed=speed[speed["task"] == task]))
    return every


def evidence_of(tables: Tables, *, speed: pd.DataFrame | None = None) -> Evidence:
    """The evidence of a corpus, or of a classification task with its `speed`."""
    models, second = tables.models, removed(tables, "without", measured_on="second")
    first = models.iloc[0]
    same = (first.get("source_language"), first.get("target_language")) == ("en", "ru")
    shared = Evidence(
        title=first["corpus"],
        scores=models,
        heads=tables.heads,
        single=pd.concat([removed(tables, what) for what in ("without", "alone")]),
        second=second,
        systematic=in_order_of_importance(tables),
        logs=tables.logs,
    )
    if speed is None:
        return replace(
            shared,
            stands_for=first["source"] if same and first["source"] in ("wmt", "opensubtitles") else "",
            pruned=len(set(models["kind"])) > 1 or len(tables.ablation) > 0,
            least_arcs=int(tables.relations["least_arcs"].iloc[0]) if len(tables.relations) else 0,
        )
    # Without a second test set, heads are ablated on held-out examples instead, which are of the same kind.
    second = second if pd.notna(first.get("second_bleu")) else second[:0]
    known = {"majority": first["majority"], "metric": first["metric"], "speed": speed}
    return replace(shared, of="classification", second=second, **known)


def judged(corpora: list[Evidence]) -> pd.DataFrame:
    """Judge every claim on every corpus to which it applies: one row for each, with the measured value and the verdict."""
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
        {name: values[name] for name in ("paper", "section", "text", "corpus", "verdict", "reported")}
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
        counts.append(f"{corpus}: " + ", ".join(f"{verdicts.get(v.value, 0)} {v.value}" for v in Verdict))
    return f"{CAPTION} {'; '.join(counts)}."


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
    return f"1 {values['of'].removesuffix('s')}" if values["n"] == 1 else f"{values['n']:,} {values['of']}"


def accepted(values: dict, unit: Unit) -> str:
    """The range that confirms the claim; "" for values without a verdict."""
    low, high = values["accepted_low"], values["accepted_high"]
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f"{unit.text(low)} or more"
    if math.isinf(low):
        return f"{unit.text(high)} or less"
    return unit.text(low) if low == high else f"{unit.text(low)} to {unit.text(high)}"
