# Dependency trees of the analysis sentences, and how often a fixed offset finds their relations (section 5.2).


use rule stage as parser_models with:
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
        **stage("parsing.stanza_engine", stages.parser_models),
        lists=inputs.stanza_lists(experiment),


use rule stage as parse with:
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
        **stage("parsing.parse", stages.parse),


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
