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
from specialized_heads.planning.models import KINDS, TRAINED, Run, columns, corpora, emerging, models, paths, runs

# Categories of the report, which sorts them, and the labels within each, as text.
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
    of: Sequence[Run | str] = (),
    *,
    module: str = "",
    rule: str = "",
    outputs: dict[str, str] | None = None,
    needs: list[str] | None = None,
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
        of: the corpora or runs that it shows.
        module: see `stem`.
        rule: see `stem`.
        outputs: the paths by argument, for a module that makes two results.
        needs: files that must exist first and that no argument names.
        folder: pass the experiment's folder as `--results`.
        settings: unless given, the titles of the corpora in `of`.
        wanted: whether it is made where no target is named.
        inputs: by argument, the files, or a pattern for the path of one file for each of `of`.
    """
    name = PurePosixPath(stem).name
    files = {flag: paths(experiment, each, of) if isinstance(each, str) else each for flag, each in inputs.items()}
    return Result(
        rule=rule or name,
        module=f"{package}.{module or name}",
        category=category,
        label=label,
        caption=name,
        outputs=outputs or {"output": stem},
        inputs=files,
        needs=needs or [],
        folder=folder,
        settings={"titles": _titles(experiment, of)} if settings is None else settings,
        wanted=wanted,
    )


def arguments(experiment: Experiment, result: Result) -> list[str]:
    """The command line of a module for a result, without its settings."""
    folder = f"results/{experiment.experiment}"
    outputs = {name: [f"{folder}/{stem}"] for name, stem in result.outputs.items()}
    named = result.inputs | outputs | ({"results": [folder]} if result.folder else {})
    return [part for name, files in named.items() if files for part in (f"--{name}", *files)]


def results(experiment: Experiment) -> list[Result]:
    """Every figure and table but those that sum up the run itself, which are in `last_results`."""
    parts = (_claims, _data, _paper, _functions, _michel, _pruning, _runs)
    return [result for part in parts for result in part(experiment)]


def last_results(experiment: Experiment, everything_else: list[str]) -> list[Result]:
    """The tables about all jobs. They are made last and, as all that is measured, differ from run to run."""
    last = partial(row, experiment, "beyond", RUNS, needs=everything_else)
    engines = [experiment.for_corpus(name).parser.engine for name in corpora(experiment)]
    machine = {"engines": engines, "device": experiment.device}
    return [
        last("tables/run_times", "Run times", folder=True, settings=_listed(experiment, *KINDS)),
        last("tables/environment", "Environment", settings=machine),
    ]


def _paper(experiment: Experiment) -> list[Result]:
    """The paper's figures and tables. Figure spaces (U+2007) sort figure 2 before figure 10."""
    paper = partial(row, experiment, "voita", PAPER)
    every, pruned = corpora(experiment), corpora(experiment, pruned=True)
    first, others, swept = every[:1], every[1:], _swept(experiment, "all")
    encoder = _swept(experiment, "encoder") or first
    series = runs(experiment, encoder, "baseline", "pruned", scopes=["encoder"], seeds=experiment.seeds[:1])
    figure8 = {"names": _names(series), "title": _titles(experiment, encoder)[0]}
    both = {"heads": HEADS, "relations": RELATIONS}
    return [
        paper("figures/figure1", "Figure \u20071: relevance and function of each head", first, heads=HEADS),
        paper("figures/figure2", "Figure \u20072: the same, further corpora", others, heads=HEADS),
        paper("figures/figure3", "Figure \u20073: positions of dependents", first, relations=RELATIONS),
        paper("figures/figure4", "Figure \u20074: accuracy of syntactic heads", every, **both),
        paper("figures/figure5", "Figure \u20075: attention of the rare-words head", first, examples=EXAMPLES),
        paper("figures/figure6", "Figure \u20076: Hard Concrete distribution", settings={}),
        paper("figures/figure7", "Figure \u20077: BLEU as encoder heads go", pruned, scores=SCORES),
        paper("figures/figure8", "Figure \u20078: functions of the heads left", series, heads=HEADS, settings=figure8),
        paper("figures/figure9", "Figure \u20079: heads left by attention type", swept, scores=SCORES),
        paper("figures/figure10", "Figure 10: heads left by layer", swept, scores=SCORES),
        paper("tables/table1", "Table \u20071: syntactic heads", every, **both),
        paper("tables/table2", "Table \u20072: pruned and from scratch", pruned, scores=SCORES),
    ]


