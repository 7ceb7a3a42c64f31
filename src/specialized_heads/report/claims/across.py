"""Judge the claims of both papers over several experiments: every measurement, and the verdict of
the best evidence.

    specialized-heads claims docs/reference/*/data --notes docs/reference/claims_notes.csv \
        --output docs/reference/evidence

For each claim and corpus one experiment counts (`RULE`); the page lists the others too.
"""

import os
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from textwrap import fill
from urllib.parse import quote

import pandas as pd

from specialized_heads.report import data
from specialized_heads.report.claims.claim import (
    LEAST_BASELINES,
    VERDICTS,
    Claim,
    Unit,
    Verdict,
    accepted,
    claims,
    judge,
    judged,
    ours,
)
from specialized_heads.report.claims.evidence import attends, every_evidence
from specialized_heads.report.claims.inference import proportion
from specialized_heads.report.data import is_decided
from specialized_heads.report.make import escape_markdown
from specialized_heads.stage import UserError, one_line, write_file

RULE = (
    "Each claim is judged on every corpus of every experiment whose measurements (data/) are "
    "kept. For a corpus, an experiment with equal schedules counts before others, then one with "
    f"{LEAST_BASELINES} baselines or more, then, for pruning of all types, one with an encoder "
    "as deep as the decoder, then the one with most baselines, then with most updates, then the "
    "one that can test most claims. The claim's verdict is that of the corpus with the best "
    "evidence by the same rule. Of evidence that it ranks alike, such as two tasks of one "
    "experiment, the least favourable verdict counts; otherwise the verdict plays no part. The "
    "notes list every other measurement. Where a claim is about the best head, this is chosen on "
    "the sentences on which it is scored, as in the papers. n: baselines; the [terms]({terms}) "
    "are explained elsewhere. In brackets: 95% intervals, unless a note says otherwise. With "
    "three baselines or more, they cover both Student's interval over baselines and, where there "
    "is one, the interval within baselines; with fewer, only the latter; nothing is corrected for "
    "the number of claims. Whether something exists in most baselines is judged on the different "
    "baselines of all experiments: three are too few (3 of 3: 44% to 100%). The accepted range is "
    "our reading of the paper, and where it states no size, the weakest one: beyond chance. The "
    "column `tolerance` of the CSV says how it follows."
)
# Order of the verdicts, from reproduced to not reproduced.
SEVERITY = {verdict.value: place for place, verdict in enumerate(Verdict)}
WIDTH = 100  # of a line, characters
TERMS = Path(__file__).parents[4] / "docs" / "heads.md"
CLAIMS = {claim.name: claim for claim in claims()}
TITLES = {
    "baselines": "Baselines",
    "relevance": "Relevance and confidence",
    "functions": "Functions of heads",
    "pruning": "What pruning costs",
    "survival": "Which heads survive",
    "types": "Attention types and layers",
    "from scratch": "Pruned models and models from scratch",
    "ablation": "Single heads, and layers with one head",
    "importance": "Heads removed in order of importance",
    "BERT": "BERT",
}


def measured(folders: Sequence[Path]) -> pd.DataFrame:
    """The rows of `claim.judged` for each of these folders of tables, with `experiment`, `folder`
    and `updates`."""
    frames = []
    for folder in dict.fromkeys(folders):
        if missing := [
            name for name in data.Tables._fields if not (folder / f"{name}.parquet").is_file()
        ]:
            raise UserError(
                f"{folder}: no {missing[0]}.parquet; give folders such as results/default/data"
            )
        tables = data.load([folder])
        path = folder.parent / "tables" / "task_speed.csv"  # kept as a table only
        speed = data.read_csv(path) if path.is_file() else pd.DataFrame(columns=["task"])
        rows = judged(every_evidence(tables, speed))
        own = {corpus: tables.of(corpus) for corpus in rows["corpus"].unique()}
        updates = [
            _updates(own[corpus], CLAIMS[name])
            for name, corpus in zip(rows["claim"], rows["corpus"])
        ]
        alike = [
            CLAIMS[name].scopes != ["all"] or _equally_deep(own[corpus].models)
            for name, corpus in zip(rows["claim"], rows["corpus"])
        ]
        identities = {corpus: tuple(_identities(tables)) for corpus, tables in own.items()}
        same = rows["corpus"].map(identities)
        more = {"experiment": tables.models["experiment"].iloc[0], "folder": str(folder)}
        frames.append(rows.assign(updates=updates, alike=alike, same=same, **more))
    rows = pd.concat(frames, ignore_index=True)
    return pd.concat([rows, _pooled(rows)], ignore_index=True).drop(columns="same")


