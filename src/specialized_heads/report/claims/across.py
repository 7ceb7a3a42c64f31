"""Judge the claims of both papers over several experiments: for each claim, the best evidence, its verdict and where it is.

    specialized-heads claims docs/reference/*/data --notes docs/reference/claims_notes.csv --output docs/reference/evidence

Of the experiments that can judge a claim one counts (`RULE`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from specialized_heads.report import data
from specialized_heads.report.claims import table
from specialized_heads.report.claims.claim import Claim, Unit, Verdict
from specialized_heads.report.claims.evidence import is_decided
from specialized_heads.report.claims.table import PAPERS, VERDICTS, accepted, ours
from specialized_heads.report.output import escape_markdown
from specialized_heads.stage import UserError, one_line, write_file

RULE = (
    "The claims of both papers that a number can test, each judged by the experiment that has the best evidence for it. Of "
    "those whose measurements (data/) are kept and that can judge it, this is one with enough seeds if the claim needs "
    "several, then the one with the most updates (of pruning, of the models from scratch, or of the baseline, whichever the "
    "claim is about), then the most seeds, then the one that can judge the most claims. The verdict plays no part in the choice."
)
MORE = ["experiment", "folder", "seeds", "updates"]
CLAIMS = {claim.name: claim for claims in PAPERS.values() for claim in claims()}
UNTESTED = {"verdict": Verdict.NOT_TESTABLE.value, "note": "", "folder": "", "experiment": ""}
COLUMNS = ["claim", "paper", "accepted", "here", "verdict", "evidence", "notes"]


def judged(folders: Sequence[Path]) -> pd.DataFrame:
    """The rows of `table.judged` for each of these folders of tables, with `experiment`, `folder`, `seeds` and `updates`."""
    frames = []
    for folder in dict.fromkeys(folders):
        if missing := [name for name in data.Tables._fields if not (folder / f"{name}.parquet").is_file()]:
            raise UserError(f"{folder}: no {missing[0]}.parquet; give folders such as results/default/data")
        tables = data.load([folder])
        path = folder.parent / "tables" / "task_speed.csv"  # kept as a table only
        speed = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=["task"])
        rows = table.judged(table.every_evidence(tables, speed))
        own = {corpus: tables.of(corpus) for corpus in rows["corpus"].unique()}
        sizes = [_size(own[corpus], CLAIMS[name]) for name, corpus in zip(rows["claim"], rows["corpus"], strict=True)]
        rows[["seeds", "updates"]] = pd.DataFrame(sizes, index=rows.index)
        frames.append(rows.assign(experiment=tables.models["experiment"].iloc[0], folder=str(folder)))
    return pd.concat(frames, ignore_index=True)


def _size(tables: data.Tables, claim: Claim) -> tuple[int, int]:
    """Seeds and updates of what a claim judges: its models from scratch, or those pruned with its scopes, or the baselines.

    Of the pruned ones, those with decided gates, if there are any.
    """
    models = tables.models
    pruned = (models["kind"] == "pruned") & models["scope"].isin(claim.scopes)
    counted = pruned & (models["lam"] != 0) & is_decided(models)
    chosen = [models["kind"] == claim.control, counted, pruned, models["kind"] == "baseline"]
    judged = next(models[rows] for rows in chosen if rows.any())
    seeds = judged["seed"]
    if claim.of_pruning and not claim.scopes and len(tables.ablation):
        seeds = tables.ablation["seed"]  # of the baselines whose heads are removed
    return seeds.nunique(), judged["updates"].max()


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the experiment that counts for each claim of `PAPERS`, or one row of a claim that none can judge."""
    parts = []
    testable = rows["claim"].where(rows["verdict"] != Verdict.NOT_TESTABLE)
    rows = rows.assign(able=testable.groupby(rows["folder"]).transform("nunique"))
    for paper, claims in PAPERS.items():
        for claim in claims():
            same = rows[rows["claim"] == claim.name]
            same = same.assign(enough=same["seeds"] >= claim.least_seeds)
            same = same.sort_values(["enough", "updates", "seeds", "able"], ascending=False, kind="stable")
            able = same[same["verdict"] != Verdict.NOT_TESTABLE]
            absent = {"paper": paper, "reason": f"no experiment has a {claim.judged_on[0]} model"} | UNTESTED
            unjudged = (
                same.nlargest(1, "able") if len(same) else pd.DataFrame([vars(claim) | absent | {"claim": claim.name}])
            )
            parts.append(able[able["folder"] == able["folder"].iloc[0]] if len(able) else unjudged)
    return pd.concat(parts, ignore_index=True)[[*table.COLUMNS, *MORE]].astype({"seeds": "Int64", "updates": "Int64"})


