# How much heads matter, one by one and in order of importance (Michel et al. 2019).


use rule stage as importance with:
    input:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/importance/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/importance_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/importance_{model}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    params:
        **stage("pruning.importance", stages.device),


use rule resumable as ablate with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        references=rules.corpus_split.output.test,
        bpe=rules.bpe.output.target_model,
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_{model}_seed{seed}.tsv"
    params:
        **stage("pruning.ablation", stages.ablate, alone=True),


use rule ablate as ablate_second with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens=rules.importance.input.dev,
        references=rules.corpus_split.output.dev,
        bpe=rules.bpe.output.target_model,
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.second.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_second_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_second_{model}_seed{seed}.tsv"
    params:
        settings=settings(stages.ablate, alone=False),


use rule resumable as prune_systematically with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        importance=rules.importance.output[0],
        tokens=rules.ablate.input.tokens,
        references=rules.corpus_split.output.test,
        bpe=rules.bpe.output.target_model,
    output:
        "results/{experiment}/{corpus}/systematic/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/prune_systematically_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_systematically_{model}_seed{seed}.tsv"
    params:
        **stage("pruning.systematic", stages.prune_systematically),
