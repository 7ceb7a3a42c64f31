# The claims of both papers beside what the experiment shows.


rule claims:
    input:
        scores=of_corpora(SCORES, corpora()),
        heads=tables_of("heads", claimed_heads()),
        single=tables_of("ablation", SINGLE_LAYERS),
        second=tables_of("ablation", SINGLE_LAYERS, ".second"),
        systematic=tables_of("systematic", MOMENTS),
        code=code("specialized_heads.report.claims.table"),
    output:
        markdown="results/{experiment}/claims.md",
        latex="results/{experiment}/claims.tex",
        html=shown("claims", "html"),
        csv="results/{experiment}/claims.csv",
    log:
        "results/{experiment}/logs/claims.log",
    benchmark:
        "results/{experiment}/benchmarks/claims.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=claims_settings,
    shell:
        "python -m specialized_heads.report.claims.table --scores {input.scores:q} --heads {input.heads:q}"
        " --single {input.single:q} --second {input.second:q} --systematic {input.systematic:q}"
        " --output {params.stem:q} --settings {params.settings:q} > {log:q} 2>&1"
