"""The figures and tables of the report: one row each, from which the workflow makes one rule each.

A row says which module draws, what it reads, and where the report shows the result. To add a figure, write its module, its row
and its caption, `workflow/report/<name>.rst`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning.inputs import HEADS, MODEL
from specialized_heads.planning.models import KINDS, TRAINED, Run, corpora, emerging, models, paths, runs, tasks

# Categories of the report, which sorts them, and the labels within each, as text.
BERT = "BERT (Michel et al. 2019)"
CLAIMS = "Claims"
DATA = "Data"
PAPER = "Figures and tables"
FUNCTIONS = "Heads"
MICHEL = "Michel et al. (2019)"
PRUNING = "Pruning"
RUNS = "Runs"

# Paths of what figures and tables read.
CARD = "{corpus}/corpus/raw.json"
COUNTS = "{corpus}/corpus/counts.json"
PARSES = "{corpus}/parses/analysis.parquet"
RELATIONS = "{corpus}/parses/relations.parquet"
SCORES = "{corpus}/scores.parquet"
SCORE = MODEL + "score.json"
BASELINES = "{corpus}/baselines.json"
SPEED = "{corpus}/speed.seed{seed}.parquet"
DEAD = "{corpus}/dead_heads.json"
DESCRIPTION = MODEL + "model.json"
LOG = MODEL + "log.jsonl"
EXAMPLES = "{corpus}/heads/{model}/seed{seed}.examples.json"
SIMILARITY = "{corpus}/heads/{model}/seed{seed}.similarity.parquet"
RELEVANCE = "{corpus}/relevance/{model}/seed{seed}.parquet"
ABLATION = "{corpus}/ablation/{model}/seed{seed}.parquet"
SECOND = "{corpus}/ablation/{model}/seed{seed}.second.parquet"
SYSTEMATIC = "{corpus}/systematic/{model}/seed{seed}.parquet"
CRITERIA = "{corpus}/criteria/seed{seed}.parquet"


@dataclass(frozen=True)
class Result:
    """A figure, a table, or one of each that a module makes together."""

    rule: str
    module: str  # below specialized_heads.report
    category: str
    label: str  # in the report
    caption: str  # name of its file in workflow/report, without suffix
    outputs: dict[str, str]  # paths below the experiment's folder, without suffix, by the argument that takes them
    inputs: dict[str, list[str]]  # files by the argument that takes them
    needs: list[str]  # files that must exist first and that no argument names
    folder: bool  # pass `--results`, the experiment's folder, where the module finds what it needs
    settings: dict[str, Any]
    wanted: bool  # made where no target is named


def row(
    experiment: Experiment,
    package: str,
    category: str,
    stem: str,
    label: str,
    *,
    titles: Sequence[str] | None = None,
    runs: Sequence[Run] | None = None,
    module: str = "",
    rule: str = "",
    both: bool = False,
    needs: Sequence[str] = (),
    folder: bool = False,
    settings: dict[str, Any] | None = None,
    wanted: bool = True,
    **inputs: str | list[str],
) -> Result:
    """A figure or table.

    Args:
        experiment: the configuration.
        package: where its module is, below `specialized_heads.report`.
        category: where the report shows it.
        stem: its path below the experiment's folder, such as `figures/entropy`. The last part names the module, the rule and
            the caption, unless `module` and `rule` give other names.
        label: how the report names it.
        titles: the corpora that it shows; the module gets their titles as the setting of this name.
        runs: the models that it shows; the module gets their corpora, names and seeds as the setting of this name.
        module: see `stem`.
        rule: see `stem`.
        both: whether the module makes a figure and a table, each of this name.
        needs: files that must exist first and that no argument names.
        folder: pass the experiment's folder as `--results`.
        settings: further settings.
        wanted: whether it is made where no target is named.
        inputs: by argument, the files, or a pattern for the path of one file for each of `runs`, or else of `titles`.
    """
    name = PurePosixPath(stem).name
    shown: Sequence[Run | str] = runs if runs is not None else titles or ()
    files = {flag: paths(experiment, each, shown) if isinstance(each, str) else each for flag, each in inputs.items()}
    known = {} if titles is None else {"titles": _titles(experiment, titles)}
    known |= {} if runs is None else {"runs": _described(experiment, runs)}
    return Result(
        rule=rule or name,
        module=f"{package}.{module or name}",
        category=category,
        label=label,
        caption=name,
        outputs={"figure": f"figures/{name}", "table": f"tables/{name}"} if both else {"output": stem},
        inputs=files,
        needs=list(needs),
        folder=folder,
        settings=known | (settings or {}),
        wanted=wanted,
    )


def arguments(result: Result, *, files: dict[str, list[str]], stems: dict[str, str]) -> list[str]:
    """The command line of a module for a result, without its settings.

    Args:
        result: a row of the report.
        files: where the job finds what it reads, by argument.
        stems: where it writes, without suffix, by argument.
    """
    [name, *_] = result.outputs
    folder = stems[name].removesuffix(f"/{result.outputs[name]}")
    named = files | {name: [stem] for name, stem in stems.items()} | ({"results": [folder]} if result.folder else {})
    return [part for name, paths in named.items() if paths for part in (f"--{name}", *paths)]


def results(experiment: Experiment) -> list[Result]:
    """Every figure and table but those that sum up the run itself, which are in `last_results`."""
    of_corpora = (_data, _paper, _functions, _michel, _pruning) if experiment.corpora else ()
    of_tasks = (_tasks,) if experiment.tasks else ()
    return [result for part in (_claims, *of_corpora, *of_tasks, _runs) for result in part(experiment)]


def last_results(experiment: Experiment, everything_else: list[str]) -> list[Result]:
    """The tables about all jobs. They are made last and, as all that is measured, differ from run to run."""
    last = partial(row, experiment, "beyond", RUNS, needs=everything_else)
    studied = [*corpora(experiment), *tasks(experiment)]
    engines = [experiment.for_corpus(name).parser.engine for name in corpora(experiment)]
    machine = {"engines": engines, "device": experiment.device}
    return [
        last("tables/run_times", "Run times", folder=True, settings=_listed(experiment, studied, *KINDS)),
        last("tables/environment", "Environment", settings=machine),
    ]


def _paper(experiment: Experiment) -> list[Result]:
    """The paper's figures and tables. Figure spaces (U+2007) sort figure 2 before figure 10."""
    paper = partial(row, experiment, "voita", PAPER)
    every, pruned = corpora(experiment), corpora(experiment, pruned=True)
    first, others, swept = every[:1], every[1:], _swept(experiment, "all")
    encoder = _swept(experiment, "encoder") or first
    series = runs(experiment, encoder, "baseline", "pruned", scopes=["encoder"], seeds=experiment.seeds[:1])
    figure8 = {"runs": series, "heads": HEADS, "settings": _title(experiment, encoder)}
    both = {"titles": every, "heads": HEADS, "relations": RELATIONS}
    return [
        paper("figures/figure1", "Figure \u20071: relevance and function of each head", titles=first, heads=HEADS),
        paper("figures/figure2", "Figure \u20072: the same, further corpora", titles=others, heads=HEADS),
        paper("figures/figure3", "Figure \u20073: positions of dependents", titles=first, relations=RELATIONS),
        paper("figures/figure4", "Figure \u20074: accuracy of syntactic heads", **both),
        paper("figures/figure5", "Figure \u20075: attention of the rare-words head", titles=first, examples=EXAMPLES),
        paper("figures/figure6", "Figure \u20076: Hard Concrete distribution"),
        paper("figures/figure7", "Figure \u20077: BLEU as encoder heads go", titles=pruned, scores=SCORES),
        paper("figures/figure8", "Figure \u20078: functions of the heads left", **figure8),
        paper("figures/figure9", "Figure \u20079: heads left by attention type", titles=swept, scores=SCORES),
        paper("figures/figure10", "Figure 10: heads left by layer", titles=swept, scores=SCORES),
        paper("tables/table1", "Table \u20071: syntactic heads", **both),
        paper("tables/table2", "Table \u20072: pruned and from scratch", titles=pruned, scores=SCORES),
    ]


