# All that was measured, in five tables, and every figure and table: functions of these. Then the
# configuration as it was used, and the page of all results.


use rule stage as gather with:
    input:
        planned(figures.table_files),
    output:
        "results/{experiment}/data/{table}.parquet",
    log:
        "results/{experiment}/logs/gather_{table}.log",
    benchmark:
        "results/{experiment}/benchmarks/gather_{table}.tsv"
    group:
        "figures"
    params:
        **stage("report.gather table", figures.table_settings),


# Draws any of the figures that src/specialized_heads/experiment/figures.py lists.
rule figure:
    input:
        unpack(planned(figures.files)),
        data=expand("results/{{experiment}}/data/{table}.parquet", table=figures.TABLES),
    output:
        shown("results/{experiment}/{stem}.png"),
        "results/{experiment}/{stem}.pdf",
        csv="results/{experiment}/{stem}.csv",
    log:
        "results/{experiment}/logs/{stem}.log",
    benchmark:
        "results/{experiment}/benchmarks/{stem}.tsv"
    wildcard_constraints:
        stem=any_of(stem for stem in figures.BY_STEM if stem.startswith("figures/")),
    group:
        "figures"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=figure_code,
        module=lambda wildcards: f"specialized_heads.report.{figures.BY_STEM[wildcards.stem].module}".split(),
        caption=lambda wildcards: figures.BY_STEM[wildcards.stem].caption,
        flags=figure_flags,
        settings=as_json(figures.settings),
    shell:
        "python -m specialized_heads.report.make {params.module:q} {params.flags:q} "
        "--settings {params.settings:q} > {log:q} 2>&1"


use rule figure as table with:
    output:
        shown("results/{experiment}/{stem}.html"),
        "results/{experiment}/{stem}.md",
        csv="results/{experiment}/{stem}.csv",
    wildcard_constraints:
        stem=any_of(stem for stem in figures.BY_STEM if not stem.startswith("figures/")),


use rule stage as configuration with:
    output:
        "results/{experiment}/configuration.yaml",
    log:
        "results/{experiment}/logs/configuration.log",
    benchmark:
        "results/{experiment}/benchmarks/configuration.tsv"
    group:
        "figures"
    params:
        module="report.gather configuration".split(),
        code=code("report.gather"),
        digest=hashlib.sha256(experiment.model_dump_json().encode()).hexdigest(),
        # Since it takes `output`, Snakemake neither compares nor prints it, twice, for each change.
        settings=lambda wildcards, output: json.dumps(
            experiment.model_dump(mode="json"), ensure_ascii=False
        ),


use rule stage as index with:
    input:
        planned(figures.shown_files),
        models="results/{experiment}/data/models.parquet",
        claims="results/{experiment}/claims.csv",
    output:
        "results/{experiment}/index.html",
        "results/{experiment}/summary.txt",
    log:
        "results/{experiment}/logs/index.log",
    benchmark:
        "results/{experiment}/benchmarks/index.tsv"
    group:
        "figures"
    params:
        **stage("report.index", figures.page_settings, data=("../assets/page.css",)),
