# What gates did, and the controls of footnote 8: trajectories, dead heads, soft and hard gates side by side.


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
            "results/{experiment}/{corpus}/models/{model}/seed{seed}/log.jsonl",
            experiment=w.experiment,
            corpus=GATED,
            model=models(GATED, "pruned"),
            seed=SEED,
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