def _data(experiment: Experiment) -> list[Result]:
    """The text and its trees."""
    data = partial(row, experiment, "beyond", DATA, titles=corpora(experiment))
    languages = {"languages": [corpus.source_language for corpus in experiment.corpora.values()]}
    return [
        data("tables/data_card", "Data card", cards=CARD, counts=COUNTS),
        data("tables/persons", "Persons of subjects", parses=PARSES, settings=languages),
    ]


def _functions(experiment: Experiment) -> list[Result]:
    """More about heads than the paper shows: drift of functions, survival, similarity, agreement of relevance rules."""
    functions = partial(row, experiment, "beyond", FUNCTIONS)
    every = corpora(experiment)
    swept = _swept(experiment, "encoder", "all") or every[:1]
    title = _title(experiment, swept)
    first_seed = runs(experiment, swept, "baseline", "pruned", seeds=experiment.seeds[:1])
    drift = {"settings": title | {"relations": experiment.for_corpus(swept[0]).heads.relations}}
    baselines, pruned = runs(experiment, swept, "baseline"), runs(experiment, swept, "pruned")
    survival = {
        "heads": paths(experiment, HEADS, baselines),
        "models": paths(experiment, DESCRIPTION, pruned),
        "settings": title | {"baselines": _described(experiment, baselines), "pruned": _described(experiment, pruned)},
    }
    several = [name for name in every if len(experiment.for_corpus(name).heads.relevance_rules) > 1]
    checkpoints = emerging(experiment)
    followed = runs(experiment, dict.fromkeys(run.corpus for run in checkpoints), "baseline")
    trainings = {"trainings": _described(experiment, followed)}
    emergence: dict[str, Any] = {
        "runs": checkpoints + followed,
        "heads": HEADS,
        "records": paths(experiment, LOG, followed),
        "wanted": bool(checkpoints),
    }
    curves = emergence | {"settings": trainings | {"thresholds": _thresholds(experiment, every[0])}}
    moments = emergence | {"settings": trainings, "module": "emergence_table", "rule": "emergence_table"}
    reached = {"runs": runs(experiment, every, "baseline"), "heads": HEADS, "records": LOG}
    return [
        functions("tables/functions", "Functions", **reached),
        functions("figures/emergence", "Emergence of functions", **curves),
        functions("tables/emergence", "Emergence of functions, table", **moments),
        functions("figures/drift", "Drift of functions", runs=first_seed, heads=HEADS, **drift),
        functions("figures/survival", "Survival of heads", rule="survival_of_heads", both=True, **survival),
        functions(
            "figures/similarity", "Similarity of heads", titles=every[:1], rule="similarity_figure", pairs=SIMILARITY
        ),
        functions(
            "figures/relevance_rules", "Rules of relevance", titles=several, relevance=RELEVANCE, wanted=bool(several)
        ),
    ]


