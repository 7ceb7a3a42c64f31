"""Table of run times: the time that each rule of the workflow took, from the measurements that Snakemake keeps of each job.

Each job has a file below `benchmarks/`, in the experiment's folder and in that of each corpus. File names give the rule, the
corpus and the model; measurements of models that the configuration no longer has are left out.
"""

import re
from pathlib import Path

import pandas as pd

from specialized_heads.planning.names import Name, Target
from specialized_heads.report.experiment import Corpus
from specialized_heads.report.inputs import Files
from specialized_heads.stage import UserError

READS = {"results": Files(Path, by="")}
CAPTION = (
    "Run times by rule, of the jobs that made this experiment's results; they are measured and differ from run to run. Wall "
    "time is the sum over jobs, including those that ran in parallel. CPU time and memory are sampled, in long jobs every 30 s, "
    "and so are lower bounds; a job too short to be sampled counts as 0 CPU minutes. Of a job that was interrupted and resumed, "
    "only the last part is counted; downloads, which experiments share, are left out."
)
MEASURES = {"s": "seconds", "cpu_time": "cpu_seconds", "max_rss": "megabytes"}  # columns of Snakemake's files
COLUMNS = ["rule", "corpus", "file", *MEASURES.values()]
TOTAL = "all rules"
# Rules whose wildcards name a scope -> the first part of the paths of the models that they make.
KINDS = {
    "prune": "pruned",
    "train_from_scratch": "scratch",
    "train_count": "count",
    "train_regularised": "regularised",
    "cut": "cut",
    "finetune": "finetuned",
}


def belongs(rule: str, wildcards: dict[str, str], *, corpora: list[Corpus], seeds: list[int]) -> bool:
    """Whether the experiment, as configured now, has this job, by its rule and the wildcards for corpus, model and seed."""
    models = {corpus.name: corpus.models for corpus in corpora}.get(wildcards.get("corpus", ""), [])
    if "seed" in wildcards and int(wildcards["seed"]) not in seeds:
        return False
    if "model" in wildcards:
        return wildcards["model"] in models
    if "moment" in wildcards:
        return str(Name("checkpoint", update=int(wildcards["moment"]))) in models
    if "scope" in wildcards:
        target = Target.parse(wildcards["target"]) if "target" in wildcards else Target(heads=int(wildcards["heads"]))
        return str(Name(KINDS[rule], wildcards["scope"], target, wildcards.get("criterion", ""))) in models
    return True


def numbers(results: Path, *, corpora: list[Corpus], seeds: list[int], rules: dict[str, str]) -> pd.DataFrame:
    """One row per job; cpu_seconds and megabytes (largest resident set) are missing where it was too short to be sampled.

    `rules`: by rule, the regular expression for the paths of its measurements, with a group per wildcard.
    """
    titles = {corpus.name: corpus.title for corpus in corpora}
    files = [path.as_posix() for path in sorted(results.rglob("*.tsv")) if "benchmarks" in path.parts]
    rows = []
    for rule, pattern in rules.items():
        for path in files:
            match = re.fullmatch(pattern, path)
            if not match or not belongs(rule, match.groupdict(), corpora=corpora, seeds=seeds):
                continue
            measured = pd.read_csv(path, sep="\t", na_values=["-"])
            if not set(MEASURES) <= set(measured) or len(measured) != 1:
                raise UserError(f"{path}: not a measurement of one job by Snakemake; delete it")
            row = {name: float(measured[column].iloc[0]) for column, name in MEASURES.items()}
            corpus = titles.get(match.groupdict().get("corpus"))
            rows.append({"rule": rule, "corpus": corpus, "file": str(Path(path).relative_to(results))} | row)
    return pd.DataFrame(rows, columns=COLUMNS)


def shown(jobs: pd.DataFrame) -> pd.DataFrame:
    """The table as text: the rules in order of decreasing wall time, then all of them together."""
    lines = []
    groups = sorted(jobs.groupby("rule", sort=False), key=lambda group: -group[1]["seconds"].sum())
    whole = jobs["seconds"].sum()
    for name, same in [*groups, (TOTAL, jobs)]:
        wall = same["seconds"].sum()
        lines.append(
            {
                "rule": name,
                "jobs": f"{len(same):,}",
                "wall, minutes": f"{wall / 60:,.2f}",
                "share": f"{wall / whole:.1%}" if whole else "",
                "longest job, minutes": f"{same['seconds'].max() / 60:,.2f}" if len(same) else "",
                "CPU, minutes": f"{same['cpu_seconds'].sum() / 60:,.2f}",
                "peak memory, MB": "" if same["megabytes"].isna().all() else f"{same['megabytes'].max():,.0f}",
            }
        )
    return pd.DataFrame(lines)
