# Everything that is measured of the heads of a model: relevance, confidence, functions (sections 4 and 5).


rule relevance:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.heads.relevance.measure"),
    output:
        table="results/{experiment}/{corpus}/relevance/{model}/seed{seed}.parquet",
        report="results/{experiment}/{corpus}/relevance/{model}/seed{seed}.json",
    log:
        "results/{experiment}/{corpus}/logs/relevance_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/relevance_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=relevance_settings,
    shell:
        "python -m specialized_heads.heads.relevance.measure --model {input.model:q} --dev {input.dev:q}"
        " --output {output.table:q} --report {output.report:q} --settings {params.settings:q} > {log:q} 2>&1"


rule analyse_heads:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        bpe="results/{experiment}/{corpus}/corpus/bpe.source.model",
        text="results/{experiment}/{corpus}/corpus/analysis.parquet",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        parses="results/{experiment}/{corpus}/parses/analysis.parquet",
        relevance="results/{experiment}/{corpus}/relevance/{model}/seed{seed}.parquet",
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
        settings=analysis_settings,
    shell:
        "python -m specialized_heads.heads.analyse --model {input.model:q} --bpe {input.bpe:q} --text {input.text:q}"
        " --analysis {input.analysis:q} --train {input.train:q} --parses {input.parses:q} --relevance {input.relevance:q}"
        " --output {output.table:q} --examples {output.examples:q} --report {output.report:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule similarity:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
        code=code("specialized_heads.heads.similarity"),
    output:
        "results/{experiment}/{corpus}/heads/{model}/seed{seed}.similarity.parquet",
    log:
        "results/{experiment}/{corpus}/logs/similarity_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/similarity_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps(
            {
                "sentences": experiment.for_corpus(w.corpus).heads.similarity_sentences,
                "device": experiment.device,
            }
        ),
    shell:
        "python -m specialized_heads.heads.similarity --model {input.model:q} --analysis {input.analysis:q}"
        " --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"
