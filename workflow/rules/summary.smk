# What sums an experiment up: the study at a glance, all models and their training, the paper's set for LaTeX, and last what the
# jobs took, where, and with which software.


rule front:
    input:
        scores=of_corpora(SCORES, SWEPT),
        heads=of_swept("results/{experiment}/{corpus}/heads/{model}.parquet", swept(seeds=[SEED])),
        code=code("specialized_heads.report.front"),
    output:
        **figure_outputs("front"),
    log:
        "results/{experiment}/logs/front.log",
    benchmark:
        "results/{experiment}/benchmarks/front.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(names=swept(seeds=[SEED]), title=title(SWEPT[0])),
    shell:
        "python -m specialized_heads.report.front --scores {input.scores:q} --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule configuration:
    input:
        code=code("specialized_heads.report.configuration"),
    output:
        "results/{experiment}/configuration.yaml",
    log:
        "results/{experiment}/logs/configuration.log",
    benchmark:
        "results/{experiment}/benchmarks/configuration.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=fixed(**experiment.model_dump(mode="json")),
    shell:
        "python -m specialized_heads.report.configuration --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


rule training_curves:
    input:
        records=of_models("log.jsonl", *TRAINED),
        code=code("specialized_heads.report.training_curves"),
    output:
        **figure_outputs("training_curves"),
    log:
        "results/{experiment}/logs/training_curves.log",
    benchmark:
        "results/{experiment}/benchmarks/training_curves.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        results="results/{experiment}",
        settings=fixed(**listed(*TRAINED)),
    shell:
        "python -m specialized_heads.report.training_curves --results {params.results:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule models_table:
    input:
        scores=of_corpora(SCORES, corpora()),
        descriptions=of_models("model.json", *KINDS),
        records=of_models("log.jsonl", *TRAINED),
        code=code("specialized_heads.report.models"),
    output:
        **table_outputs("models"),
    log:
        "results/{experiment}/logs/models_table.log",
    benchmark:
        "results/{experiment}/benchmarks/models_table.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        results="results/{experiment}",
        settings=fixed(**listed(*KINDS, logged=lambda name: models(name, *TRAINED), decoding=decoding)),
    shell:
        "python -m specialized_heads.report.models --scores {input.scores:q} --results {params.results:q}"
        " --output {params.stem:q} --settings {params.settings:q} > {log:q} 2>&1"


rule latex:
    input:
        figures=expand("results/{{experiment}}/figures/{name}.pdf", name=PAPER_FIGURES),
        tables=expand("results/{{experiment}}/tables/{name}.tex", name=PAPER_TABLES),
        code=code("specialized_heads.report.latex"),
    output:
        "results/{experiment}/latex/figures.tex",
    log:
        "results/{experiment}/logs/latex.log",
    benchmark:
        "results/{experiment}/benchmarks/latex.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=fixed(captions=captions(PAPER_FIGURES)),
    shell:
        "python -m specialized_heads.report.latex --figures {input.figures:q} --tables {input.tables:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule run_times:
    input:
        results=everything_else,
        code=code("specialized_heads.report.run_times"),
    output:
        **table_outputs("run_times"),
    log:
        "results/{experiment}/logs/run_times.log",
    benchmark:
        "results/{experiment}/benchmarks/run_times.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        results="results/{experiment}",
        settings=measured,
    shell:
        "python -m specialized_heads.report.run_times --results {params.results:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule environment:
    input:
        results=everything_else,
        code=code("specialized_heads.report.environment"),
    output:
        **table_outputs("environment"),
    log:
        "results/{experiment}/logs/environment.log",
    benchmark:
        "results/{experiment}/benchmarks/environment.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=fixed(
            engines=[experiment.for_corpus(name).parser.engine for name in corpora()], device=experiment.device
        ),
    shell:
        "python -m specialized_heads.report.environment --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