def _equally_deep(models: pd.DataFrame) -> bool:
    """Whether the baselines have the same number of heads of each type, as in the paper."""
    return models.loc[models["kind"] == "baseline", data.TOTALS].nunique(axis=1).eq(1).all()


def _identities(tables: data.Tables) -> list[float | bytes]:
    """What tells whether two baselines of a corpus are the same model, by seed: their development
    losses; of imported models, which have none, what their heads do."""
    models = tables.models[tables.models["kind"] == "baseline"].sort_values("seed")
    heads = tables.heads[tables.heads["kind"] == "baseline"]
    return [
        attends(heads[heads["seed"] == seed]) if isnan(loss) else loss
        for seed, loss in zip(models["seed"], models["dev_loss"].astype(float).round(4))
    ]


def _pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """The shares of baselines over all experiments, each baseline once: one experiment has too few
    for a claim that something exists."""
    pooled = []
    shares = rows[rows["of"].eq("baselines") & rows["unit"].eq(Unit.SHARE.value)]
    shares = shares[shares["claim"].map(lambda name: CLAIMS[name].of_baselines).astype(bool)]
    shares = shares.sort_values("n", ascending=False, kind="stable")
    for name, same in shares.groupby("claim", sort=False):
        seen: set[tuple[str, float | bytes]] = set()
        count, used = 0, []
        for row in same.itertuples():
            own = {(row.corpus, one) for one in row.same}
            if not own & seen:
                seen |= own
                count += round(row.value * row.n)
                used.append(row)
        if len(used) == 1:
            continue
        note = "each baseline once: " + ", ".join(row.experiment for row in used)
        total = int(sum(row.n for row in used))
        share = proportion(count, total, of="baselines", note=note, baselines=total)
        more = {"verdict": judge(CLAIMS[name], share).value, "experiment": "all"}
        pooled.append(same.iloc[0].to_dict() | vars(share) | more | {"corpus": "all baselines"})
    return pd.DataFrame(pooled, columns=rows.columns)


def _updates(tables: data.Tables, claim: Claim) -> int:
    """Updates of what a claim judges: its models from scratch, or those pruned with its scopes, or
    the baselines.

    Of the pruned ones, those with decided gates, if there are any.
    """
    models = tables.models
    pruned = (models["kind"] == "pruned") & models["scope"].isin(claim.scopes)
    counted = pruned & (models["lam"] != 0) & is_decided(models)
    controls = [models["kind"] == kind for kind in claim.given.get("controls", ())]
    chosen = [*controls, counted, pruned, models["kind"] == "baseline"]
    return int(next(models[rows] for rows in chosen if rows.any())["updates"].max())


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """All rows, those of each claim with the best evidence first; `best`: whether the row counts
    for its corpus."""
    order = {
        "place": rows["claim"].map(list(CLAIMS).index),
        "able": rows["verdict"] != Verdict.NOT_TESTABLE,
        "equal": rows["verdict"] != Verdict.CONFOUNDED,
        "enough": rows["baselines"].fillna(0) >= LEAST_BASELINES,
        "alike": rows["alike"],
        "size": rows["baselines"].fillna(0),
    }
    testable = rows["claim"].where(order["able"]).groupby(rows["folder"]).transform("nunique")
    keys = [*order, "updates", "testable", "severity"]
    rows = rows.assign(**order, testable=testable, severity=rows["verdict"].map(SEVERITY))
    rows = rows.sort_values(
        keys, ascending=[True, *[False] * (len(keys) - 1)], kind="stable", ignore_index=True
    )
    best = ~rows.duplicated(["claim", "corpus"])
    return rows.assign(best=best).drop(columns=[*order, "testable", "severity"])


