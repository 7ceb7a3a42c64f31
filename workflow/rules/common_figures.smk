# Helpers of the rules for figures and tables: which files they read and write, and what they show.

# Figures of single heads show one model; heads of different seeds cannot be averaged.
SEED = experiment.seeds[0]
PRIMARY = corpora()[:1]


def swept_corpora(*scopes):
    """The corpus that a figure about pruning shows: the first with models that are pruned with one of these scopes."""
    return ([name for name in corpora(pruned=True) if models(name, "pruned", scopes=scopes)] or corpora(pruned=True))[
        :1
    ]


SWEPT = swept_corpora("encoder", "all") or PRIMARY
SWEPT_ENCODER = swept_corpora("encoder") or PRIMARY
RELATIONS = "results/{experiment}/{corpus}/parses/relations.parquet"
BASELINE_HEADS = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.parquet"
EXAMPLES = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.examples.json"
SCORES = "results/{experiment}/{corpus}/scores.parquet"
SPEED = "results/{experiment}/{corpus}/speed.seed{seed}.parquet"


# Under which category the report shows a result, and how it calls it. It sorts both as text; the figure spaces (U+2007) put
# Figure 2 before Figure 10.
SHOWN = {
    "Claims": {
        "figures/front": "At a glance",
        "claims": "Claims of both papers",
    },
    "Data": {
        "tables/data_card": "Data card",
        "tables/persons": "Persons of subjects",
    },
    "Figures and tables": {
        "figures/figure1": "Figure \u20071: relevance and function of each head",
        "figures/figure2": "Figure \u20072: the same, further corpora",
        "figures/figure3": "Figure \u20073: positions of dependents",
        "figures/figure4": "Figure \u20074: accuracy of syntactic heads",
        "figures/figure5": "Figure \u20075: attention of the rare-words head",
        "figures/figure6": "Figure \u20076: Hard Concrete distribution",
        "figures/figure7": "Figure \u20077: BLEU as encoder heads go",
        "figures/figure8": "Figure \u20078: functions of the heads left",
        "figures/figure9": "Figure \u20079: heads left by attention type",
        "figures/figure10": "Figure 10: heads left by layer",
        "tables/table1": "Table \u20071: syntactic heads",
        "tables/table2": "Table \u20072: pruned and from scratch",
    },
    "Heads": {
        "figures/drift": "Drift of functions",
        "figures/relevance_rules": "Rules of relevance",
        "figures/similarity": "Similarity of heads",
        "figures/survival": "Survival of heads",
        "tables/survival": "Survival of heads, table",
    },
    "Michel et al. (2019)": {
        "figures/ablation": "Single heads",
        "figures/ablation_sets": "Single heads on two test sets",
        "tables/ablation": "Single heads, table",
        "tables/alone": "One head alone in its layer",
        "figures/systematic": "Systematic pruning",
        "figures/moments": "Systematic pruning during training",
    },
    "Pruning": {
        "figures/agreement": "Agreement of criteria",
        "tables/agreement": "Agreement of criteria, table",
        "tables/controls": "Controls",
        "figures/criteria": "Criteria",
        "tables/criteria": "Criteria, table",
        "tables/dead_heads": "Dead heads",
        "figures/gates": "Gates during pruning",
        "tables/speed": "Speed",
    },
    "Runs": {
        "tables/environment": "Environment",
        "tables/models": "Models, scores, signatures",
        "tables/run_times": "Run times",
        "figures/training_curves": "Training curves",
    },
}


def shown(result, suffix):
    """The file of a figure or table that the report shows, with its caption."""
    [(category, label)] = [(category, labels[result]) for category, labels in SHOWN.items() if result in labels]
    caption = f"../report/{os.path.basename(result)}.rst"
    return report(
        f"results/{{experiment}}/{result}.{suffix}",
        caption=caption,
        category=category,
        labels={"Result": label},
    )


def figure_outputs(name):
    """A figure in its three formats, and its numbers; the report shows one of them."""
    stem = f"results/{{experiment}}/figures/{name}"
    return {"pdf": f"{stem}.pdf", "svg": f"{stem}.svg", "png": shown(f"figures/{name}", "png"), "csv": f"{stem}.csv"}


def table_outputs(name):
    """A table as Markdown, LaTeX and HTML, which the report shows, and its numbers."""
    stem = f"results/{{experiment}}/tables/{name}"
    html = shown(f"tables/{name}", "html")
    return {"markdown": f"{stem}.md", "latex": f"{stem}.tex", "html": html, "csv": f"{stem}.csv"}


def shown_stem(wildcards, output):
    """The path of a figure or table without its suffix."""
    return output.csv.removesuffix(".csv")


def of_corpora(path, names):
    """Input function: one file of each of these corpora, shown in the order of the configuration."""
    return lambda w: expand(path, experiment=w.experiment, corpus=names, seed=SEED)


def tables_of(folder, runs, suffix=""):
    """Input function: the tables in a folder of these models, each given as corpus, model, seed."""
    path = "results/{experiment}/{corpus}/{folder}/{model}/seed{seed}{suffix}.parquet"
    return lambda w: [
        path.format(experiment=w.experiment, corpus=corpus, folder=folder, model=model, seed=seed, suffix=suffix)
        for corpus, model, seed in runs
    ]


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
    return [f"{model}/seed{SEED}" for model in models(SWEPT_ENCODER[0], "baseline", "pruned", scopes=["encoder"])]
