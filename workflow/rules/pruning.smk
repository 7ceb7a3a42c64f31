# One model per scope and target (a λ or a number of heads): fine-tune the baseline with gates on
# its heads, then remove the closed ones (section 6).


use rule training as prune with:
    input:
        rules.train_baseline.output[1],
        baseline=rules.train_baseline.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        *model_in("pruned/{scope}_{target}/seed{seed}"),
        gates="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/gates.json",
        records="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/prune_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_{scope}_{target}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    params:
        **stage("pruning.prune", stages.prune),


# Controls of pruning, from random initialisation: the same heads per layer as a pruned model (the
# last column of table 2), as many heads spread evenly, and the pruning objective itself (footnote
# 8); and each of the three trained on as pruning trains.


use rule training as train_from_scratch with:
    input:
        like="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        *model_in("scratch/{scope}_{target}/seed{seed}"),
        records="results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_from_scratch_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_from_scratch_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("training.train", stages.from_scratch),


use rule train_from_scratch as train_count with:
    output:
        *model_in("count/{scope}_{target}/seed{seed}"),
        records="results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_count_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_count_{scope}_{target}_seed{seed}.tsv"
    params:
        settings=settings("training.train", stages.from_scratch, evenly=True),


use rule training as train_regularised with:
    input:
        like=rules.train_baseline.output[1],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        *model_in("regularised/{scope}_{target}/seed{seed}"),
        gates="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/gates.json",
        records="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_regularised_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_regularised_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.prune", stages.regularised),


use rule training as continue_control with:
    input:
        model=planned(plan.first_part),
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        *model_in("{control}/{scope}_{target}/seed{seed}"),
        records="results/{experiment}/{corpus}/models/{control}/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_{control}_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_{control}_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.criteria finetune", stages.continued),


# How much heads matter, one by one and in order of importance (Michel et al. 2019).


use rule computing as importance with:
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
        **stage("pruning.criteria importance"),


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
        **stage("pruning.ablation", stages.translation, alone=True),


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
        settings=settings("pruning.ablation", stages.translation, alone=False),


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
        **stage("pruning.ablation", stages.systematic),


# Criteria for choosing heads, side by side: the baseline cut by each, and trained further.


use rule computing as cut with:
    input:
        rules.train_baseline.output[1],
        model=rules.train_baseline.output[0],
        dev=rules.train_baseline.input.dev,
        table=planned(plan.ranking),
        like=rules.prune.output[1],
    output:
        *model_in("cut/{criterion}_{scope}_{target}/seed{seed}"),
    log:
        "results/{experiment}/{corpus}/logs/cut_{criterion}_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/cut_{criterion}_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.criteria cut", stages.cut),


use rule training as finetune with:
    input:
        rules.cut.output[1],
        model=rules.cut.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        *model_in("finetuned/{criterion}_{scope}_{target}/seed{seed}"),
        records="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/finetune_{criterion}_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/finetune_{criterion}_{scope}_{target}_seed{seed}.tsv"
    params:
        **stage("pruning.criteria finetune", stages.finetune),
