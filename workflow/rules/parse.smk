# Dependency trees of the analysis sentences, and what a fixed offset would find of their relations (section 5.2).


rule parser_models:
    input:
        code=code("specialized_heads.parsing.fetch"),
    output:
        "results/{experiment}/parser_models.json",
    log:
        "results/{experiment}/logs/parser_models.log",
    benchmark:
        "results/{experiment}/benchmarks/parser_models.tsv"
    # Compute nodes often have no way out.
    localrule: True
    conda:
        "../../envs/parsing.yaml"
    params:
        lists=stanza_lists(),
        settings=json.dumps({"models": stanza_models()}),
    shell:
        "python -m specialized_heads.parsing.fetch --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


rule parse:
    input:
        text="results/{experiment}/{corpus}/corpus/analysis.parquet",
        resource=given_parses,
        about=parser_about,
        code=code("specialized_heads.parsing.parse"),
    output:
        parses="results/{experiment}/{corpus}/parses/analysis.parquet",
        report="results/{experiment}/{corpus}/parses/analysis.json",
    log:
        "results/{experiment}/{corpus}/logs/parse.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/parse.tsv"
    conda:
        "../../envs/parsing.yaml"
    threads: 2
    params:
        resource=lambda w, input: (["--resource", input.resource] if input.resource else []),
        settings=lambda w: json.dumps(
            experiment.for_corpus(w.corpus).parser.model_dump(exclude={"download"})
            | {"language": experiment.corpora[w.corpus].source_language}
        ),
        spacy=lambda w: json.dumps(spacy_model(w.corpus)),
    shell:
        "python -m specialized_heads.parsing.parse --text {input.text:q} {params.resource:q}"
        " --output {output.parses:q} --report {output.report:q} --settings {params.settings:q} > {log:q} 2>&1"


rule relations:
    input:
        parses="results/{experiment}/{corpus}/parses/analysis.parquet",
        code=code("specialized_heads.parsing.relations"),
    output:
        "results/{experiment}/{corpus}/parses/relations.parquet",
    log:
        "results/{experiment}/{corpus}/logs/relations.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/relations.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps({"relations": experiment.for_corpus(w.corpus).heads.relations}),
    shell:
        "python -m specialized_heads.parsing.relations --parses {input.parses:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
