"""The figures and tables of the report: one row each, from which the workflow makes one rule each.

A row says which module draws, what it reads, and where the report shows the result. To add a figure, write its module, its row
and its caption, `workflow/report/<name>.rst`.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning.inputs import HEADS, MODEL
from specialized_heads.planning.models import KINDS, TRAINED, Run, corpora, emerging, models, paths, runs, tasks
from specialized_heads.planning.results import Result, described, row, title_of, titles_of

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
DESCRIPTION = MODEL + "model.json"
LOG = MODEL + "log.jsonl"
EXAMPLES = "{corpus}/heads/{model}/seed{seed}.examples.json"
RELEVANCE = "{corpus}/relevance/{model}/seed{seed}.rules."
ABLATION = "{corpus}/ablation/{model}/seed{seed}.parquet"
SECOND = "{corpus}/ablation/{model}/seed{seed}.second.parquet"
SYSTEMATIC = "{corpus}/systematic/{model}/seed{seed}.parquet"
CRITERIA = "{corpus}/criteria/seed{seed}.parquet"


def results(experiment: Experiment) -> list[Result]:
    """Every figure and table but that of the environment."""
    of_corpora = (_data, _paper, _functions, _michel, _pruning) if experiment.corpora else ()
    of_tasks = (_tasks,) if experiment.tasks else ()
    return [result for part in (_claims, *of_corpora, *of_tasks, _runs) for result in part(experiment)]


def environment(experiment: Experiment, everything_else: list[str]) -> Result:
    """The table of the machine and the versions. It is made last and differs from run to run."""
    engines = [experiment.for_corpus(name).parser.engine for name in corpora(experiment)]
    machine = {"engines": engines, "device": experiment.device}
    stem = "tables/environment"
    return row(experiment, "beyond", RUNS, stem, "Environment", needs=everything_else, settings=machine)


def _paper(experiment: Experiment) -> list[Result]:
    """The paper's figures and tables. Figure spaces (U+2007) sort figure 2 before figure 10."""
    paper = partial(row, experiment, "voita", PAPER)
    every, pruned = corpora(experiment), corpora(experiment, pruned=True)
    first, others, swept = every[:1], every[1:], _swept(experiment, "all")
    encoder = _swept(experiment, "encoder") or first
    series = runs(experiment, encoder, "baseline", "pruned", scopes=["encoder"], seeds=experiment.seeds[:1])
    figure8 = {"runs": series, "heads": HEADS, "settings": title_of(experiment, encoder)}
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
    """More about heads than the paper shows: drift of functions, survival, rules of relevance."""
    functions = partial(row, experiment, "beyond", FUNCTIONS)
    every = corpora(experiment)
    swept = _swept(experiment, "encoder", "all") or every[:1]
    title = title_of(experiment, swept)
    first_seed = runs(experiment, swept, "baseline", "pruned", seeds=experiment.seeds[:1])
    drift = {"settings": title | {"relations": experiment.for_corpus(swept[0]).heads.relations}}
    baselines, pruned = runs(experiment, swept, "baseline"), runs(experiment, swept, "pruned")
    survival = {
        "heads": paths(experiment, HEADS, baselines),
        "models": paths(experiment, DESCRIPTION, pruned),
        "settings": title | {"baselines": described(experiment, baselines), "pruned": described(experiment, pruned)},
    }
    several = [name for name in every if len(experiment.for_corpus(name).heads.relevance_rules) > 1]
    rules = {"relevance": RELEVANCE + "parquet", "stability": RELEVANCE + "json", "wanted": bool(several)}
    compared = {"runs": runs(experiment, several, "baseline"), "rule": "relevance_table", "heads": HEADS}
    checkpoints = emerging(experiment)
    followed = runs(experiment, dict.fromkeys(run.corpus for run in checkpoints), "baseline")
    trainings = {"trainings": described(experiment, followed)}
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
        functions("tables/relevance", "Rules of relevance", **compared, **rules),
    ]


def _pruning(experiment: Experiment) -> list[Result]:
    """Gates and their controls, criteria for the heads to keep, and speed."""
    pruning = partial(row, experiment, "beyond", PRUNING)
    pruned = corpora(experiment, pruned=True)
    gated = [name for name in pruned if models(experiment, name, "pruned")]
    # The figure of gates shows one corpus; if no corpus has any gates, it says so.
    shown = (gated or corpora(experiment))[:1]
    logs = runs(experiment, shown, "pruned", seeds=experiment.seeds[:1])
    gates = {"runs": logs, "records": LOG, "settings": title_of(experiment, shown), "wanted": bool(gated)}
    controlled = any(models(experiment, name, "soft", "count", "regularised") for name in pruned)
    compared = [name for name in pruned if models(experiment, name, "cut")]
    criteria = {"titles": compared, "scores": SCORES, "both": True, "wanted": bool(compared)}
    agreement = {"runs": runs(experiment, compared, "baseline"), "criteria": CRITERIA, "both": True}
    timed = [name for name in pruned if experiment.for_corpus(name).pruning.speed]
    timed = [name for name in timed if models(experiment, name, "pruned", scopes=["encoder"])]
    return [
        pruning("figures/gates", "Gates during pruning", **gates),
        pruning("tables/controls", "Controls", titles=pruned, scores=SCORES, wanted=controlled),
        pruning("figures/criteria", "Criteria", **criteria),
        pruning("figures/agreement", "Agreement of criteria", **agreement, wanted=bool(compared)),
        pruning("tables/speed", "Speed", titles=timed, speed=SPEED, wanted=bool(timed)),
    ]