def _pruning(experiment: Experiment) -> list[Result]:
    """Gates and their controls, criteria for the heads to keep, and speed."""
    pruning = partial(row, experiment, "beyond", PRUNING)
    pruned = corpora(experiment, pruned=True)
    gated = [name for name in pruned if models(experiment, name, "pruned")]
    # The figure of gates shows one corpus; if no corpus has any gates, it says so.
    shown = (gated or corpora(experiment))[:1]
    logs = runs(experiment, shown, "pruned", seeds=experiment.seeds[:1])
    gates = {"runs": logs, "records": LOG, "settings": _title(experiment, shown), "wanted": bool(gated)}
    dead = {"titles": pruned, "dead": DEAD, "rule": "dead_heads_table", "wanted": bool(gated)}
    controlled = any(models(experiment, name, "soft", "count", "regularised") for name in pruned)
    compared = [name for name in pruned if models(experiment, name, "cut")]
    criteria = {"titles": compared, "scores": SCORES, "both": True, "wanted": bool(compared)}
    agreement = {"runs": runs(experiment, compared, "baseline"), "criteria": CRITERIA, "both": True}
    timed = [name for name in pruned if experiment.for_corpus(name).pruning.speed]
    timed = [name for name in timed if models(experiment, name, "pruned", scopes=["encoder"])]
    return [
        pruning("figures/gates", "Gates during pruning", **gates),
        pruning("tables/dead_heads", "Dead heads", **dead),
        pruning("tables/controls", "Controls", titles=pruned, scores=SCORES, wanted=controlled),
        pruning("figures/criteria", "Criteria", **criteria),
        pruning("figures/agreement", "Agreement of criteria", **agreement, wanted=bool(compared)),
        pruning("tables/speed", "Speed", titles=timed, speed=SPEED, wanted=bool(timed)),
    ]


