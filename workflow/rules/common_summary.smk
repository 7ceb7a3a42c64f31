# Helpers of what sums an experiment up: all of its models, what each rule took, and what is made last.

from snakemake.io import regex_from_filepattern

# They tell of all jobs, so they are made after everything else; as all that is measured, they differ from run to run.
LAST = [f"results/{experiment.experiment}/tables/{name}.md" for name in ("run_times", "environment")]
# The kinds of models that have a log of their training.
TRAINED = ("baseline", "pruned", "scratch", "count", "regularised", "finetuned")


def listed(*kinds, **more):
    """Settings about the models of all corpora; `more`: functions of a corpus that say more of it."""
    found = [
        {"name": name, "title": title(name), "models": models(name, *kinds)}
        | {key: value(name) for key, value in more.items()}
        for name in corpora()
    ]
    return {"corpora": found, "seeds": experiment.seeds}


def decoding(corpus):
    return experiment.for_corpus(corpus).decoding.model_dump()


def of_models(name, *kinds):
    """Input function: one file of every model of every corpus."""
    path = "results/{experiment}/{corpus}/models/{model}/seed{seed}/{name}"
    return lambda w: [
        path.format(experiment=w.experiment, corpus=corpus, model=model, seed=seed, name=name)
        for corpus in corpora()
        for seed in experiment.seeds
        for model in models(corpus, *kinds)
    ]


def everything_else(wildcards):
    """All results but the ones that are made last. A measurement is no input: where it is lost, its job would run again."""
    return [file for file in everything() if file not in LAST]


def measured(wildcards):
    """Which files of an experiment are measurements of which rule's jobs."""
    patterns = {rule.name: str(rule.benchmark) for rule in workflow.rules if rule.benchmark}
    own = {name: pattern for name, pattern in patterns.items() if pattern.startswith("results/")}
    rules = {name: regex_from_filepattern(own[name]) for name in own if name not in ("run_times", "environment")}
    return json.dumps(listed(*KINDS) | {"rules": rules}, ensure_ascii=False)


def captions(names):
    """What the report says of these figures."""
    folder = Path(workflow.basedir) / "workflow" / "report"
    return [(folder / f"{name}.rst").read_text(encoding="utf-8").strip() for name in names]


def summary_targets():
    """What sums the experiment up."""
    results = f"results/{experiment.experiment}"
    files = [f"{results}/configuration.yaml"]
    files += [f"{results}/figures/{name}.pdf" for name in ("front", "training_curves")]
    return files + [f"{results}/tables/models.md", f"{results}/latex/figures.tex", *LAST]


PAPER_FIGURES = [f"figure{number}" for number in range(1, 11)]
PAPER_TABLES = ["table1", "table2"]
