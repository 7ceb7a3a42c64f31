# What is measured on the heads of a model: relevance, confidence, functions (sections 4 and 5).


use rule stage as relevance with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/relevance/{model}/seed{seed}.parquet",
        report="results/{experiment}/{corpus}/relevance/{model}/seed{seed}.json",
    log:
        "results/{experiment}/{corpus}/logs/relevance_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/relevance_{model}_seed{seed}.tsv"
    params:
        **stage("heads.relevance.measure", stages.relevance),


use rule stage as analyse_heads with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        bpe=rules.bpe.output.source_model,
        text=rules.corpus_split.output.analysis,
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
        train=rules.train_baseline.input.train,
        parses=rules.parse.output[0],
        relevance=rules.relevance.output[0],
    output:
        "results/{experiment}/{corpus}/heads/{model}/seed{seed}.parquet",
        examples="results/{experiment}/{corpus}/heads/{model}/seed{seed}.examples.json",
        report="results/{experiment}/{corpus}/heads/{model}/seed{seed}.json",
    log:
        "results/{experiment}/{corpus}/logs/analyse_heads_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/analyse_heads_{model}_seed{seed}.tsv"
    params:
        **stage("heads.analyse", stages.analyse),
