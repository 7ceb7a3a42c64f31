"""The five tables of an experiment, `data/<table>.parquet`: the files that each is gathered from (`report/gather.py`)."""

from typing import Any

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning import figures
from specialized_heads.planning.inputs import HEADS
from specialized_heads.planning.models import TRAINED, Run, corpora, emerging, paths, runs

TABLES = ("models", "heads", "logs", "ablation", "relations")


def parts(experiment: Experiment, table: str) -> list[tuple[str, Run]]:
    """The files of a table, as patterns below the experiment's folder, and the model of each; of a corpus, its baseline."""
    every = corpora(experiment)
    of_corpora = [Run(name, "baseline", experiment.seeds[0]) for name in every]
    match table:
        case "models":
            return [(figures.SCORES, run) for run in of_corpora]
        case "heads":
            analysed = [*runs(experiment, every, "baseline", "pruned"), *emerging(experiment)]
            return [(HEADS, run) for run in analysed]
        case "logs":
            return [(figures.LOG, run) for run in runs(experiment, every, *TRAINED)]
        case "ablation":
            single = figures.ablated(experiment, "single")
            systematic = figures.ablated(experiment, "systematic", "checkpoint", "baseline")
            removed = [(pattern, run) for pattern in (figures.ABLATION, figures.SECOND) for run in single]
            return removed + [(figures.SYSTEMATIC, run) for run in systematic]
    return [(figures.RELATIONS, run) for run in of_corpora]


def files(experiment: Experiment, /, *, table: str, **_: str) -> list[str]:
    """The input files of a table."""
    return [path for pattern, run in parts(experiment, table) for path in paths(experiment, pattern, [run])]


def settings(experiment: Experiment, /, *, table: str, **_: str) -> dict[str, Any]:
    """What the stage needs to know of each file."""
    described = []
    for pattern, run in parts(experiment, table):
        of_model = (
            {"model": None, "seed": None}
            if table in ("models", "relations")
            else {"model": run.model, "seed": run.seed}
        )
        title = experiment.corpora[run.corpus].title
        described.append({"path": pattern.format(**run._asdict()), "corpus": run.corpus, "title": title} | of_model)
    return {"table": table, "experiment": experiment.experiment, "parts": described}
