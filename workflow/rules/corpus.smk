# From the text of a source to token ids: raw -> clean -> split -> BPE -> tokens.


rule corpus_raw:
    input:
        resource=corpus_source,
        code=lambda w: code("specialized_heads.corpus.raw")
        + code(f"specialized_heads.corpus.readers.{experiment.corpora[w.corpus].source.kind}"),
    output:
        raw="results/{experiment}/{corpus}/corpus/raw.parquet",
        card="results/{experiment}/{corpus}/corpus/raw.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_raw.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_raw.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        files=lambda w: corpus_files(w.corpus),
        settings=raw_settings,
        # The rows of the table of datasets: another row makes no other corpus stale.
        datasets=lambda w: [str(dataset) for dataset in datasets(w.corpus)],
    shell:
        "python -m specialized_heads.corpus.raw --resource {params.files:q} --output {output.raw:q}"
        " --card {output.card:q} --settings {params.settings:q} > {log:q} 2>&1"


rule corpus_clean:
    input:
        raw="results/{experiment}/{corpus}/corpus/raw.parquet",
        code=code("specialized_heads.corpus.clean"),
    output:
        clean="results/{experiment}/{corpus}/corpus/clean.parquet",
        counts="results/{experiment}/{corpus}/corpus/clean.json",
    log:
        "results/{experiment}/{corpus}/logs/corpus_clean.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/corpus_clean.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            filters=experiment.corpora[w.corpus].filters.model_dump(),
            source_language=experiment.corpora[w.corpus].source_language,
            target_language=experiment.corpora[w.corpus].target_language,
        ),
    shell:
        "python -m specialized_heads.corpus.clean --input {input.raw:q} --output {output.clean:q}"
        " --counts {output.counts:q} --settings {params.settings:q} > {log:q} 2>&1"


rule corpus_split:
    input:
        clean="results/{experiment}/{corpus}/corpus/clean.parquet",
        card="results/{experiment}/{corpus}/corpus/raw.json",
        counts="results/{experiment}/{corpus}/corpus/clean.json",
        code=code("specialized_heads.corpus.split"),
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
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps({"split": experiment.corpora[w.corpus].split.model_dump()}),
    shell:
        "python -m specialized_heads.corpus.split --input {input.clean:q} --raw-card {input.card:q}"
        " --clean-counts {input.counts:q} --train {output.train:q} --dev {output.dev:q} --test {output.test:q}"
        " --analysis {output.analysis:q} --counts {output.counts:q} --settings {params.settings:q} > {log:q} 2>&1"


rule bpe:
    input:
        train="results/{experiment}/{corpus}/corpus/train.parquet",
        code=code("specialized_heads.corpus.bpe"),
    output:
        source="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target="results/{experiment}/{corpus}/corpus/bpe.target.model",
    log:
        "results/{experiment}/{corpus}/logs/bpe.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/bpe.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            "vocabulary",
            source_language=experiment.corpora[w.corpus].source_language,
            target_language=experiment.corpora[w.corpus].target_language,
        ),
    shell:
        "python -m specialized_heads.corpus.bpe --train {input.train:q} --source-model {output.source:q}"
        " --target-model {output.target:q} --settings {params.settings:q} > {log:q} 2>&1"


rule tokens:
    input:
        text="results/{experiment}/{corpus}/corpus/{split}.parquet",
        source="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.corpus.tokens"),
    output:
        "results/{experiment}/{corpus}/corpus/tokens/{split}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/tokens_{split}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/tokens_{split}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            preprocess=experiment.for_corpus(w.corpus).vocabulary.preprocess,
            source_language=experiment.corpora[w.corpus].source_language,
            target_language=experiment.corpora[w.corpus].target_language,
        ),
    shell:
        "python -m specialized_heads.corpus.tokens --text {input.text:q} --source-model {input.source:q}"
        " --target-model {input.target:q} --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"
