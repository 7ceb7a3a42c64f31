"""The figures and tables of the report: one row each, which says what draws it and where the report
shows it.

All read the five tables of the experiment, `data/<table>.parquet`, which `report/gather.py` makes
from the files of all models. To add a figure or table, write its functions and its row. The
docstring of the module is the caption in the report or, in a module of several results, that of the
function that draws it.
"""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import specialized_heads
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.names import CONTROLS, KINDS, SCOPES, TRAINED, Target
from specialized_heads.experiment.plan import (
    FOLDER,
    HEADS,
    Run,
    corpora,
    emerging,
    models,
    paths,
    runs,
    tasks,
    viewed,
)

TABLES = ("models", "heads", "logs", "ablation", "relations")
LOG = FOLDER + "log.jsonl"
ABLATION = "{corpus}/ablation/{model}/seed{seed}.parquet"
SECOND = "{corpus}/ablation/{model}/seed{seed}.second.parquet"
SYSTEMATIC = "{corpus}/systematic/{model}/seed{seed}.parquet"
RELATIONS = "{corpus}/parses/relations.parquet"
RELEVANCE = "{corpus}/relevance/{model}/seed{seed}."
SPEED = "{corpus}/speed.seed{seed}.parquet"


def sources(experiment: Experiment, table: str) -> dict[str, list[Run]]:
    """The files or folders of a table: patterns below the experiment's folder, and the models that
    each has one of."""
    studies = list(experiment.studies)
    match table:
        case "models":
            return {FOLDER: runs(experiment, studies, *KINDS)}
        case "heads":
            return {
                HEADS: [
                    *runs(experiment, corpora(experiment), "baseline", "pruned"),
                    *emerging(experiment),
                ]
            }
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
    return runs(
        experiment,
        [name for name in studies if getattr(experiment.for_corpus(name).ablation, key)],
        *kinds,
    )


def by_rule(experiment: Experiment) -> list[str]:
    """The corpora whose tables name the rules of relevance: several, or another than z⁺."""
    return [
        name
        for name in corpora(experiment)
        if experiment.for_corpus(name).heads.relevance_rules != ["z_plus"]
    ]


def table_files(experiment: Experiment, /, *, table: str, **_: str) -> list[str]:
    """The input files of a table."""
    owners = sources(experiment, table)
    match table:
        case "models":
            owners = {FOLDER + name: owners[FOLDER] for name in ("model.json", "score.json")}
            owners |= sources(experiment, "logs") | {"{corpus}/baselines.json": tasks(experiment)}
        case "heads":
            baselines = runs(experiment, by_rule(experiment), "baseline")
            owners |= {RELEVANCE + ending: baselines for ending in ("parquet", "json")}
    return [
        path for pattern, models in owners.items() for path in paths(experiment, pattern, models)
    ]


def table_settings(experiment: Experiment, /, *, table: str, **_: str) -> dict[str, Any]:
    """What the stage needs to know of each file, and the columns that are the same in all rows of a
    corpus."""
    same = {
        name: {"title": study.title} | _facts(experiment, name, table)
        for name, study in experiment.studies.items()
    }
    files = {
        pattern: [tuple(run) for run in owners]
        for pattern, owners in sources(experiment, table).items()
    }
    several = {"by_rule": by_rule(experiment)} if table == "heads" else {}
    return {
        "table": table,
        "experiment": experiment.experiment,
        "corpora": same,
        "files": files,
    } | several


