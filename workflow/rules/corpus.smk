# From the text of a source to token ids: raw -> clean -> split -> BPE -> tokens.


use rule stage as corpus_raw with:
    input:
        planned(inputs.corpus_files, resources=RESOURCES, cards=True),
    output:
        "results/{experiment}/{corpus}/corpus/raw.parquet",
        card="results/{experiment}/{corpus}/corpus/raw.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_raw.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_raw.tsv"
    resources:
        **needs({}, gigabytes=32, hours=4),
    params:
        module="corpus.pairs",
        code=lambda w: code(
            "corpus.pairs",
            f"corpus.readers.{experiment.corpora[w.corpus].source.reader.partition('.')[0]}",
        ),
        flags=corpus_flags,
        settings=settings("corpus.pairs"),
        # The rows of the table of datasets: a change of another row makes this corpus no different.
        datasets=lambda w: [str(dataset) for dataset in inputs.datasets(experiment, w.corpus)],


use rule stage as corpus_clean with:
    input:
        input=rules.corpus_raw.output[0],
    output:
        "results/{experiment}/{corpus}/corpus/clean.parquet",
        counts="results/{experiment}/{corpus}/corpus/clean.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_clean.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_clean.tsv"
    resources:
        **needs({}, gigabytes=32, hours=4),
    params:
        **stage("corpus.clean"),


use rule stage as corpus_split with:
    input:
        input=rules.corpus_clean.output[0],
        raw_card=rules.corpus_raw.output.card,
        clean_counts=rules.corpus_clean.output.counts,
    output:
        train="results/{experiment}/{corpus}/corpus/train.parquet",
        dev="results/{experiment}/{corpus}/corpus/dev.parquet",
        test="results/{experiment}/{corpus}/corpus/test.parquet",
        analysis="results/{experiment}/{corpus}/corpus/analysis.parquet",
        counts="results/{experiment}/{corpus}/corpus/counts.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_split.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_split.tsv"
    resources:
        **needs({}, gigabytes=32, hours=4),
    params:
        **stage("corpus.split"),


use rule stage as bpe with:
    input:
        train=rules.corpus_split.output.train,
    output:
        source_model="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target_model="results/{experiment}/{corpus}/corpus/bpe.target.model",
    log:
        "results/{experiment}/{corpus}/logs/bpe.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/bpe.tsv"
    resources:
        **needs({}, gigabytes=32, hours=4),
    params:
        **stage("corpus.tokens bpe"),


# The vocabularies of a baseline that was trained before.
rule given_bpe:
    input:
        source_model=planned(inputs.given_file, name="source.model", root=PROJECT),
        target_model=planned(inputs.given_file, name="target.model", root=PROJECT),
    output:
        source_model=rules.bpe.output.source_model,
        target_model=rules.bpe.output.target_model,
    log:
        "results/{experiment}/{corpus}/logs/given_bpe.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/given_bpe.tsv"
    wildcard_constraints:
        corpus=GIVEN,
    conda:
        "../../envs/pipeline.yaml"
    shell:
        "(cp {input.source_model:q} {output.source_model:q} && cp {input.target_model:q} {output.target_model:q})"
        " > {log:q} 2>&1"


ruleorder: given_bpe > bpe


use rule stage as tokens with:
    input:
        text="results/{experiment}/{corpus}/corpus/{split}.parquet",
        source_model=rules.bpe.output.source_model,
        target_model=rules.bpe.output.target_model,
        special=planned(inputs.given_file, name="tokens.json", only="imported", root=PROJECT),
    output:
        "results/{experiment}/{corpus}/corpus/tokens/{split}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/tokens_{split}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/tokens_{split}.tsv"
    params:
        **stage("corpus.tokens"),


# Files that are fetched by their address. The rule declares only the card of a file: Snakemake
# deletes declared files before a job starts and when it fails, which would lose files placed by
# hand and hours of download.


if FETCHED:

    rule download:
        output:
            card=f"{DOWNLOADS}/{{file}}.json",
        log:
            f"{DOWNLOADS}/logs/{{file}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/{{file}}.tsv"
        wildcard_constraints:
            file="|".join(map(re.escape, FETCHED)),
        # The stage tries again itself, and resumes where it stopped.
        retries: 0
        # Compute nodes often have no internet access. `--resources downloads=2` fetches two files
        # at a time.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
            mem_mb=500,
        params:
            path=lambda w, output: f"{DOWNLOADS}/{w.file}",
            wanted=as_json(inputs.download_settings),
            # It takes the output, so that Snakemake does not count it among what makes a file
            # stale: another time limit or mirror fetches nothing again.
            settings=lambda w, output: as_json(
                inputs.download_settings, downloads=experiment.downloads.model_dump()
            )(w),
        shell:
            "python -m specialized_heads.corpus.fetch --output {params.path:q} --card {output.card:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"


# Dependency trees of the analysis sentences, and how often a fixed offset finds their relations
# (section 5.2).


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
    resources:
        **needs({}, gigabytes=16, hours=8),
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
