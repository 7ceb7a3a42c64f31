# Helpers of the analysis of heads: settings, the pages of the viewer, and which figures and tables are made.


def analysis_settings(wildcards):
    """The keys of the section heads that functions depend on, and how the text is read."""
    values = experiment.for_corpus(wildcards.corpus)
    keys = {
        "relations",
        "positional_share",
        "syntactic_margin",
        "least_arcs",
        "rare_cutoff",
        "rare_share",
        "from_word",
        "bootstrap",
    }
    return json.dumps(
        {
            "heads": values.heads.model_dump(include=keys),
            "preprocess": values.vocabulary.preprocess,
            "language": experiment.corpora[wildcards.corpus].source_language,
            "seed": int(wildcards.seed),
            "device": experiment.device,
        },
        ensure_ascii=False,
    )


def heads_targets():
    """Figures and tables of the functions of heads beyond the paper."""
    results = f"results/{experiment.experiment}"
    return [
        f"{results}/figures/drift.pdf",
        f"{results}/figures/survival.pdf",
        f"{results}/figures/similarity.pdf",
        f"{results}/tables/survival.md",
        f"{results}/tables/persons.md",
        *([f"{results}/figures/relevance_rules.pdf"] if SEVERAL_RULES else []),
    ]


# Rules are compared where there are several; an `override` may give a corpus its own.
SEVERAL_RULES = [name for name in corpora() if len(experiment.for_corpus(name).heads.relevance_rules) > 1]


def swept(*, seeds):
    """The baseline and the models pruned with gates, of both scopes, each with its seed."""
    return [f"{model}/seed{seed}" for seed in seeds for model in models(SWEPT[0], "baseline", "pruned")]


def of_swept(path, names):
    """Input function: one file of each of these models."""
    return lambda w: expand(path, experiment=w.experiment, corpus=SWEPT, model=names)


def survival_settings():
    """Names of the baselines and of the pruned models, of all seeds."""
    names = swept(seeds=experiment.seeds)
    baselines = [name for name in names if name.startswith("baseline")]
    pruned = [name for name in names if name not in baselines]
    return {"baselines": baselines, "models": pruned, "title": title(SWEPT[0])}


PAGE = "results/{experiment}/viewer/{corpus}/{model}/seed{seed}.html"


def viewed():
    """The pages, as (corpus, model): of the baseline and the pruned models, first seed, where sentences are asked for."""
    return [
        (corpus, model)
        for corpus in corpora()
        if experiment.for_corpus(corpus).heads.viewer_sentences
        for model in models(corpus, "baseline", "pruned")
    ]


def viewed_files(path):
    """Input function: one file of each model that has a page."""
    return lambda w: [path.format(experiment=w.experiment, corpus=c, model=m, seed=SEED) for c, m in viewed()]


def viewer_files(*names):
    """The files that a page is put together from."""
    return [os.path.relpath(SOURCE / "specialized_heads" / "viewer" / name) for name in names]


def viewer_targets():
    """The page that leads to all pages."""
    return [f"results/{experiment.experiment}/viewer/index.html"] if viewed() else []