def _michel(experiment: Experiment) -> list[Result]:
    """Ablation of single heads, and pruning in order of importance (Michel et al. 2019)."""
    michel = partial(row, experiment, "michel", MICHEL)
    single, systematic = _ablated(experiment, "single"), _ablated(experiment, "systematic")
    # Heads of different seeds have nothing to do with each other: single heads are shown for the first one.
    heads = [run for run in single if run.seed == experiment.seeds[0]]
    single_heads = {"runs": heads, "rule": "single_heads", "both": True, "wanted": bool(heads)}
    alone = {"runs": single, "rule": "table_alone", "wanted": bool(single)}
    second = {experiment.corpora[run.corpus].title: _second_name(experiment, run.corpus) for run in single}
    sets = {"rule": "figure_ablation_sets", "second": SECOND, "settings": {"second_names": second}}
    finished = {"runs": systematic, "rule": "figure_systematic", "wanted": bool(systematic)}
    during = _ablated(experiment, "systematic", "checkpoint", "baseline")
    moments = {"runs": during, "rule": "figure_moments", "wanted": len(during) > len(systematic)}
    return [
        michel("figures/ablation", "Single heads", tables=ABLATION, **single_heads),
        michel("tables/alone", "One head alone in its layer", tables=ABLATION, **alone),
        michel("figures/ablation_sets", "Single heads on two test sets", tables=ABLATION, **alone | sets),
        michel("figures/systematic", "Systematic pruning", tables=SYSTEMATIC, **finished),
        michel("figures/moments", "Systematic pruning during training", tables=SYSTEMATIC, **moments),
    ]


