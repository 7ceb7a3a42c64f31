"""The five tables of an experiment, `data/<table>.parquet`: the files that each is gathered from (`report/gather.py`)."""

from typing import Any

from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.inputs import HEADS, MODEL
from specialized_heads.experiment.models import Run, corpora, emerging, paths, runs, tasks
from specialized_heads.experiment.names import KINDS, TRAINED
from specialized_heads.heads.functions import BY_NAME, LEAST_ARCS, SYNTACTIC

TABLES = ("models", "heads", "logs", "ablation", "relations")
LOG = MODEL + "log.jsonl"
ABLATION = "{corpus}/ablation/{model}/seed{seed}.parquet"
SECOND = "{corpus}/ablation/{model}/seed{seed}.second.parquet"
SYSTEMATIC = "{corpus}/systematic/{model}/seed{seed}.parquet"
RELATIONS = "{corpus}/parses/relations.parquet"
RELEVANCE = "{corpus}/relevance/{model}/seed{seed}."


def sources(experiment: Experiment, table: str) -> dict[str, list[Run]]:
    """The files or folders of a table: patterns below the experiment's folder, and the models that each has one of."""
    studies = list(experiment.studies)
    match table:
        case "models":
            return {MODEL: runs(experiment, studies, *KINDS)}
        case "heads":
            return {HEADS: [*runs(experiment, corpora(experiment), "baseline", "pruned"), *emerging(experiment)]}
        case "logs":
            return {LOG: runs(experiment, studies, *TRAINED)}
        case "ablation":
            single = ablated(experiment, "single", "baseline")
            systematic = ablated(experiment, "systematic", "checkpoint", "baseline")
            return {ABLATION: single, SECOND: single, SYSTEMATIC: systematic}
    return {RELATIONS: [Run(name, "baseline", experiment.seeds[0]) for name in corpora(experiment)]}


def ablated(experiment: Experiment, key: str, *kinds: str) -> list[Run]:
    """The models whose heads are ablated; `key`: single or systematic."""
    studies = [*corpora(experiment, pruned=True), *tasks(experiment)]
    return runs(experiment, [name for name in studies if getattr(experiment.for_corpus(name).ablation, key)], *kinds)


def by_rule(experiment: Experiment) -> list[str]:
    """The corpora whose baselines have their relevance by several rules."""
    return [name for name in corpora(experiment) if len(experiment.for_corpus(name).heads.relevance_rules) > 1]


def files(experiment: Experiment, /, *, table: str, **_: str) -> list[str]:
    """The input files of a table."""
    owners = sources(experiment, table)
    match table:
        case "models":
            owners = {MODEL + name: owners[MODEL] for name in ("model.json", "score.json")}
            owners |= sources(experiment, "logs") | {"{corpus}/baselines.json": tasks(experiment)}
        case "heads":
            baselines = runs(experiment, by_rule(experiment), "baseline")
            owners |= {RELEVANCE + ending: baselines for ending in ("parquet", "json")}
    return [path for pattern, models in owners.items() for path in paths(experiment, pattern, models)]


def settings(experiment: Experiment, /, *, table: str, **_: str) -> dict[str, Any]:
    """What the stage needs to know of each file, and the columns that are the same in all rows of a corpus."""
    same = {
        name: {"title": study.title} | _facts(experiment, name, table) for name, study in experiment.studies.items()
    }
    files = {pattern: [tuple(run) for run in owners] for pattern, owners in sources(experiment, table).items()}
    several = {"by_rule": by_rule(experiment)} if table == "heads" else {}
    return {"table": table, "experiment": experiment.experiment, "corpora": same, "files": files} | several


def _facts(experiment: Experiment, corpus: str, table: str) -> dict[str, Any]:
    """What figures and claims need to know of the configuration."""
    if corpus in experiment.tasks:
        second = "mismatched test set" if experiment.tasks[corpus].source.second else "development set"
        return {"second": second} if table == "ablation" else {}
    values, shared = experiment.corpora[corpus], experiment.for_corpus(corpus)
    match table:
        case "models":
            pair = values.model_dump(include={"source_language", "target_language"})
            return {"source": values.source.kind} | pair | shared.decoding.model_dump()
        case "ablation":
            return {"second": "development set"}
        case "relations":
            return {"least_arcs": LEAST_ARCS, "syntactic_margin": BY_NAME[SYNTACTIC].threshold}
    return {}
