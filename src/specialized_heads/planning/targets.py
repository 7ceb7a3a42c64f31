"""What the workflow makes where no target is named."""

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning.figures import environment, results
from specialized_heads.planning.inputs import HEADS
from specialized_heads.planning.models import corpora, paths, runs, viewed
from specialized_heads.planning.results import Result
from specialized_heads.planning.tables import TABLES, parts


def all_results(experiment: Experiment) -> list[Result]:
    """Every figure and table; the last one waits for everything else that the experiment makes."""
    shown = results(experiment)
    return [*shown, environment(experiment, _files(experiment, shown) + _others(experiment))]


def everything(experiment: Experiment) -> list[str]:
    """The figures and tables that the configuration asks for, and what they do not need."""
    return _files(experiment, all_results(experiment)) + _others(experiment)


def _files(experiment: Experiment, shown: list[Result]) -> list[str]:
    """One file of each figure and table that is wanted."""
    stems = [stem for result in shown if result.wanted for stem in result.outputs.values()]
    suffixes = ["pdf" if stem.startswith("figures/") else "md" for stem in stems]
    return [f"results/{experiment.experiment}/{stem}.{suffix}" for stem, suffix in zip(stems, suffixes)]


def _others(experiment: Experiment) -> list[str]:
    """The configuration, the viewer, and tables that some experiments show nowhere."""
    every = corpora(experiment)
    pages = ["viewer/index.html"] if viewed(experiment) else []
    pages += [f"data/{table}.parquet" for table in TABLES if parts(experiment, table)]
    return [
        *(f"results/{experiment.experiment}/{name}" for name in ("configuration.yaml", *pages)),
        *paths(experiment, "{corpus}/scores.parquet", every),
        *paths(experiment, HEADS, runs(experiment, every, "baseline", "pruned")),
    ]
