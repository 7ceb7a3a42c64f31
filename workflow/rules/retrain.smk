# Controls of pruning, from random initialisation: the same heads per layer as a pruned model (the last column of table 2), as many
# heads spread evenly, and the pruning objective itself (footnote 8).


use rule training as train_from_scratch with:
    input:
        like="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_from_scratch_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_from_scratch_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("training.train", stages.from_scratch),


use rule train_from_scratch as train_count with:
    output:
        "results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_count_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_count_{scope}_{target}_seed{seed}.tsv"
    params:
        settings=settings(stages.from_scratch, evenly=True),


use rule training as train_regularised with:
    input:
        like=rules.train_baseline.output[1],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/model.json",
        gates="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/gates.json",
        records="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_regularised_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_regularised_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.prune", stages.regularised),