def _michel(experiment: Experiment) -> list[Result]:
    """Ablation of single heads, and pruning in order of importance (Michel et al. 2019)."""
    michel = partial(row, experiment, "michel", MICHEL)
    single, systematic = ablated(experiment, "single"), ablated(experiment, "systematic")
    # Heads of different seeds have nothing to do with each other: single heads are shown for the first one.
    heads = [run for run in single if run.seed == experiment.seeds[0]]
    single_heads = {"runs": heads, "rule": "single_heads", "both": True, "wanted": bool(heads)}
    alone = {"runs": single, "rule": "table_alone", "wanted": bool(single)}
    second = {experiment.corpora[run.corpus].title: _second_name(experiment, run.corpus) for run in single}
    sets = {"rule": "figure_ablation_sets", "second": SECOND, "settings": {"second_names": second}}
    finished = {"runs": systematic, "rule": "figure_systematic", "wanted": bool(systematic)}
    during = ablated(experiment, "systematic", "checkpoint", "baseline")
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
    single = ablated(experiment, "single", names=every)
    heads = [run for run in single if run.seed == experiment.seeds[0]]
    systematic = ablated(experiment, "systematic", names=every)
    during = ablated(experiment, "systematic", "checkpoint", "baseline", names=every)
    second = {task.title: _second_name(experiment, name) for name, task in experiment.tasks.items()}
    learned = {"titles": every, "baselines": BASELINES, "scores": paths(experiment, SCORE, baselines)}
    pruned = runs(experiment, every, "pruned")
    both = {
        "runs": systematic,
        "tables": SYSTEMATIC,
        "pruned": paths(experiment, SCORE, pruned),
        "settings": metric | {"models": described(experiment, pruned)},
        "wanted": bool(systematic or pruned),
    }
    speed = {"titles": every, "speed": SPEED, "wanted": bool(experiment.classification.speed)}
    gated = [name for name in every if models(experiment, name, "pruned")][:1]
    logs = runs(experiment, gated, "pruned", seeds=experiment.seeds[:1])
    gates = {"runs": logs, "records": LOG, "settings": title_of(experiment, gated or every), "wanted": bool(logs)}
    shown = {"settings": metric, "tables": ABLATION, "wanted": bool(single)}
    sets = shown | {"module": "ablation_sets", "second": SECOND, "settings": metric | {"second_names": second}}
    moments = {
        "runs": during,
        "tables": SYSTEMATIC,
        "baselines": paths(experiment, BASELINES, every),
        "settings": metric | {"tasks": titles_of(experiment, every)},
        "wanted": len(during) > len(systematic),
    }
    return [
        classification("tables/tasks", "Tasks", settings={"runs": described(experiment, baselines)}, **learned),
        classification("figures/task_pruning", "Share of heads", **both),
        michel("figures/task_ablation", "Single heads of BERT", module="ablation", both=True, runs=heads, **shown),
        michel("tables/task_alone", "One head alone in its layer of BERT", module="alone", runs=single, **shown),
        michel("figures/task_ablation_sets", "Single heads of BERT on two sets", runs=single, **sets),
        michel("figures/task_moments", "Systematic pruning of BERT during training", module="moments", **moments),
        row(experiment, "beyond", BERT, "figures/task_gates", "Gates on BERT", module="gates", **gates),
        classification("tables/task_speed", "Speed of BERT", **speed),
    ]


def _claims(experiment: Experiment) -> list[Result]:
    """The study at a glance, and the claims of both papers."""
    every = corpora(experiment)
    studied = [*every, *tasks(experiment)]
    heads = runs(experiment, every, "baseline", "pruned")
    single = ablated(experiment, "single", names=studied)
    during = ablated(experiment, "systematic", "checkpoint", "baseline", names=studied)
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
            "models": described(experiment, heads),
            "ablated": described(experiment, single),
            "moments": described(experiment, during),
        },
    }
    if experiment.tasks:
        evidence["settings"] |= {"tasks": titles_of(experiment, tasks(experiment))}
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
        "settings": title_of(experiment, swept),
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


def _thresholds(experiment: Experiment, corpus: str) -> dict[str, float]:
    """What makes a function, by panel of the figure of their emergence."""
    heads = experiment.for_corpus(corpus).heads
    return {"neighbours": heads.positional_share, "syntactic": heads.syntactic_margin, "rare words": heads.rare_share}


def _swept(experiment: Experiment, *scopes: str) -> list[str]:
    """The corpus that a figure about pruning shows: the first with models that are pruned in one of these scopes."""
    pruned = corpora(experiment, pruned=True)
    return ([name for name in pruned if models(experiment, name, "pruned", scopes=scopes)] or pruned)[:1]


def ablated(experiment: Experiment, key: str, *kinds: str, names: Sequence[str] | None = None) -> list[Run]:
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
