# Criteria for the heads to keep, side by side: the baseline cut by each, and trained further.


use rule stage as cut with:
    input:
        rules.train_baseline.output[1],
        model=rules.train_baseline.output[0],
        table=planned(inputs.ranking),
        like=rules.prune.output[1],
    output:
        "results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_{target}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/cut_{criterion}_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/cut_{criterion}_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.cut", stages.cut),


use rule training as finetune with:
    input:
        rules.cut.output[1],
        model=rules.cut.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_{target}/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/finetune_{criterion}_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/finetune_{criterion}_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.finetune", stages.finetune),