def notes_of(path: Path | None) -> dict[str, str]:
    """The note of each claim in a CSV file with the columns `claim` and `note`."""
    if path is None:
        return {}
    try:
        notes = pd.read_csv(path, dtype=str, keep_default_na=False)[["claim", "note"]]
    except (OSError, KeyError, ValueError) as error:  # also what pandas raises for an empty or broken file
        raise UserError(
            f"{path}: {one_line(error)}; --notes takes CSV in UTF-8 with the columns claim and note"
        ) from None
    if unknown := sorted(set(notes["claim"]) - set(CLAIMS)):
        raise UserError(f"{path}: there is no claim {unknown[0]}; correct its name")
    return dict(zip(notes["claim"], notes["note"], strict=True))


def page(rows: pd.DataFrame, *, output: Path, notes: dict[str, str]) -> str:
    """The rows of `chosen` as a page in Markdown, with links that hold from the folder of `output`."""
    counts, lines = [f"# Does it hold?\n\n{RULE}\n\n{VERDICTS}\n"], []
    for paper, of_paper in rows.groupby("paper", sort=False):
        counts.append(f"{paper}: {_counts(of_paper)}.\n")
        lines += [f"\n## {paper}\n", f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
        lines += [_line(same, notes.get(name, ""), output) for name, same in of_paper.groupby("claim", sort=False)]
    return "\n".join([*counts, *lines, ""])


def _line(same: pd.DataFrame, note: str, output: Path) -> str:
    """The row of one claim: its values on the corpora of the experiment that counts."""
    first, values, evidence, notes = same.iloc[0], "", "", [note, same["reason"].iloc[0]]
    if first["verdict"] != Verdict.NOT_TESTABLE:
        values = "; ".join(f"{row['corpus']}: {ours(row, Unit(row['unit']))}" for row in same.to_dict("records"))
        where = quote(os.path.relpath(Path(first["folder"]).parent / "claims.md", output.parent))
        seeds = f"{first['seeds']} seed{'' if first['seeds'] == 1 else 's'}, {first['updates']:,} updates"
        evidence, notes = f"[{escape_markdown(first['experiment'])}]({where}), {seeds}", [note, *same["note"].unique()]
    cells = [
        escape_markdown(f"{first['text']} ({first['section']})"),
        escape_markdown(first["reported"]),
        escape_markdown(accepted(first, Unit(first["unit"]))),
        escape_markdown(values),
        _together(same["verdict"], same["corpus"]),
        evidence,
        escape_markdown("; ".join(filter(None, notes))),
    ]
    return f"| {' | '.join(cells)} |"


def _counts(rows: pd.DataFrame) -> str:
    """How many claims have each verdict."""
    each = rows.groupby("claim")["verdict"].agg(_together).value_counts()
    return ", ".join(f"{count} {verdict}" for verdict, count in each.items())


def _together(verdicts: pd.Series, corpora: pd.Series | None = None) -> str:
    """One verdict if all agree; else each with its corpus, or `mixed`."""
    if verdicts.nunique() == 1:
        return verdicts.iloc[0]
    return "mixed" if corpora is None else ", ".join(f"{v} ({c})" for v, c in zip(verdicts, corpora, strict=True))


def write(folders: Sequence[Path], *, output: Path, notes: Path | None) -> str:
    """Write `output`.md and `output`.csv; return how many claims have each verdict."""
    rows = chosen(judged(folders))
    csv = rows.drop(columns="folder").to_csv(index=False, lineterminator="\n")
    write_file(output.with_name(f"{output.name}.md"), page(rows, output=output, notes=notes_of(notes)))
    write_file(output.with_name(f"{output.name}.csv"), csv)
    return _counts(rows)
