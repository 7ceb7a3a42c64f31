# Helpers of the rules for figures and tables: which files they read and write, and what they show.

# Figures of single heads show one model; heads of different seeds cannot be averaged.
SEED = experiment.seeds[0]
PRIMARY = corpora()[:1]
# What is about pruning shows the first corpus that is pruned.
SWEPT = corpora(pruned=True)[:1] or PRIMARY
RELATIONS = "results/{experiment}/{corpus}/parses/relations.parquet"
BASELINE_HEADS = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.parquet"
EXAMPLES = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.examples.json"
SCORES = "results/{experiment}/{corpus}/scores.parquet"
SPEED = "results/{experiment}/{corpus}/speed.seed{seed}.parquet"


def figure_outputs(name):
    """A figure in its three formats, and its numbers; the report shows one of them."""
    stem = f"results/{{experiment}}/figures/{name}"
    shown = report(f"{stem}.png", caption=f"../report/{name}.rst", category="Figures")
    return {"pdf": f"{stem}.pdf", "svg": f"{stem}.svg", "png": shown, "csv": f"{stem}.csv"}


def table_outputs(name):
    """A table as Markdown and LaTeX, and its numbers, which the report shows."""
    stem = f"results/{{experiment}}/tables/{name}"
    shown = report(f"{stem}.csv", caption=f"../report/{name}.rst", category="Tables")
    return {"markdown": f"{stem}.md", "latex": f"{stem}.tex", "csv": shown}


def shown_stem(wildcards, output):
    """The path of a figure or table without its suffix."""
    return output.csv.removesuffix(".csv")


def of_corpora(path, names):
    """Input function: one file of each of these corpora, shown in the order of the configuration."""
    return lambda w: expand(path, experiment=w.experiment, corpus=names, seed=SEED)


def fixed(**values):
    """Settings that do not depend on wildcards, as a function: in text, Snakemake would take {name} for a wildcard."""
    return lambda wildcards: json.dumps(values, ensure_ascii=False)


def titles(names):
    """Settings of a figure that shows these corpora."""
    return fixed(titles=[title(name) for name in names])


def timed_corpora():
    """The corpora whose encoder-pruned models are timed."""
    timed = [name for name in corpora(pruned=True) if experiment.for_corpus(name).pruning.speed]
    return [name for name in timed if models(name, "pruned", scopes=["encoder"])]


def encoder_series():
    """The models whose surviving heads figure 8 shows: the baseline and the encoder-pruned ones of a corpus."""
    return [f"{model}/seed{SEED}" for model in models(SWEPT[0], "baseline", "pruned", scopes=["encoder"])]