def _tasks(experiment: Experiment) -> list[Result]:
    """The experiments of Michel et al. (2019) on BERT, and gates beside them."""
    every = tasks(experiment)
    classification, michel = (partial(row, experiment, package, BERT) for package in ("classification", "michel"))
    metrics = {task.source.metric for task in experiment.tasks.values()}
    metric = {"metric": metrics.pop() if len(metrics) == 1 else "score"}
    baselines = runs(experiment, every, "baseline")
    single = _ablated(experiment, "single", names=every)
    heads = [run for run in single if run.seed == experiment.seeds[0]]
    systematic = _ablated(experiment, "systematic", names=every)
    during = _ablated(experiment, "systematic", "checkpoint", "baseline", names=every)
    second = {task.title: _second_name(experiment, name) for name, task in experiment.tasks.items()}
    learned = {"titles": every, "baselines": BASELINES, "scores": paths(experiment, SCORE, baselines)}
    pruned = runs(experiment, every, "pruned")
    both = {
        "runs": systematic,
        "tables": SYSTEMATIC,
        "pruned": paths(experiment, SCORE, pruned),
        "settings": metric | {"models": _described(experiment, pruned)},
        "wanted": bool(systematic or pruned),
    }
    speed = {"titles": every, "speed": SPEED, "wanted": bool(experiment.classification.speed)}
    gated = [name for name in every if models(experiment, name, "pruned")][:1]
    logs = runs(experiment, gated, "pruned", seeds=experiment.seeds[:1])
    gates = {"runs": logs, "records": LOG, "settings": _title(experiment, gated or every), "wanted": bool(logs)}
    shown = {"settings": metric, "tables": ABLATION, "wanted": bool(single)}
    sets = shown | {"second": SECOND, "settings": metric | {"second_names": second}}
    return [
        classification("tables/tasks", "Tasks", settings={"runs": _described(experiment, baselines)}, **learned),
        classification("figures/task_pruning", "Share of heads", **both),
        michel("figures/task_ablation", "Single heads of BERT", module="ablation", both=True, runs=heads, **shown),
        michel("tables/task_alone", "One head alone in its layer of BERT", module="alone", runs=single, **shown),
        michel(
            "figures/task_ablation_sets",
            "Single heads of BERT on two sets",
            module="ablation_sets",
            runs=single,
            **sets,
        ),
        michel(
            "figures/task_moments",
            "Systematic pruning of BERT during training",
            module="moments",
            runs=during,
            tables=SYSTEMATIC,
            baselines=paths(experiment, BASELINES, every),
            settings=metric | {"tasks": _titles(experiment, every)},
            wanted=len(during) > len(systematic),
        ),
        row(experiment, "beyond", BERT, "figures/task_gates", "Gates on BERT", module="gates", **gates),
        classification("tables/task_speed", "Speed of BERT", **speed),
    ]


def _claims(experiment: Experiment) -> list[Result]:
    """The study at a glance, and the claims of both papers."""
    every = corpora(experiment)
    studied = [*every, *tasks(experiment)]
    heads = runs(experiment, every, "baseline", "pruned")
    single = _ablated(experiment, "single", names=studied)
    during = _ablated(experiment, "systematic", "checkpoint", "baseline", names=studied)
    evidence = {
        "titles": every,
        "scores": SCORES,
        "heads": paths(experiment, HEADS, heads),
        "single": paths(experiment, ABLATION, single),
        "second": paths(experiment, SECOND, single),
        "systematic": paths(experiment, SYSTEMATIC, during),
        "baselines": paths(experiment, BASELINES, tasks(experiment)),
        "speed": paths(experiment, SPEED, tasks(experiment)),
        "settings": {
            "corpora": [_claimed(experiment, name) for name in every],
            "models": _described(experiment, heads),
            "ablated": _described(experiment, single),
            "moments": _described(experiment, during),
        },
    }
    if experiment.tasks:
        evidence["settings"] |= {"tasks": _titles(experiment, tasks(experiment))}
    claims = row(experiment, "claims", CLAIMS, "claims", "Claims of both papers", module="table", **evidence)
    return [*_front(experiment), claims]


def _front(experiment: Experiment) -> list[Result]:
    """The study at a glance, of the first corpus that is pruned."""
    if not (swept := _swept(experiment, "encoder", "all") or corpora(experiment)[:1]):
        return []
    shown = {
        "runs": runs(experiment, swept, "baseline", "pruned", seeds=experiment.seeds[:1]),
        "heads": HEADS,
        "scores": paths(experiment, SCORES, swept),
        "settings": _title(experiment, swept),
    }
    return [row(experiment, "beyond", CLAIMS, "figures/front", "At a glance", **shown)]


