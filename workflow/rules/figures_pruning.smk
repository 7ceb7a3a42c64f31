# What gates did, and the controls of footnote 8: trajectories, dead heads, soft and hard gates side by side.


def pruning_targets():
    """Figures and tables of pruning with gates, for the corpora that are pruned."""
    pruned = [corpus for corpus in corpora(pruned=True) if models(corpus, "pruned")]
    if not pruned:
        return []
    results = f"results/{experiment.experiment}"
    files = [f"{results}/{corpus}/dead_heads.json" for corpus in pruned]
    files += [f"{results}/figures/gates.pdf", f"{results}/tables/dead_heads.md"]
    if any(models(corpus, "soft", "count", "regularised") for corpus in pruned):
        files.append(f"{results}/tables/controls.md")
    return files


def pruned_models(corpus):
    """The models that gates pruned, each with its seed, in the order of `scored_models`."""
    return [(name, seed) for seed in experiment.seeds for name in models(corpus, "pruned")]


def gated_series():
    """The models whose gates the figure shows: those of the first pruned corpus, one seed."""
    return [f"{name}/seed{SEED}" for corpus in corpora(pruned=True)[:1] for name in models(corpus, "pruned")]


def gates_settings(wildcards):
    """The title of the first pruned corpus, and what each of its models was pruned to."""
    described = [describe_model(name.rsplit("/", 1)[0], SEED) for name in gated_series()]
    rows = [{key: row[key] for key in ("scope", "lam", "asked")} for row in described]
    return json.dumps({"title": title(corpora(pruned=True)[0]), "rows": rows}, ensure_ascii=False)


rule dead_heads:
    input:
        gates=lambda w: [
            f"results/{w.experiment}/{w.corpus}/models/{name}/seed{seed}/gates.json"
            for name, seed in pruned_models(w.corpus)
        ],
        code=code("specialized_heads.pruning.dead_heads"),
    output:
        "results/{experiment}/{corpus}/dead_heads.json",
    log:
        "results/{experiment}/{corpus}/logs/dead_heads.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/dead_heads.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps(
            {"rows": [{"model": name, "seed": seed} for name, seed in pruned_models(w.corpus)]}
        ),
    shell:
        "python -m specialized_heads.pruning.dead_heads --gates {input.gates:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule dead_heads_table:
    input:
        dead=of_corpora("results/{experiment}/{corpus}/dead_heads.json", corpora(pruned=True)),
        code=code("specialized_heads.report.dead_heads"),
    output:
        **table_outputs("dead_heads"),
    log:
        "results/{experiment}/logs/dead_heads.log",
    benchmark:
        "results/{experiment}/benchmarks/dead_heads.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.dead_heads --dead {input.dead:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule controls:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)),
        code=code("specialized_heads.report.controls"),
    output:
        **table_outputs("controls"),
    log:
        "results/{experiment}/logs/controls.log",
    benchmark:
        "results/{experiment}/benchmarks/controls.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.controls --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule gates:
    input:
        records=lambda w: expand(
            "results/{experiment}/{corpus}/models/{model}/log.jsonl",
            experiment=w.experiment,
            corpus=corpora(pruned=True)[:1],
            model=gated_series(),
        ),
        code=code("specialized_heads.report.gates"),
    output:
        **figure_outputs("gates"),
    log:
        "results/{experiment}/logs/gates.log",
    benchmark:
        "results/{experiment}/benchmarks/gates.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=gates_settings,
    shell:
        "python -m specialized_heads.report.gates --records {input.records:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