def _data(experiment: Experiment) -> list[Result]:
    """The text and its trees."""
    data = partial(row, experiment, "beyond", DATA)
    every = corpora(experiment)
    languages = [experiment.corpora[name].source_language for name in every]
    persons = {"titles": _titles(experiment, every), "languages": languages}
    return [
        data("tables/data_card", "Data card", every, cards=CARD, counts=COUNTS),
        data("tables/persons", "Persons of subjects", every, parses=PARSES, settings=persons),
    ]


def _functions(experiment: Experiment) -> list[Result]:
    """More about heads than the paper shows: drift of functions, survival, similarity, agreement of relevance rules."""
    functions = partial(row, experiment, "beyond", FUNCTIONS)
    every = corpora(experiment)
    swept = _swept(experiment, "encoder", "all") or every[:1]
    title, relations = _titles(experiment, swept)[0], experiment.for_corpus(swept[0]).heads.relations
    first_seed = runs(experiment, swept, "baseline", "pruned", seeds=experiment.seeds[:1])
    drift = {"names": _names(first_seed), "title": title, "relations": relations}
    baselines, pruned = runs(experiment, swept, "baseline"), runs(experiment, swept, "pruned")
    survival = {"baselines": _names(baselines), "models": _names(pruned), "title": title}
    several = [name for name in every if len(experiment.for_corpus(name).heads.relevance_rules) > 1]
    every_baseline = runs(experiment, every, "baseline")
    reached = {"baselines": [_corpus_and_seed(experiment, run) for run in every_baseline]}
    checkpoints = emerging(experiment)
    followed = runs(experiment, dict.fromkeys(run.corpus for run in checkpoints), "baseline")
    moments = [
        _corpus_and_seed(experiment, run) | {"moment": _update(experiment, run)} for run in checkpoints + followed
    ]
    curves = {"moments": moments, "trainings": [_corpus_and_seed(experiment, run) for run in followed]}
    emergence: dict[str, Any] = {
        "heads": paths(experiment, HEADS, checkpoints + followed),
        "records": paths(experiment, LOG, followed),
        "wanted": bool(checkpoints),
    }
    thresholds = {"thresholds": _thresholds(experiment, every[0])}
    return [
        functions("tables/functions", "Functions", every_baseline, heads=HEADS, records=LOG, settings=reached),
        functions("figures/emergence", "Emergence of functions", settings=curves | thresholds, **emergence),
        functions(
            "tables/emergence",
            "Emergence of functions, table",
            module="emergence_table",
            rule="emergence_table",
            settings=curves,
            **emergence,
        ),
        functions("figures/drift", "Drift of functions", first_seed, heads=HEADS, settings=drift),
        functions(
            "figures/survival",
            "Survival of heads",
            rule="survival_of_heads",
            outputs=_both("survival"),
            heads=paths(experiment, HEADS, baselines),
            models=paths(experiment, DESCRIPTION, pruned),
            settings=survival,
        ),
        functions("figures/similarity", "Similarity of heads", every[:1], rule="similarity_figure", pairs=SIMILARITY),
        functions("figures/relevance_rules", "Rules of relevance", several, relevance=RELEVANCE, wanted=bool(several)),
    ]


def _pruning(experiment: Experiment) -> list[Result]:
    """Gates and their controls, criteria for the heads to keep, and speed."""
    pruning = partial(row, experiment, "beyond", PRUNING)
    pruned = corpora(experiment, pruned=True)
    gated = [name for name in pruned if models(experiment, name, "pruned")]
    # The figure of gates shows one corpus; if no corpus has any gates, it says so.
    shown = (gated or corpora(experiment))[:1]
    logs = runs(experiment, shown, "pruned", seeds=experiment.seeds[:1])
    rows = [{key: columns(run.model)[key] for key in ("scope", "lam", "asked")} for run in logs]
    gates = {"title": _titles(experiment, shown)[0], "rows": rows}
    controlled = any(models(experiment, name, "soft", "count", "regularised") for name in pruned)
    compared = [name for name in pruned if models(experiment, name, "cut")]
    tables = [Run(name, "baseline", seed) for name in compared for seed in experiment.seeds]
    timed = [name for name in pruned if experiment.for_corpus(name).pruning.speed]
    timed = [name for name in timed if models(experiment, name, "pruned", scopes=["encoder"])]

    criteria = {"outputs": _both("criteria"), "wanted": bool(compared)}
    agreement = {
        "settings": {"runs": _described(experiment, tables)},
        "outputs": _both("agreement"),
        "wanted": bool(compared),
    }
    return [
        pruning("figures/gates", "Gates during pruning", logs, records=LOG, settings=gates, wanted=bool(gated)),
        pruning("tables/dead_heads", "Dead heads", pruned, rule="dead_heads_table", dead=DEAD, wanted=bool(gated)),
        pruning("tables/controls", "Controls", pruned, scores=SCORES, wanted=controlled),
        pruning("figures/criteria", "Criteria", compared, scores=SCORES, **criteria),
        pruning("figures/agreement", "Agreement of criteria", tables, criteria=CRITERIA, **agreement),
        pruning("tables/speed", "Speed", timed, speed=SPEED, wanted=bool(timed)),
    ]