def _runs(experiment: Experiment) -> list[Result]:
    """All models and their training."""
    listed = partial(row, experiment, "beyond", RUNS, folder=True)
    every = corpora(experiment)
    studied = [*every, *tasks(experiment)]
    logs = paths(experiment, LOG, runs(experiment, studied, *TRAINED))
    needs = paths(experiment, DESCRIPTION, runs(experiment, every, *KINDS)) + logs
    listing = _listed(experiment, every, *KINDS)
    for corpus in listing["corpora"]:
        corpus["logged"] = models(experiment, corpus["name"], *TRAINED)
        corpus["decoding"] = experiment.for_corpus(corpus["name"]).decoding.model_dump()
    table = {"titles": every, "scores": SCORES, "rule": "models_table", "needs": needs, "settings": listing}
    curves = {"needs": logs, "settings": _listed(experiment, studied, *TRAINED)}
    if experiment.tasks:
        curves["settings"] |= {"unit": "token or sentence" if every else "sentence"}
    models_table = [listed("tables/models", "Models, scores, signatures", **table)] if every else []
    return [*models_table, listed("figures/training_curves", "Training curves", **curves)]


def _titles(experiment: Experiment, names: Iterable[str]) -> list[str]:
    """The titles of these corpora or tasks."""
    return [experiment.studies[name].title for name in names]


def _title(experiment: Experiment, names: Sequence[str]) -> dict[str, str]:
    """The setting of a figure of one corpus, the first of these."""
    return {"title": experiment.studies[names[0]].title}


def _described(experiment: Experiment, shown: Iterable[Run]) -> list[dict[str, Any]]:
    """The setting that names these runs (`report.experiment.Run`)."""
    return [run._asdict() | {"corpus": experiment.studies[run.corpus].title} for run in shown]


def _thresholds(experiment: Experiment, corpus: str) -> dict[str, float]:
    """What makes a function, by panel of the figure of their emergence."""
    heads = experiment.for_corpus(corpus).heads
    return {
        "neighbours": heads.positional_share,
        "syntactic": heads.syntactic_margin,
        "rare words": heads.rare_share,
    }


def _swept(experiment: Experiment, *scopes: str) -> list[str]:
    """The corpus that a figure about pruning shows: the first with models that are pruned in one of these scopes."""
    pruned = corpora(experiment, pruned=True)
    return ([name for name in pruned if models(experiment, name, "pruned", scopes=scopes)] or pruned)[:1]


def _ablated(experiment: Experiment, key: str, *kinds: str, names: Sequence[str] | None = None) -> list[Run]:
    """The models whose heads are ablated: baselines unless said otherwise; `key`: single or systematic.

    `names`: corpora and tasks, of which those that are not pruned are left out; None: all corpora.
    """
    several = [*corpora(experiment, pruned=True), *(tasks(experiment) if names is not None else ())]
    chosen = [name for name in several if names is None or name in names]
    ablated = [name for name in chosen if getattr(experiment.for_corpus(name).ablation, key)]
    return runs(experiment, ablated, *(kinds or ("baseline",)))


def _second_name(experiment: Experiment, corpus: str) -> str:
    """How a figure names the second set on which the heads of a corpus are ablated."""
    if corpus in experiment.tasks:
        return "mismatched test set" if experiment.tasks[corpus].source.second else "development set"
    second = experiment.for_corpus(corpus).ablation.second
    return "development set" if second == "dev" else f"test set of {experiment.corpora[second].title}"


def _claimed(experiment: Experiment, corpus: str) -> dict[str, Any]:
    """What claims need to know of a corpus; `stands_for`: the corpus of the paper with its source and languages, if any."""
    values = experiment.corpora[corpus]
    same = (values.source_language, values.target_language) == ("en", "ru")
    paper = values.source.kind if same and values.source.kind in ("wmt", "opensubtitles") else ""
    heads = experiment.for_corpus(corpus).heads.model_dump(include={"least_arcs"})
    return {"title": values.title, "stands_for": paper, "pruned": values.prune} | heads


def _listed(experiment: Experiment, names: Iterable[str], *kinds: str) -> dict[str, Any]:
    """The models of these corpora and tasks, and the seeds."""
    listed = [
        {"name": name, "title": experiment.studies[name].title, "models": models(experiment, name, *kinds)}
        for name in names
    ]
    return {"corpora": listed, "seeds": experiment.seeds}
