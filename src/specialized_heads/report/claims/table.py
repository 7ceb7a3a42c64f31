"""Stage: every quantitative claim of both papers beside what this experiment shows, each with a verdict.

One row per claim and corpus: the paper's value, ours with its interval and what it was counted over, the range that bears
the claim out, and the verdict that follows (`claim`). Claims about pruning have a row for each corpus that is pruned.
"""

import math
from pathlib import Path

import pandas as pd

from specialized_heads.report.claims import michel, voita
from specialized_heads.report.claims.claim import Claim, Measured, Unit, Untestable, Verdict, judge
from specialized_heads.report.claims.evidence import INTERVAL, TOTALS, Evidence
from specialized_heads.report.claims.of_ablation import DELTA
from specialized_heads.report.inputs import SCORE_COLUMNS, read_table
from specialized_heads.report.output import save_table
from specialized_heads.report.runs import ABLATION_COLUMNS, SYSTEMATIC_COLUMNS, Run, read_runs
from specialized_heads.stage import Section, UserError, arguments, log, run

PAPERS = {"Voita et al. 2019": voita.claims, "Michel et al. 2019": michel.claims}
HEAD_COLUMNS = (
    "type", "layer", "head", "confidence", "positional_offset", "positional_share", "positional_ceiling",
    "rarest", "two_rarest", "functions", "relations",
)  # fmt: skip
COLUMNS = [
    "paper", "claim", "section", "text", "unit", "reported", "corpus", "value", "low", "high", "n", "of",
    "accepted_low", "accepted_high", "tolerance", "verdict", "reason",
]  # fmt: skip
TINTS = {
    Verdict.REPRODUCED.value: "#d3ecd9",
    Verdict.PARTLY.value: "#fbf0c8",
    Verdict.NOT_REPRODUCED.value: "#f8ddd3",
}
CAPTION = (
    "Claims of both papers: what they report, what this experiment shows (with 95% interval where there is one; n: how many "
    "sentences, heads or models), the range that bears the claim out, and the verdict. Reproduced: our value is in the range "
    "(where a claim only says that one thing is better than another: its whole interval); partly: only a part of its interval "
    "is; not testable: for the reason given. With several seeds, scores, accuracies and correlations are means over them, "
    "intervals too; heads and models are counted over all."
)


class CorpusOf(Section):
    """What the configuration says of a corpus; see `Evidence`."""

    title: str
    stands_for: str
    pruned: bool
    least_arcs: int


class HeadsOf(Section):
    """Of which model a table of heads is."""

    corpus: str  # its title
    kind: str
    scope: str
    lam: float | None
    asked: int | None
    seed: int


class Settings(Section):
    """What the files are of, in the order of `--scores` (corpora), `--heads`, `--single`, `--second` and `--systematic`."""

    corpora: list[CorpusOf]
    heads: list[HeadsOf]
    single: list[Run]
    second: list[Run]
    systematic: list[Run]


def gather(
    settings: Settings,
    *,
    scores: list[Path],
    heads: list[Path],
    single: list[Path],
    second: list[Path],
    systematic: list[Path],
) -> list[Evidence]:
    """What there is to show for each corpus, in the order of the configuration.

    Raises:
        UserError: the settings do not fit the files, or a file is missing or lacks a column.
    """
    for name, paths, described in (("scores", scores, settings.corpora), ("heads", heads, settings.heads)):
        if len(paths) != len(described):
            raise UserError(f"settings: {name}: {len(described)} entries for {len(paths)} files; give one per file")
    tables = [
        read_table(path, HEAD_COLUMNS).assign(**of.model_dump()).astype({"lam": float, "asked": float})
        for path, of in zip(heads, settings.heads, strict=True)
    ]
    tables_of = {
        "single": read_runs(single, settings.single, columns=(*ABLATION_COLUMNS, *DELTA[1:])),
        "second": read_runs(second, settings.second, columns=ABLATION_COLUMNS),
        "systematic": read_runs(systematic, settings.systematic, columns=(*SYSTEMATIC_COLUMNS, *DELTA[1:])),
    }
    return [
        Evidence(
            **corpus.model_dump(),
            scores=read_table(path, (*SCORE_COLUMNS, *INTERVAL, *TOTALS, "updates")),
            # Corpus by corpus: relations may be named otherwise in another, and columns with them.
            heads=pd.concat(
                [table for table, of in zip(tables, settings.heads, strict=True) if of.corpus == corpus.title],
                ignore_index=True,
            ),
            **{name: table[table["corpus"] == corpus.title] for name, table in tables_of.items()},
        )
        for corpus, path in zip(settings.corpora, scores, strict=True)
    ]


def numbers(found: list[Evidence]) -> pd.DataFrame:
    """Judge every claim on every corpus that it is about: one row for each, columns as `COLUMNS`."""
    rows = []
    for paper, claims in PAPERS.items():
        for claim in claims():
            for evidence in found:
                if evidence.pruned or not claim.of_pruning:
                    rows.append({"paper": paper, "corpus": evidence.title} | row(claim, claim.measure(evidence)))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n": "Int64"})


def row(claim: Claim, found: Measured | Untestable) -> dict[str, object]:
    """A claim, the measured value and the verdict."""
    values = {"reason": found.reason} if isinstance(found, Untestable) else {**vars(found), "reason": ""}
    return values | {
        "claim": claim.name,
        "section": claim.section,
        "text": claim.text,
        "unit": claim.unit.value,
        "reported": claim.reported,
        "accepted_low": claim.accepted[0],
        "accepted_high": claim.accepted[1],
        "tolerance": claim.tolerance,
        "verdict": judge(found, claim.accepted, directed=claim.directed).value,
    }


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text. A claim that no corpus can test, for one and the same reason, has one row."""
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
                    "not testable because": values["reason"],
                }
            )
    return pd.DataFrame(table)


def caption(rows: pd.DataFrame) -> str:
    """What stands above the table: how to read it, and how many claims have which verdict on each corpus."""
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
    return unit.text(low) if low == high else f"{unit.text(low)} to {unit.text(high)}"


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["scores", "heads", "single", "second", "systematic"])
    names = ("scores", "heads", "single", "second", "systematic")
    found = gather(Settings.model_validate(args.settings), **{name: getattr(args, name) for name in names})
    rows = numbers(found)
    save_table(args.output, rows, shown(rows), caption=caption(rows), tints=TINTS)
    log.info("%d claims judged: %s", rows["claim"].nunique(), rows["verdict"].value_counts().to_dict())


if __name__ == "__main__":
    run(main)
