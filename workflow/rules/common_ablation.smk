# Helpers of ablation (Michel et al. 2019): what is ablated on which sets, and which figures and tables are made.


def decoded_settings(wildcards, **more):
    """What affects a translation and its score, and single values."""
    return settings(
        wildcards.corpus,
        "decoding",
        preprocess=experiment.for_corpus(wildcards.corpus).vocabulary.preprocess,
        language=experiment.corpora[wildcards.corpus].target_language,
        device=experiment.device,
        **more,
    )


def ablation_state(wildcards, output):
    """Where translations are kept that a kill must not lose: beside the output, which Snakemake deletes."""
    return output[0].removesuffix(".parquet") + ".state"


def second_tokens(wildcards):
    """The token ids of the other set on which single heads are ablated, cut by the BPE models of this corpus."""
    other = experiment.for_corpus(wildcards.corpus).ablation.second
    tokens = "results/{experiment}/{corpus}/corpus/tokens/"
    return tokens + ("dev.safetensors" if other == "dev" else f"test_of_{other}.safetensors")


def second_text(wildcards):
    """The text of that set."""
    other = experiment.for_corpus(wildcards.corpus).ablation.second
    return "results/{experiment}/" + (
        "{corpus}/corpus/dev.parquet" if other == "dev" else f"{other}/corpus/test.parquet"
    )


def ablated(key):
    """The pruned corpora whose section `ablation` asks for `single` or `systematic`."""
    return [name for name in corpora(pruned=True) if getattr(experiment.for_corpus(name).ablation, key)]


def ablation_runs(key, *kinds, seeds):
    """The models that a figure or table shows: corpus, model, seed."""
    return [(corpus, model, seed) for corpus in ablated(key) for model in models(corpus, *kinds) for seed in seeds]


def described(runs):
    """What the files are of, in their order: title of the corpus, seed, moment of training in updates."""
    return [
        {"corpus": title(corpus), "seed": seed, "moment": describe_model(model, seed)["moment"]}
        for corpus, model, seed in runs
    ]


def second_name(corpus):
    """What the figure calls the second set of a corpus."""
    second = experiment.for_corpus(corpus).ablation.second
    return "development set" if second == "dev" else f"test set of {title(second)}"


def ablation_targets():
    """Figures and tables of ablation, as far as the section `ablation` asks for them."""
    results = f"results/{experiment.experiment}"
    files = []
    if ablated("single"):
        files += [f"{results}/figures/{name}.pdf" for name in ("ablation", "ablation_sets")]
        files += [f"{results}/tables/{name}.md" for name in ("ablation", "alone")]
    if ablated("systematic"):
        files.append(f"{results}/figures/systematic.pdf")
    if len(ablation_runs("systematic", "checkpoint", seeds=experiment.seeds)):
        files.append(f"{results}/figures/moments.pdf")
    return files


# Heads of different seeds have nothing to do with each other: single heads are shown for the first one.
SINGLE_HEADS = ablation_runs("single", "baseline", seeds=[SEED])
SINGLE_LAYERS = ablation_runs("single", "baseline", seeds=experiment.seeds)
SYSTEMATIC = ablation_runs("systematic", "baseline", seeds=experiment.seeds)
MOMENTS = ablation_runs("systematic", "checkpoint", "baseline", seeds=experiment.seeds)
