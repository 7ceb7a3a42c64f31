# Everything that is measured of the heads of a model: relevance, confidence, functions (sections 4 and 5).


rule analyse_heads:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        bpe="results/{experiment}/{corpus}/corpus/bpe.source.model",
        text="results/{experiment}/{corpus}/corpus/analysis.parquet",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        parses="results/{experiment}/{corpus}/parses/analysis.parquet",
        code=code("specialized_heads.heads.analyse"),
    output:
        table="results/{experiment}/{corpus}/heads/{model}/seed{seed}.parquet",
        examples="results/{experiment}/{corpus}/heads/{model}/seed{seed}.examples.json",
        report="results/{experiment}/{corpus}/heads/{model}/seed{seed}.json",
    log:
        "results/{experiment}/{corpus}/logs/analyse_heads_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/analyse_heads_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            "heads",
            preprocess=experiment.for_corpus(w.corpus).vocabulary.preprocess,
            language=experiment.corpora[w.corpus].source_language,
            seed=int(w.seed),
            device=experiment.device,
        ),
    shell:
        "python -m specialized_heads.heads.analyse --model {input.model:q} --bpe {input.bpe:q} --text {input.text:q}"
        " --analysis {input.analysis:q} --dev {input.dev:q} --train {input.train:q} --parses {input.parses:q}"
        " --output {output.table:q} --examples {output.examples:q} --report {output.report:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
