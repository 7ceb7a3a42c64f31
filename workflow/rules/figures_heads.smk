# More about heads than the paper shows: agreement of relevance rules, drift of functions, survival, similarity.


rule drift:
    input:
        heads=of_swept("results/{experiment}/{corpus}/heads/{model}.parquet", swept(seeds=[SEED])),
        code=code("specialized_heads.report.drift"),
    output:
        **figure_outputs("drift"),
    log:
        "results/{experiment}/logs/drift.log",
    benchmark:
        "results/{experiment}/benchmarks/drift.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(
            names=swept(seeds=[SEED]),
            title=title(SWEPT[0]),
            relations=experiment.for_corpus(SWEPT[0]).heads.relations,
        ),
    shell:
        "python -m specialized_heads.report.drift --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule survival_figure:
    input:
        heads=of_swept("results/{experiment}/{corpus}/heads/{model}.parquet", survival_settings()["baselines"]),
        models=of_swept("results/{experiment}/{corpus}/models/{model}/model.json", survival_settings()["models"]),
        code=code("specialized_heads.report.survival"),
    output:
        **figure_outputs("survival"),
    log:
        "results/{experiment}/logs/survival_figure.log",
    benchmark:
        "results/{experiment}/benchmarks/survival_figure.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(**survival_settings()),
    shell:
        "python -m specialized_heads.report.survival --heads {input.heads:q} --models {input.models:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule survival_table:
    input:
        heads=of_swept("results/{experiment}/{corpus}/heads/{model}.parquet", survival_settings()["baselines"]),
        models=of_swept("results/{experiment}/{corpus}/models/{model}/model.json", survival_settings()["models"]),
        code=code("specialized_heads.report.survival_table"),
    output:
        **table_outputs("survival"),
    log:
        "results/{experiment}/logs/survival_table.log",
    benchmark:
        "results/{experiment}/benchmarks/survival_table.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(**survival_settings()),
    shell:
        "python -m specialized_heads.report.survival_table --heads {input.heads:q} --models {input.models:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule similarity_figure:
    input:
        pairs=of_corpora("results/{experiment}/{corpus}/heads/baseline/seed{seed}.similarity.parquet", PRIMARY),
        code=code("specialized_heads.report.similarity"),
    output:
        **figure_outputs("similarity"),
    log:
        "results/{experiment}/logs/similarity_figure.log",
    benchmark:
        "results/{experiment}/benchmarks/similarity_figure.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.similarity --pairs {input.pairs:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule persons:
    input:
        parses=of_corpora("results/{experiment}/{corpus}/parses/analysis.parquet", corpora()),
        code=code("specialized_heads.report.persons"),
    output:
        **table_outputs("persons"),
    log:
        "results/{experiment}/logs/persons.log",
    benchmark:
        "results/{experiment}/benchmarks/persons.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(
            titles=[title(name) for name in corpora()],
            languages=[experiment.corpora[name].source_language for name in corpora()],
        ),
    shell:
        "python -m specialized_heads.report.persons --parses {input.parses:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule relevance_rules:
    input:
        relevance=of_corpora("results/{experiment}/{corpus}/relevance/baseline/seed{seed}.parquet", SEVERAL_RULES),
        code=code("specialized_heads.report.relevance_rules"),
    output:
        **figure_outputs("relevance_rules"),
    log:
        "results/{experiment}/logs/relevance_rules.log",
    benchmark:
        "results/{experiment}/benchmarks/relevance_rules.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(SEVERAL_RULES),
    shell:
        "python -m specialized_heads.report.relevance_rules --relevance {input.relevance:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
