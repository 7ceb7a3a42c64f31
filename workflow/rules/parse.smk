# Dependency trees of the analysis sentences, and how often a fixed offset finds their relations (section 5.2).


rule parser_models:
    output:
        "results/{experiment}/parser_models.json",
    log:
        "results/{experiment}/logs/parser_models.log",
    benchmark:
        "results/{experiment}/benchmarks/parser_models.tsv"
    # Compute nodes often have no internet access.
    localrule: True
    conda:
        "../../envs/parsing.yaml"
    params:
        code=code("parsing.stanza_engine"),
        flags=flags,
        lists=inputs.stanza_lists(experiment),
        settings=constant(models=inputs.stanza_models(experiment)),
    shell:
        "python -m specialized_heads.parsing.stanza_engine {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule parse:
    input:
        planned(inputs.parser_description, resources=RESOURCES),
        text=rules.corpus_split.output.analysis,
        resource=planned(inputs.given_parses, resources=RESOURCES),
    output:
        "results/{experiment}/{corpus}/parses/analysis.parquet",
        report="results/{experiment}/{corpus}/parses/analysis.json",
    log:
        "results/{experiment}/{corpus}/logs/parse.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/parse.tsv"
    conda:
        "../../envs/parsing.yaml"
    threads: 2
    params:
        code=code("parsing.parse"),
        flags=flags,
        settings=settings(stages.parse),
    shell:
        "python -m specialized_heads.parsing.parse {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


use rule stage as relations with:
    input:
        parses=rules.parse.output[0],
    output:
        "results/{experiment}/{corpus}/parses/relations.parquet",
    log:
        "results/{experiment}/{corpus}/logs/relations.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/relations.tsv"
    params:
        **stage("parsing.relations", stages.relations),
