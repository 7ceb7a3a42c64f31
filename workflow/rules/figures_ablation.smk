# Figures and tables of ablation and of pruning in order of importance (Michel et al. 2019).


def ablated(key):
    """The pruned corpora whose section `ablation` asks for `single` or `systematic`."""
    return [name for name in corpora(pruned=True) if getattr(experiment.for_corpus(name).ablation, key)]


def ablation_runs(key, *kinds, seeds):
    """The models that a figure or table shows: corpus, model, seed."""
    return [(corpus, model, seed) for corpus in ablated(key) for model in models(corpus, *kinds) for seed in seeds]


def ablation_files(folder, runs, suffix=""):
    """Input function: the tables of these models."""
    path = "results/{experiment}/{corpus}/{folder}/{model}/seed{seed}{suffix}.parquet"
    return lambda w: [
        path.format(experiment=w.experiment, corpus=corpus, folder=folder, model=model, seed=seed, suffix=suffix)
        for corpus, model, seed in runs
    ]


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


rule figure_ablation:
    input:
        tables=ablation_files("ablation", SINGLE_HEADS),
        code=code("specialized_heads.report.ablation"),
    output:
        **figure_outputs("ablation"),
    log:
        "results/{experiment}/logs/figure_ablation.log",
    benchmark:
        "results/{experiment}/benchmarks/figure_ablation.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(runs=described(SINGLE_HEADS)),
    shell:
        "python -m specialized_heads.report.ablation --tables {input.tables:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table_ablation:
    input:
        tables=ablation_files("ablation", SINGLE_HEADS),
        code=code("specialized_heads.report.ablation_table"),
    output:
        **table_outputs("ablation"),
    log:
        "results/{experiment}/logs/table_ablation.log",
    benchmark:
        "results/{experiment}/benchmarks/table_ablation.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(runs=described(SINGLE_HEADS)),
    shell:
        "python -m specialized_heads.report.ablation_table --tables {input.tables:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table_alone:
    input:
        tables=ablation_files("ablation", SINGLE_LAYERS),
        code=code("specialized_heads.report.alone"),
    output:
        **table_outputs("alone"),
    log:
        "results/{experiment}/logs/table_alone.log",
    benchmark:
        "results/{experiment}/benchmarks/table_alone.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(runs=described(SINGLE_LAYERS)),
    shell:
        "python -m specialized_heads.report.alone --tables {input.tables:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure_ablation_sets:
    input:
        tables=ablation_files("ablation", SINGLE_LAYERS),
        second=ablation_files("ablation", SINGLE_LAYERS, ".second"),
        code=code("specialized_heads.report.ablation_sets"),
    output:
        **figure_outputs("ablation_sets"),
    log:
        "results/{experiment}/logs/figure_ablation_sets.log",
    benchmark:
        "results/{experiment}/benchmarks/figure_ablation_sets.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(
            runs=described(SINGLE_LAYERS),
            second={title(corpus): second_name(corpus) for corpus in ablated("single")},
        ),
    shell:
        "python -m specialized_heads.report.ablation_sets --tables {input.tables:q} --second {input.second:q}"
        " --output {params.stem:q} --settings {params.settings:q} > {log:q} 2>&1"


rule figure_systematic:
    input:
        tables=ablation_files("systematic", SYSTEMATIC),
        code=code("specialized_heads.report.systematic"),
    output:
        **figure_outputs("systematic"),
    log:
        "results/{experiment}/logs/figure_systematic.log",
    benchmark:
        "results/{experiment}/benchmarks/figure_systematic.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(runs=described(SYSTEMATIC)),
    shell:
        "python -m specialized_heads.report.systematic --tables {input.tables:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure_moments:
    input:
        tables=ablation_files("systematic", MOMENTS),
        code=code("specialized_heads.report.moments"),
    output:
        **figure_outputs("moments"),
    log:
        "results/{experiment}/logs/figure_moments.log",
    benchmark:
        "results/{experiment}/benchmarks/figure_moments.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(runs=described(MOMENTS)),
    shell:
        "python -m specialized_heads.report.moments --tables {input.tables:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
