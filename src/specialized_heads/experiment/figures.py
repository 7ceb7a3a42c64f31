"""The figures and tables of the report: one row each, which says what draws it and where the report shows it.

All read the five tables of the experiment (`experiment.tables`). To add one, write its module and its row. The module's docstring
is the caption in the report.
"""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import specialized_heads
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.inputs import HEADS
from specialized_heads.experiment.models import corpora, emerging, models, paths, runs, tasks, viewed
from specialized_heads.experiment.names import CONTROLS, SCOPES, Target
from specialized_heads.experiment.tables import TABLES, ablated, by_rule, sources

SPEED = "{corpus}/speed.seed{seed}.parquet"

# Categories of the report, which sorts them, and the labels within each, as text.
CLAIMS = "Claims"
DATA = "Data"
PAPER = "Figures and tables"
HEADS_OF = "Heads"
MICHEL = "Michel et al. (2019)"
BERT = "BERT (Michel et al. 2019)"
PRUNING = "Pruning"
RUNS = "Runs"


class Result(NamedTuple):
    """A figure (`figures/<name>`) or a table."""

    stem: str  # its path below the experiment's folder, without suffix
    module: str  # below specialized_heads.report
    category: str
    label: str
    wanted: Callable[[Experiment], object] = corpora  # whether it is made where no target is named
    # What it reads beside the five tables, by option of the module: a pattern below the experiment's folder, and its corpora.
    files: dict[str, tuple[str, Callable[[Experiment], list[str]]]] = {}

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of its files; the report shows the first."""
        return ("png", "pdf", "svg", "csv") if self.stem.startswith("figures/") else ("html", "md", "tex", "csv")

    @property
    def caption(self) -> str:
        """The docstring of the module."""
        path = Path(specialized_heads.__file__).parent.joinpath("report", *self.module.split(".")).with_suffix(".py")
        return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _studies(experiment: Experiment) -> list[str]:
    return [*experiment.studies]


def _any(
    *kinds: str, of: Callable[[Experiment], list[str]] = _studies, scopes: Iterable[str] = SCOPES
) -> Callable[[Experiment], object]:
    """The models of these kinds and scopes that have lost heads."""
    return lambda experiment: [
        name
        for study in of(experiment)
        for name in models(experiment, study, *kinds, scopes=scopes)
        if not name.endswith(f"_{Target(lam=0)}")
    ]


def _ablated(key: str, of: Callable[[Experiment], list[str]] = _studies) -> Callable[[Experiment], object]:
    return lambda experiment: [run for run in ablated(experiment, key, "baseline") if run.corpus in of(experiment)]


def _fewer_heads_of_tasks(experiment: Experiment) -> object:
    return _ablated("systematic", tasks)(experiment) or _any("pruned", of=tasks)(experiment)


PRUNED, PRUNED_ENCODER, PRUNED_ALL = (
    _any("pruned", of=corpora, scopes=scopes) for scopes in (SCOPES, ["encoder"], ["all"])
)


def _everything(experiment: Experiment) -> bool:
    return True


# Figure spaces (U+2007) sort figure 2 before figure 10.
RESULTS = [
    Result("figures/front", "beyond.front", CLAIMS, "At a glance", PRUNED),
    Result("claims", "claims.table", CLAIMS, "Claims of both papers", _everything, {"speed": (SPEED, tasks)}),
    Result("tables/data_card", "beyond.data_card", DATA, "Data card",
           files={"cards": ("{corpus}/corpus/raw.json", corpora), "counts": ("{corpus}/corpus/counts.json", corpora),
                  "parses": ("{corpus}/parses/analysis.json", corpora)}),
    Result("figures/figure1", "voita.figure1", PAPER, "Figure \u20071: relevance and function of each head"),
    Result("figures/figure2", "voita.figure2", PAPER, "Figure \u20072: the same, further corpora",
           lambda experiment: corpora(experiment)[1:]),
    Result("figures/figure3", "voita.figure3", PAPER, "Figure \u20073: positions of dependents"),
    Result("figures/figure4", "voita.figure4", PAPER, "Figure \u20074: accuracy of syntactic heads"),
    Result("figures/figure5", "voita.figure5", PAPER, "Figure \u20075: attention of the rare-words head",
           files={"examples": (HEADS.replace(".parquet", ".examples.json"), lambda experiment: corpora(experiment)[:1])}),
    Result("figures/figure6", "voita.figure6", PAPER, "Figure \u20076: Hard Concrete distribution"),
    Result("figures/figure7", "voita.figure7", PAPER, "Figure \u20077: BLEU as encoder heads go", PRUNED_ENCODER),
    Result("figures/figure8", "voita.figure8", PAPER, "Figure \u20078: functions of the heads left", PRUNED_ENCODER),
    Result("figures/figure9", "voita.figure9", PAPER, "Figure \u20079: heads left by attention type", PRUNED_ALL),
    Result("figures/figure10", "voita.figure10", PAPER, "Figure 10: heads left by layer", PRUNED_ALL),
    Result("tables/table1", "voita.table1", PAPER, "Table \u20071: syntactic heads"),
    Result("tables/table2", "voita.table2", PAPER, "Table \u20072: pruned and from scratch", PRUNED),
    Result("tables/functions", "beyond.functions", HEADS_OF, "Functions"),
    Result("figures/emergence", "beyond.emergence", HEADS_OF, "Emergence of functions", emerging),
    Result("tables/emergence", "beyond.emergence_table", HEADS_OF, "Emergence of functions, table", emerging),
    Result("figures/survival", "beyond.survival", HEADS_OF, "Survival of heads", PRUNED),
    Result("tables/survival", "beyond.survival", HEADS_OF, "Survival of heads, table", PRUNED),
    Result("tables/relevance", "beyond.relevance", HEADS_OF, "Rules of relevance", by_rule),
    Result("figures/gates", "beyond.gates", PRUNING, "Gates during pruning", _any("pruned")),
    Result("tables/controls", "beyond.controls", PRUNING, "Controls", _any(*CONTROLS[1:])),
    Result("figures/criteria", "beyond.criteria", PRUNING, "Criteria", _any("cut")),
    Result("figures/ablation", "michel.ablation", MICHEL, "Single heads", _ablated("single")),
    Result("tables/alone", "michel.alone", MICHEL, "One head alone in its layer", _ablated("single")),
    Result("figures/ablation_sets", "michel.ablation_sets", MICHEL, "Single heads on two test sets", _ablated("single")),
    Result("figures/systematic", "michel.systematic", MICHEL, "Systematic pruning", _ablated("systematic", corpora)),
    Result("figures/moments", "michel.moments", MICHEL, "Systematic pruning during training",
           lambda experiment: ablated(experiment, "systematic", "checkpoint")),
    Result("tables/tasks", "classification.tasks", BERT, "Tasks", tasks),
    Result("figures/task_pruning", "classification.task_pruning", BERT, "Share of heads", _fewer_heads_of_tasks),
    Result("tables/task_speed", "classification.task_speed", BERT, "Speed of BERT", tasks, {"speed": (SPEED, tasks)}),
    Result("tables/models", "beyond.models", RUNS, "Models, scores, signatures"),
    Result("figures/training_curves", "beyond.training_curves", RUNS, "Training curves", _everything),
    Result("tables/environment", "beyond.environment", RUNS, "Environment", _everything),
]  # fmt: skip
BY_STEM = {result.stem: result for result in RESULTS}
LAST = "tables/environment"  # made when all else is; it differs from run to run


def everything(experiment: Experiment) -> list[str]:
    """What the workflow makes where no target is named: the figures and tables that are wanted, the tables that they read, the
    configuration and the viewer."""
    wanted = [f"{result.stem}.{result.suffixes[1]}" for result in RESULTS if result.wanted(experiment)]
    wanted += [f"data/{table}.parquet" for table in TABLES if any(sources(experiment, table).values())]
    wanted += ["configuration.yaml"] + (["viewer/index.html"] if viewed(experiment) else [])
    heads = paths(experiment, HEADS, runs(experiment, corpora(experiment), "baseline", "pruned"))
    return [f"results/{experiment.experiment}/{name}" for name in wanted] + heads


def files(experiment: Experiment, /, *, stem: str, **_: str) -> dict[str, list[str]]:
    """What a result reads beside the five tables, by option; the last one waits for everything else."""
    if stem == LAST:
        return {"needs": [path for path in everything(experiment) if LAST not in path]}
    read = BY_STEM[stem].files.items()
    return {option: paths(experiment, pattern, names(experiment)) for option, (pattern, names) in read}


def settings(experiment: Experiment, /, *, stem: str, **_: str) -> dict[str, Any]:
    """Its settings; `titles`: by option, of the corpora that its files belong to."""
    if stem == LAST:
        engines = [experiment.for_corpus(name).parser.engine for name in corpora(experiment)]
        return {"engines": engines, "device": experiment.device}
    titles = {
        option: [experiment.studies[name].title for name in names(experiment)]
        for option, (_, names) in BY_STEM[stem].files.items()
    }
    return {"titles": titles} if titles else {}