def _michel(experiment: Experiment) -> list[Result]:
    """Ablation of single heads, and pruning in order of importance (Michel et al. 2019)."""
    michel = partial(row, experiment, "michel", MICHEL)
    single, systematic = _ablated(experiment, "single"), _ablated(experiment, "systematic")
    during = _ablated(experiment, "systematic", "checkpoint", "baseline")
    # Heads of different seeds have nothing to do with each other: single heads are shown for the first one.
    heads = [run for run in single if run.seed == experiment.seeds[0]]
    second = {experiment.corpora[run.corpus].title: _second_name(experiment, run.corpus) for run in single}
    sets = {"runs": _described(experiment, single), "second_names": second}

    def of(shown: list[Run]) -> dict[str, Any]:
        return {"of": shown, "settings": {"runs": _described(experiment, shown)}, "wanted": bool(shown)}

    return [
        michel(
            "figures/ablation",
            "Single heads",
            rule="single_heads",
            outputs=_both("ablation"),
            tables=ABLATION,
            **of(heads),
        ),
        michel("tables/alone", "One head alone in its layer", rule="table_alone", tables=ABLATION, **of(single)),
        michel(
            "figures/ablation_sets",
            "Single heads on two test sets",
            rule="figure_ablation_sets",
            tables=ABLATION,
            second=SECOND,
            **of(single) | {"settings": sets},
        ),
        michel(
            "figures/systematic", "Systematic pruning", rule="figure_systematic", tables=SYSTEMATIC, **of(systematic)
        ),
        michel(
            "figures/moments",
            "Systematic pruning during training",
            rule="figure_moments",
            tables=SYSTEMATIC,
            **of(during) | {"wanted": len(during) > len(systematic)},
        ),
    ]


def _claims(experiment: Experiment) -> list[Result]:
    """The study at a glance, and the claims of both papers."""
    every = corpora(experiment)
    swept = _swept(experiment, "encoder", "all") or every[:1]
    first_seed = runs(experiment, swept, "baseline", "pruned", seeds=experiment.seeds[:1])
    heads = [
        Run(corpus, model, seed)
        for corpus in every
        for model in models(experiment, corpus, "baseline", "pruned")
        for seed in experiment.seeds
    ]
    single, during = _ablated(experiment, "single"), _ablated(experiment, "systematic", "checkpoint", "baseline")
    keys = ("kind", "scope", "lam", "asked")
    claims = {
        "titles": _titles(experiment, every),
        "corpora": [_claimed(experiment, name) for name in every],
        "models": [
            {"corpus": experiment.corpora[run.corpus].title, "seed": run.seed}
            | {key: columns(run.model)[key] for key in keys}
            for run in heads
        ],
        "runs": _described(experiment, single),
        "moments": _described(experiment, during),
    }
    return [
        row(
            experiment,
            "beyond",
            CLAIMS,
            "figures/front",
            "At a glance",
            scores=paths(experiment, SCORES, swept),
            heads=paths(experiment, HEADS, first_seed),
            settings={"names": _names(first_seed), "title": _titles(experiment, swept)[0]},
        ),
        row(
            experiment,
            "claims",
            CLAIMS,
            "claims",
            "Claims of both papers",
            module="table",
            scores=paths(experiment, SCORES, every),
            heads=paths(experiment, HEADS, heads),
            single=paths(experiment, ABLATION, single),
            second=paths(experiment, SECOND, single),
            systematic=paths(experiment, SYSTEMATIC, during),
            settings=claims,
        ),
    ]