def verdicts(rows: pd.DataFrame) -> pd.Series:
    """The verdict of each claim, by name: that of the first of its `ranked` rows."""
    return rows.drop_duplicates("claim").set_index("claim")["verdict"]


def notes_of(path: Path | None) -> dict[str, str]:
    """The note of each claim in a CSV file with the columns `claim` and `note`."""
    if path is None:
        return {}
    try:
        notes = pd.read_csv(path, dtype=str, keep_default_na=False)[["claim", "note"]]
    # also what pandas raises for an empty or broken file
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: {one_line(error)}; --notes takes CSV in UTF-8 with the columns claim and note"
        ) from None
    if unknown := sorted(set(notes["claim"]) - set(CLAIMS)):
        raise UserError(f"{path}: there is no claim {unknown[0]}; correct its name")
    return dict(zip(notes["claim"], notes["note"], strict=True))


def page(rows: pd.DataFrame, *, output: Path, notes: dict[str, str]) -> str:
    """The rows of `ranked` as a page in Markdown, with links that hold from the folder of
    `output`."""
    terms = quote(os.path.relpath(TERMS, output.parent)) + "#terms"
    parts = ["# Does it hold?\n", f"{fill(RULE.format(terms=terms), WIDTH)}\n", _counts(rows)]
    parts += [_item(f"*{verdict.value}*: {meaning}") for verdict, meaning in VERDICTS.items()]
    parts.append("")
    parts.append(_experiments([Path(folder) for folder in rows["folder"].unique()], output))
    for paper, of_paper in rows.groupby("paper", sort=False):
        parts.append(f"## {paper}\n")
        for finding, same in of_paper.groupby("finding", sort=False):
            parts.append(f"### {TITLES[finding]}\n")
            parts += [*_table(same), *_notes(same, notes)]
    return "\n".join(parts)


def _item(text: str) -> str:
    return fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ")


def _experiments(folders: list[Path], output: Path) -> str:
    """The baselines of each experiment, as a table."""
    found = []
    for folder in folders:
        tables = data.load([folder])
        models = tables.models[tables.models["kind"] == "baseline"].sort_values("seed")
        for corpus, same in models.groupby("corpus", sort=False):
            found.append((folder, corpus, same, _identities(tables.of(corpus))))
    # A model belongs to the experiment with most baselines, then to that with the lowest seed.
    found.sort(key=lambda one: (-len(one[2]), one[1], one[2]["seed"].iloc[0]))
    head = ["| experiment | corpus | baselines | updates | the same models |", "|" + " --- |" * 5]
    lines: list[str] = []
    first: dict[tuple, str] = {}
    for folder, corpus, same, identities in found:
        name, owned = same["experiment"].iloc[0], []
        for seed, identity in zip(same["seed"], identities):
            owner = first.setdefault((corpus, identity), f"seed {seed} of {name}")
            owned += [owner] * (not owner.endswith(f" of {name}"))
        where = quote(os.path.relpath(folder.parent / "claims.md", output.parent))
        updates = f"{same['updates'].max():,}"
        cells = [corpus, str(len(same)), updates, ", ".join(owned)]
        cells = [f"[{escape_markdown(name)}]({where})", *map(escape_markdown, cells)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*head, *sorted(lines)]) + "\n"


def _counts(rows: pd.DataFrame) -> str:
    """How many claims of each paper have each verdict, as a table."""
    first = rows.drop_duplicates("claim")
    counted = first[first["verdict"] != Verdict.VALUE_ONLY]
    counts = pd.crosstab(counted["verdict"], counted["paper"])
    papers = list(rows["paper"].unique())
    lines = [f"| verdict | {' | '.join(papers)} |", "|" + " --- |" * (len(papers) + 1)]
    for verdict in Verdict:
        if verdict in counts.index:
            lines.append(
                f"| {verdict.value} | "
                f"{' | '.join(str(counts.loc[verdict, paper]) for paper in papers)} |"
            )
    ours = counted[[CLAIMS[name].our_threshold for name in counted["claim"]]]
    others = ours["verdict"].value_counts().drop(Verdict.BY_OUR_THRESHOLD, errors="ignore")
    said = ", ".join(f"{number} {verdict}" for verdict, number in others.items())
    note = f"Marked in the tables: the limit is ours for some of the others too ({said})."
    return "\n".join([*lines, "", fill(note, WIDTH)][: None if said else -2]) + "\n"


