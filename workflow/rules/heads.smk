# What is measured on the heads of a model: relevance, confidence, functions (sections 4 and 5).


use rule computing as relevance with:
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
        **stage("heads.relevance", stages.relevance),


use rule computing as analyse_heads with:
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


# Attention maps, labels and trees of a model, in a page that works from disk.


use rule computing as view_heads with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        source_bpe=rules.bpe.output.source_model,
        target_bpe=rules.bpe.output.target_model,
        text=rules.corpus_split.output.analysis,
        analysis=rules.analyse_heads.input.analysis,
        parses=rules.parse.output[0],
        heads=rules.analyse_heads.output[0],
        whole=rules.train_baseline.output[1],
    output:
        "results/{experiment}/viewer/{corpus}/{model}/seed{seed}.html",
    log:
        "results/{experiment}/{corpus}/logs/view_heads_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/view_heads_{model}_seed{seed}.tsv"
    params:
        **stage(
            "viewer",
            stages.view,
            data=(
                "assets/page.html",
                "assets/page.css",
                "assets/page.js",
                "assets/table.js",
                "assets/lines.js",
            ),
        ),


use rule stage as viewer_index with:
    input:
        planned(plan.viewed_files, pattern=plan.PAGE),
        heads=planned(plan.viewed_files, pattern=plan.HEADS),
    output:
        "results/{experiment}/viewer/index.html",
    log:
        "results/{experiment}/logs/viewer_index.log",
    benchmark:
        "results/{experiment}/benchmarks/viewer_index.tsv"
    params:
        **stage("viewer index", stages.view_index, data=("assets/page.css",)),