def _runs(experiment: Experiment) -> list[Result]:
    """All models and their training."""
    listed = partial(row, experiment, "beyond", RUNS, folder=True)
    every = corpora(experiment)
    logs = paths(experiment, LOG, runs(experiment, every, *TRAINED))
    needs = paths(experiment, DESCRIPTION, runs(experiment, every, *KINDS)) + logs
    listing = _listed(experiment, *KINDS) | {"titles": _titles(experiment, every)}
    for corpus in listing["corpora"]:
        corpus["logged"] = models(experiment, corpus["name"], *TRAINED)
        corpus["decoding"] = experiment.for_corpus(corpus["name"]).decoding.model_dump()
    label = "Models, scores, signatures"
    return [
        listed("tables/models", label, every, rule="models_table", scores=SCORES, needs=needs, settings=listing),
        listed("figures/training_curves", "Training curves", needs=logs, settings=_listed(experiment, *TRAINED)),
    ]


def _both(name: str) -> dict[str, str]:
    """The outputs of a module that makes a figure and a table."""
    return {"figure": f"figures/{name}", "table": f"tables/{name}"}


def _titles(experiment: Experiment, items: Iterable[Run | str]) -> list[str]:
    """The titles of the corpora of these runs, or of these corpora."""
    return [experiment.corpora[item if isinstance(item, str) else item.corpus].title for item in items]


def _corpus_and_seed(experiment: Experiment, run: Run) -> dict[str, Any]:
    return {"corpus": experiment.corpora[run.corpus].title, "seed": run.seed}


def _update(experiment: Experiment, run: Run) -> Any:
    """The update of its training that a baseline, or a checkpoint of it, is of."""
    return columns(run.model)["moment"] or experiment.for_corpus(run.corpus).training.updates


def _thresholds(experiment: Experiment, corpus: str) -> dict[str, float]:
    """What makes a function, by panel of the figure of their emergence."""
    heads = experiment.for_corpus(corpus).heads
    return {
        "neighbours": heads.positional_share,
        "syntactic": heads.syntactic_margin,
        "rare words": heads.rare_share,
    }


def _names(shown: Iterable[Run]) -> list[str]:
    return [f"{run.model}/seed{run.seed}" for run in shown]


def _swept(experiment: Experiment, *scopes: str) -> list[str]:
    """The corpus that a figure about pruning shows: the first with models that are pruned in one of these scopes."""
    pruned = corpora(experiment, pruned=True)
    return ([name for name in pruned if models(experiment, name, "pruned", scopes=scopes)] or pruned)[:1]


def _ablated(experiment: Experiment, key: str, *kinds: str) -> list[Run]:
    """The models whose heads are ablated: baselines unless said otherwise; `key`: single or systematic."""
    return [
        Run(corpus, model, seed)
        for corpus in corpora(experiment, pruned=True)
        if getattr(experiment.for_corpus(corpus).ablation, key)
        for model in models(experiment, corpus, *(kinds or ("baseline",)))
        for seed in experiment.seeds
    ]


def _described(experiment: Experiment, shown: Iterable[Run]) -> list[dict[str, Any]]:
    """Runs by title of the corpus, seed, and updates of training (None: the finished model)."""
    return [_corpus_and_seed(experiment, run) | {"moment": columns(run.model)["moment"]} for run in shown]


def _second_name(experiment: Experiment, corpus: str) -> str:
    """How a figure names the second set on which the heads of a corpus are ablated."""
    second = experiment.for_corpus(corpus).ablation.second
    return "development set" if second == "dev" else f"test set of {experiment.corpora[second].title}"


def _claimed(experiment: Experiment, corpus: str) -> dict[str, Any]:
    """What claims need to know of a corpus; `stands_for`: the corpus of the paper with its source and languages, if any."""
    values = experiment.corpora[corpus]
    same = (values.source_language, values.target_language) == ("en", "ru")
    paper = values.source.kind if same and values.source.kind in ("wmt", "opensubtitles") else ""
    heads = experiment.for_corpus(corpus).heads.model_dump(include={"least_arcs"})
    return {"title": values.title, "stands_for": paper, "pruned": values.prune} | heads


def _listed(experiment: Experiment, *kinds: str) -> dict[str, Any]:
    """The models of all corpora, and the seeds."""
    listed = [
        {"name": name, "title": experiment.corpora[name].title, "models": models(experiment, name, *kinds)}
        for name in corpora(experiment)
    ]
    return {"corpora": listed, "seeds": experiment.seeds}