def _facts(experiment: Experiment, corpus: str, table: str) -> dict[str, Any]:
    """What figures and claims need to know of the configuration."""
    if corpus in experiment.tasks:
        second = (
            "mismatched test set" if experiment.tasks[corpus].source.second else "development set"
        )
        return {"second": second} if table == "ablation" else {}
    values, shared = experiment.corpora[corpus], experiment.for_corpus(corpus)
    match table:
        case "models":
            pair = values.model_dump(include={"source_language", "target_language"})
            return {"source": values.source.kind} | pair | shared.decoding.model_dump()
        case "ablation":
            return {"second": "development set"}
    return {}


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
    # Below specialized_heads.report; in a module of several results, followed by the prefix of
    # its functions.
    module: str
    category: str
    label: str
    wanted: Callable[[Experiment], object] = corpora  # whether it is made where no target is named
    # What it reads beside the five tables, by argument of `numbers`: a pattern below the
    # experiment's folder, and its corpora.
    files: dict[str, tuple[str, Callable[[Experiment], list[str]]]] = {}
    data: tuple[str, ...] = ()  # files of the project that its module reads, beside it

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of its files; the report shows the first."""
        return ("png", "pdf", "csv") if self.stem.startswith("figures/") else ("html", "md", "csv")

    @property
    def caption(self) -> str:
        """The docstring of the module, or of its function for this result."""
        module, *name = self.module.split()
        path = (
            Path(specialized_heads.__file__)
            .parent.joinpath("report", *module.split("."))
            .with_suffix(".py")
        )
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kind = "draw" if self.stem.startswith("figures/") else "shown"
        own = f"{name[0]}_{kind}" if name else ""
        drawn = [node for node in tree.body if getattr(node, "name", None) == own]
        return ast.get_docstring([*drawn, tree][0]) or ""


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


def _ablated(
    key: str, of: Callable[[Experiment], list[str]] = _studies
) -> Callable[[Experiment], object]:
    return lambda experiment: [
        run for run in ablated(experiment, key, "baseline") if run.corpus in of(experiment)
    ]


def _fewer_heads_of_tasks(experiment: Experiment) -> object:
    return _ablated("systematic", tasks)(experiment) or _any("pruned", of=tasks)(experiment)


PRUNED, PRUNED_ENCODER, PRUNED_ALL = (
    _any("pruned", of=corpora, scopes=scopes) for scopes in (SCOPES, ["encoder"], ["all"])
)


def _everything(experiment: Experiment) -> bool:
    return True


# Figure spaces (U+2007) sort figure 2 before figure 10.
RESULTS = [
    Result("figures/front", "figures.front", CLAIMS, "At a glance", PRUNED),
    Result("claims", "claims.claim", CLAIMS, "Claims of both papers", _everything,
           {"speed": (SPEED, tasks)}, ("claims.yaml",)),
    Result("tables/data_card", "figures.runs data_card", DATA, "Data card",
           files={"cards": ("{corpus}/corpus/raw.json", corpora),
                  "counts": ("{corpus}/corpus/counts.json", corpora),
                  "parses": ("{corpus}/parses/analysis.json", corpora)}),
    Result("figures/figure1", "figures.relevance figure1", PAPER,
           "Figure \u20071: relevance and function of each head"),
    Result("figures/figure2", "figures.relevance figure2", PAPER,
           "Figure \u20072: the same, further corpora",
           lambda experiment: corpora(experiment)[1:]),
    Result("figures/figure3", "figures.syntactic figure3", PAPER,
           "Figure \u20073: positions of dependents"),
    Result("figures/figure4", "figures.syntactic figure4", PAPER,
           "Figure \u20074: accuracy of syntactic heads"),
    Result("figures/figure5", "figures.functions figure5", PAPER,
           "Figure \u20075: attention of the rare-words head",
           files={"examples": (HEADS.replace(".parquet", ".examples.json"),
                               lambda experiment: corpora(experiment)[:1])}),
    Result("figures/figure6", "figures.gates figure6", PAPER,
           "Figure \u20076: Hard Concrete distribution"),
    Result("figures/figure7", "figures.costs figure7", PAPER,
           "Figure \u20077: BLEU as encoder heads go", PRUNED_ENCODER),
    Result("figures/figure8", "figures.heads_left figure8", PAPER,
           "Figure \u20078: functions of the heads left", PRUNED_ENCODER),
    Result("figures/figure9", "figures.heads_left figure9", PAPER,
           "Figure \u20079: heads left by attention type", PRUNED_ALL),
    Result("figures/figure10", "figures.heads_left figure10", PAPER,
           "Figure 10: heads left by layer", PRUNED_ALL),
    Result("tables/table1", "figures.syntactic table1", PAPER, "Table \u20071: syntactic heads"),
    Result("tables/table2", "figures.costs table2", PAPER,
           "Table \u20072: pruned and from scratch", PRUNED),
    Result("tables/functions", "figures.functions labels", HEADS_OF, "Functions"),
    Result("figures/emergence", "figures.functions emergence", HEADS_OF, "Emergence of functions",
           emerging),
    Result("tables/emergence", "figures.functions halfway", HEADS_OF,
           "Emergence of functions, table", emerging),
    Result("figures/survival", "figures.choice survival", HEADS_OF, "Survival of heads", PRUNED),
    Result("tables/survival", "figures.choice survival", HEADS_OF, "Survival of heads, table",
           PRUNED),
    Result("tables/relevance", "figures.relevance rules", HEADS_OF, "Rules of relevance", by_rule),
    Result("figures/gates", "figures.gates pruning", PRUNING, "Gates during pruning",
           _any("pruned")),
    Result("tables/controls", "figures.costs controls", PRUNING, "Controls", _any(*CONTROLS[1:])),
    Result("figures/criteria", "figures.choice criteria", PRUNING, "Criteria", _any("cut")),
    Result("figures/ablation", "figures.ablation single", MICHEL, "Single heads",
           _ablated("single")),
    Result("tables/alone", "figures.ablation alone", MICHEL, "One head alone in its layer",
           _ablated("single")),
    Result("figures/ablation_sets", "figures.ablation sets", MICHEL,
           "Single heads on two test sets", _ablated("single")),
    Result("figures/systematic", "figures.ablation systematic", MICHEL, "Systematic pruning",
           _ablated("systematic", corpora)),
    Result("figures/moments", "figures.ablation moments", MICHEL,
           "Systematic pruning during training",
           lambda experiment: ablated(experiment, "systematic", "checkpoint")),
    Result("tables/tasks", "figures.bert tasks", BERT, "Tasks", tasks),
    Result("figures/task_pruning", "figures.bert pruning", BERT, "Share of heads",
           _fewer_heads_of_tasks),
    Result("tables/task_speed", "figures.bert speed", BERT, "Speed of BERT", tasks,
           {"speed": (SPEED, tasks)}),
    Result("tables/models", "figures.runs scores", RUNS, "Models, scores, signatures"),
    Result("figures/training_curves", "figures.runs curves", RUNS, "Training curves",
           _everything),
    Result("tables/environment", "figures.runs environment", RUNS, "Environment",
           _everything),
]  # fmt: skip
BY_STEM = {result.stem: result for result in RESULTS}
# made when all else is, but for the page that shows it; it differs from run to run
LAST = "tables/environment"


def everything(experiment: Experiment) -> list[str]:
    """What the workflow makes where no target is named: all results, and the page that shows
    them."""
    return [f"results/{experiment.experiment}/index.html", *shown_files(experiment)]


def shown_files(experiment: Experiment, /, **_: str) -> list[str]:
    """What the page of all results waits for: the figures and tables that are wanted, the tables
    that they read, the heads of all models, the configuration and the viewer."""
    page = page_settings(experiment)
    wanted = [f"{stem}.{BY_STEM[stem].suffixes[1]}" for stem in page["results"]]
    wanted += [f"data/{table}.parquet" for table in page["tables"]]
    wanted += ["configuration.yaml"] + (["viewer/index.html"] if page["viewer"] else [])
    heads = paths(experiment, HEADS, runs(experiment, corpora(experiment), "baseline", "pruned"))
    return [f"results/{experiment.experiment}/{name}" for name in wanted] + heads


def page_settings(experiment: Experiment, /, **_: str) -> dict[str, Any]:
    """What the page of all results shows: the figures and tables that are wanted, and those of the
    five tables with rows."""
    return {
        "results": [result.stem for result in RESULTS if result.wanted(experiment)],
        "tables": [table for table in TABLES if any(sources(experiment, table).values())],
        "viewer": bool(viewed(experiment)),
    }


def files(experiment: Experiment, /, *, stem: str, **_: str) -> dict[str, list[str]]:
    """What a result reads beside the five tables, by option; the last one waits for everything
    else."""
    if stem == LAST:
        return {"needs": [path for path in shown_files(experiment) if LAST not in path]}
    read = BY_STEM[stem].files.items()
    return {
        option: paths(experiment, pattern, names(experiment)) for option, (pattern, names) in read
    }


def settings(experiment: Experiment, /, *, stem: str, **_: str) -> dict[str, Any]:
    """Its settings; `files`: by argument, the titles of the corpora that its files belong to."""
    if stem == LAST:
        engines = [experiment.for_corpus(name).parser.engine for name in corpora(experiment)]
        return {"engines": engines, "device": experiment.device}
    read = BY_STEM[stem].files.items()
    files = {
        option: [experiment.studies[name].title for name in names(experiment)]
        for option, (_, names) in read
    }
    return {"files": files} if files else {}
