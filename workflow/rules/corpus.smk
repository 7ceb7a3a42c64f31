# From the text of a source to token ids: raw -> clean -> split -> BPE -> tokens.


use rule stage as corpus_raw with:
    input:
        planned(inputs.corpus_cards, resources=RESOURCES),
    output:
        "results/{experiment}/{corpus}/corpus/raw.parquet",
        card="results/{experiment}/{corpus}/corpus/raw.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_raw.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_raw.tsv"
    params:
        module="corpus.raw",
        code=lambda w: code("corpus.raw", f"corpus.readers.{experiment.corpora[w.corpus].source.kind}"),
        flags=corpus_flags,
        settings=settings(stages.raw),
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
    params:
        **stage("corpus.clean", stages.clean),


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
    params:
        **stage("corpus.split", stages.split),


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
    params:
        **stage("corpus.bpe", stages.bpe),


# The vocabularies of a baseline that was trained before.
rule given_bpe:
    input:
        source_model=planned(inputs.given_file, name="bpe.source.model", root=PROJECT),
        target_model=planned(inputs.given_file, name="bpe.target.model", root=PROJECT),
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
        special=planned(inputs.imported_file, name="tokens.json", root=PROJECT),
    output:
        "results/{experiment}/{corpus}/corpus/tokens/{split}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/tokens_{split}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/tokens_{split}.tsv"
    params:
        **stage("corpus.tokens", stages.tokens),
