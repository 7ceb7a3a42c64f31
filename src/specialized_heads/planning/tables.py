"""The five tables of an experiment, `data/<table>.parquet`: the files that each is gathered from (`report/gather.py`)."""

from typing import Any

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning import figures
from specialized_heads.planning.inputs import HEADS
from specialized_heads.planning.models import KINDS, TRAINED, Run, corpora, emerging, paths, runs

TABLES = ("models", "heads", "logs", "ablation", "relations")


def parts(experiment: Experiment, table: str) -> list[tuple[str, Run]]:
    """The files of a table, as patterns below the experiment's folder, and the model of each; of a corpus, its baseline."""
    every, pruned = corpora(experiment), corpora(experiment, pruned=True)
    match table:
        case "models":
            return [(figures.DESCRIPTION, run) for run in runs(experiment, every, *KINDS)]
        case "heads":
            analysed = [*runs(experiment, every, "baseline", "pruned"), *emerging(experiment)]
            return [(HEADS, run) for run in analysed]
        case "logs":
            return [(figures.LOG, run) for run in runs(experiment, every, *TRAINED)]
        case "ablation":
            single = [name for name in pruned if experiment.for_corpus(name).ablation.single]
            systematic = [name for name in pruned if experiment.for_corpus(name).ablation.systematic]
            removed = [(figures.SYSTEMATIC, run) for run in runs(experiment, systematic, "checkpoint", "baseline")]
            one = runs(experiment, single, "baseline")
            return [*((pattern, run) for pattern in (figures.ABLATION, figures.SECOND) for run in one), *removed]
    return [(figures.RELATIONS, Run(name, "baseline", experiment.seeds[0])) for name in every]


def files(experiment: Experiment, /, *, table: str, **_: str) -> list[str]:
    """The input files of a table; that of models has scores beside the descriptions."""
    several = parts(experiment, table)
    patterns = [*several, *((figures.SCORE, run) for _, run in several)] if table == "models" else several
    return [path for pattern, run in patterns for path in paths(experiment, pattern, [run])]


def settings(experiment: Experiment, /, *, table: str, **_: str) -> dict[str, Any]:
    """What the stage needs to know of each file."""
    described = []
    for pattern, run in parts(experiment, table):
        of_model = {"model": None, "seed": None} if table == "relations" else {"model": run.model, "seed": run.seed}
        title = experiment.corpora[run.corpus].title
        described.append({"path": pattern.format(**run._asdict()), "corpus": run.corpus, "title": title} | of_model)
    return {"table": table, "experiment": experiment.experiment, "parts": described}