def _table(same: pd.DataFrame) -> Iterator[str]:
    """The table of a finding: a row per claim, with the best evidence of each corpus."""
    corpora = list(same.loc[same["verdict"] != Verdict.NOT_TESTABLE, "corpus"].unique()) or [
        same["corpus"].iloc[0]
    ]
    columns = ["claim", "paper", "accepted", *corpora, "verdict"]
    yield f"| {' | '.join(map(escape_markdown, columns))} |"
    yield "|" + " --- |" * len(columns)
    for name, of_claim in same.groupby("claim", sort=False):
        first, values = of_claim.iloc[0].to_dict(), []
        for corpus in corpora:
            row = of_claim[(of_claim["corpus"] == corpus) & of_claim["best"]]
            testable = len(row) and row["verdict"].iloc[0] != Verdict.NOT_TESTABLE
            values.append(_value(row.iloc[0].to_dict(), first["verdict"]) if testable else "–")
        text = f"{name}: {first['text']} ({first['section']})"
        verdict = "" if first["verdict"] == Verdict.VALUE_ONLY else first["verdict"]
        verdict += ", our threshold" * (
            CLAIMS[name].our_threshold and verdict not in ("", Verdict.BY_OUR_THRESHOLD)
        )
        cells = [text, first["reported"], accepted(first, Unit(first["unit"])), *values, verdict]
        yield f"| {' | '.join(map(escape_markdown, cells))} |"
    yield ""


def _value(row: dict, verdict: str) -> str:
    """A value with the number of baselines, and with its verdict where that is not the claim's."""
    other = f", {row['verdict']}" if row["verdict"] != verdict else ""
    return f"{ours(row, Unit(row['unit']))}, n {row['baselines']}{other}"


def _notes(same: pd.DataFrame, notes: dict[str, str]) -> Iterator[str]:
    """Below the table: for each claim a remark, where its values come from, what the other
    experiments measured, and why the others cannot."""
    for name, of_claim in same.groupby("claim", sort=False):
        claim, able = CLAIMS[name], of_claim[of_claim["verdict"] != Verdict.NOT_TESTABLE]
        parts = [notes.get(name, ""), "the recipe was chosen by this measure" * claim.selected]
        places = of_claim.groupby("experiment")["corpus"].nunique()
        several = set(places[places > 1].index)
        for row in able.to_dict("records"):
            where = row["experiment"] + f", {row['corpus']}" * (row["experiment"] in several)
            value = f"{ours(row, Unit(row['unit']))}, {row['verdict']}"
            said = row["note"] if row["best"] else value
            parts += [f"{where}: {said}"] * bool(said)
        missing = of_claim[~of_claim["corpus"].isin(able["corpus"])]
        for reason, rows in missing.groupby("reason", sort=False):
            parts.append(f"{', '.join(rows['experiment'].unique())}: not testable, {reason}")
        yield _item(
            f"**{escape_markdown(name)}.** {escape_markdown('. '.join(filter(None, parts)))}."
        )
    yield ""


def write(folders: Sequence[Path], *, output: Path, notes: Path | None) -> str:
    """Write `output`.md and `output`.csv; return how many claims have each verdict."""
    rows = ranked(measured(folders))
    csv = rows.drop(columns="folder").to_csv(index=False, lineterminator="\n")
    write_file(
        output.with_name(f"{output.name}.md"), page(rows, output=output, notes=notes_of(notes))
    )
    write_file(output.with_name(f"{output.name}.csv"), csv)
    counted = verdicts(rows).value_counts()
    return ", ".join(
        f"{counted[verdict]} {verdict.value}" for verdict in Verdict if verdict in counted
    )
