# Figures and tables of ablation and of pruning in order of importance (Michel et al. 2019).


rule figure_ablation:
    input:
        tables=tables_of("ablation", SINGLE_HEADS),
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
        tables=tables_of("ablation", SINGLE_HEADS),
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
        tables=tables_of("ablation", SINGLE_LAYERS),
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
        tables=tables_of("ablation", SINGLE_LAYERS),
        second=tables_of("ablation", SINGLE_LAYERS, ".second"),
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
        tables=tables_of("systematic", SYSTEMATIC),
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
        tables=tables_of("systematic", MOMENTS),
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
