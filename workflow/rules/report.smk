# The paper's figures and tables. Each reads a few tables of results, and writes the numbers that it shows beside it.


rule figure1:
    input:
        heads=of_corpora(BASELINE_HEADS, PRIMARY),
        code=code("specialized_heads.report.figure1"),
    output:
        **figure_outputs("figure1"),
    log:
        "results/{experiment}/logs/figure1.log",
    benchmark:
        "results/{experiment}/benchmarks/figure1.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure1 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure2:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()[1:]),
        code=code("specialized_heads.report.figure2"),
    output:
        **figure_outputs("figure2"),
    log:
        "results/{experiment}/logs/figure2.log",
    benchmark:
        "results/{experiment}/benchmarks/figure2.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()[1:]),
    shell:
        "python -m specialized_heads.report.figure2 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure3:
    input:
        relations=of_corpora(RELATIONS, PRIMARY),
        code=code("specialized_heads.report.figure3"),
    output:
        **figure_outputs("figure3"),
    log:
        "results/{experiment}/logs/figure3.log",
    benchmark:
        "results/{experiment}/benchmarks/figure3.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure3 --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure4:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()),
        relations=of_corpora(RELATIONS, corpora()),
        code=code("specialized_heads.report.figure4"),
    output:
        **figure_outputs("figure4"),
    log:
        "results/{experiment}/logs/figure4.log",
    benchmark:
        "results/{experiment}/benchmarks/figure4.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()),
    shell:
        "python -m specialized_heads.report.figure4 --heads {input.heads:q} --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure5:
    input:
        examples=of_corpora(EXAMPLES, PRIMARY),
        code=code("specialized_heads.report.figure5"),
    output:
        **figure_outputs("figure5"),
    log:
        "results/{experiment}/logs/figure5.log",
    benchmark:
        "results/{experiment}/benchmarks/figure5.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure5 --examples {input.examples:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure6:
    input:
        code=code("specialized_heads.report.figure6"),
    output:
        **figure_outputs("figure6"),
    log:
        "results/{experiment}/logs/figure6.log",
    benchmark:
        "results/{experiment}/benchmarks/figure6.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
    shell:
        "python -m specialized_heads.report.figure6 --output {params.stem:q}" " > {log:q} 2>&1"


rule figure7:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)),
        code=code("specialized_heads.report.figure7"),
    output:
        **figure_outputs("figure7"),
    log:
        "results/{experiment}/logs/figure7.log",
    benchmark:
        "results/{experiment}/benchmarks/figure7.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.figure7 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure8:
    input:
        heads=lambda w: expand(
            "results/{experiment}/{corpus}/heads/{model}.parquet",
            experiment=w.experiment,
            corpus=SWEPT_ENCODER,
            model=encoder_series(),
        ),
        code=code("specialized_heads.report.figure8"),
    output:
        **figure_outputs("figure8"),
    log:
        "results/{experiment}/logs/figure8.log",
    benchmark:
        "results/{experiment}/benchmarks/figure8.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(names=encoder_series(), title=title(SWEPT_ENCODER[0])),
    shell:
        "python -m specialized_heads.report.figure8 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure9:
    input:
        scores=of_corpora(SCORES, swept_corpora("all")),
        code=code("specialized_heads.report.figure9"),
    output:
        **figure_outputs("figure9"),
    log:
        "results/{experiment}/logs/figure9.log",
    benchmark:
        "results/{experiment}/benchmarks/figure9.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(swept_corpora("all")),
    shell:
        "python -m specialized_heads.report.figure9 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure10:
    input:
        scores=of_corpora(SCORES, swept_corpora("all")),
        code=code("specialized_heads.report.figure10"),
    output:
        **figure_outputs("figure10"),
    log:
        "results/{experiment}/logs/figure10.log",
    benchmark:
        "results/{experiment}/benchmarks/figure10.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(swept_corpora("all")),
    shell:
        "python -m specialized_heads.report.figure10 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table1:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()),
        relations=of_corpora(RELATIONS, corpora()),
        code=code("specialized_heads.report.table1"),
    output:
        **table_outputs("table1"),
    log:
        "results/{experiment}/logs/table1.log",
    benchmark:
        "results/{experiment}/benchmarks/table1.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()),
    shell:
        "python -m specialized_heads.report.table1 --heads {input.heads:q} --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table2:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)),
        code=code("specialized_heads.report.table2"),
    output:
        **table_outputs("table2"),
    log:
        "results/{experiment}/logs/table2.log",
    benchmark:
        "results/{experiment}/benchmarks/table2.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.table2 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule data_card:
    input:
        cards=of_corpora("results/{experiment}/{corpus}/corpus/raw.json", corpora()),
        counts=of_corpora("results/{experiment}/{corpus}/corpus/counts.json", corpora()),
        code=code("specialized_heads.report.data_card"),
    output:
        **table_outputs("data_card"),
    log:
        "results/{experiment}/logs/data_card.log",
    benchmark:
        "results/{experiment}/benchmarks/data_card.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()),
    shell:
        "python -m specialized_heads.report.data_card --cards {input.cards:q} --counts {input.counts:q}"
        " --output {params.stem:q} --settings {params.settings:q} > {log:q} 2>&1"


rule speed:
    input:
        speed=of_corpora(SPEED, timed_corpora()),
        code=code("specialized_heads.report.speed"),
    output:
        **table_outputs("speed"),
    log:
        "results/{experiment}/logs/speed.log",
    benchmark:
        "results/{experiment}/benchmarks/speed.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(timed_corpora()),
    shell:
        "python -m specialized_heads.report.speed --speed {input.speed:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
