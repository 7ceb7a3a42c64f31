# A BERT and its tasks (Michel et al. 2019): text, pre-training or import, fine-tuning, scores,
# ablation. Importance, checkpoints and pruning with gates are the rules of translation models,
# whose paths the tasks share.

# Where the model that all tasks fine-tune and its vocabulary are.
IMPORTS_BERT = experiment.classification and experiment.classification.model
PRETRAINED, LEARNED = ("imported", "imported") if IMPORTS_BERT else ("pretrained", "learned")


use rule stage as bert_vocabulary with:
    input:
        text=expand(f"{RESOURCES}/{{name}}/corpus.parquet", name=inputs.MATCHED + inputs.MISMATCHED),
    output:
        vocabulary="results/{experiment}/bert/learned/vocabulary.json",
        train="results/{experiment}/bert/tokens/train.safetensors",
        dev="results/{experiment}/bert/tokens/dev.safetensors",
    log:
        "results/{experiment}/logs/bert_vocabulary.log",
    benchmark:
        "results/{experiment}/benchmarks/bert_vocabulary.tsv"
    params:
        **stage("classification.transfer vocabulary", stages.vocabulary),


use rule training as pretrain_bert with:
    input:
        vocabulary=rules.bert_vocabulary.output.vocabulary,
        train=rules.bert_vocabulary.output.train,
        dev=rules.bert_vocabulary.output.dev,
    output:
        multiext("results/{experiment}/bert/pretrained/model", ".safetensors", ".json"),
        records="results/{experiment}/bert/pretrained/log.jsonl",
    log:
        "results/{experiment}/logs/pretrain_bert.log",
    benchmark:
        "results/{experiment}/benchmarks/pretrain_bert.tsv"
    priority: 2  # everything else waits for it
    threads: 2
    params:
        **stage("classification.transfer pretrain", stages.pretrain),


# The encoder of all tasks, of another project.
use rule stage as import_bert with:
    input:
        planned(inputs.imported_files, root=PROJECT),
    output:
        multiext("results/{experiment}/bert/imported/model", ".safetensors", ".json"),
        vocabulary="results/{experiment}/bert/imported/vocabulary.json",
    log:
        "results/{experiment}/logs/import_bert.log",
    benchmark:
        "results/{experiment}/benchmarks/import_bert.tsv"
    params:
        **stage("exchange.huggingface import_bert", stages.import_bert, root=PROJECT),


use rule stage as task_examples with:
    input:
        planned(inputs.task_archive, cards=True),
        matched=planned(inputs.task_texts, resources=RESOURCES, domain=inputs.MATCHED),
        mismatched=planned(inputs.task_texts, resources=RESOURCES, domain=inputs.MISMATCHED),
    output:
        train="results/{experiment}/{corpus}/examples/train.parquet",
        dev="results/{experiment}/{corpus}/examples/dev.parquet",
        test="results/{experiment}/{corpus}/examples/test.parquet",
        second="results/{experiment}/{corpus}/examples/second.parquet",
        counts="results/{experiment}/{corpus}/examples/counts.json",
    log:
        "results/{experiment}/{corpus}/logs/task_examples.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/task_examples.tsv"
    wildcard_constraints:
        corpus=TASKS,
    params:
        **stage("classification.tasks examples", stages.examples),
        flags=lambda wildcards, input, output: [
            *flags(wildcards, input, output),
            "--archive",
            *inputs.task_archive(experiment, **wildcards),
        ],


use rule stage as task_tokens with:
    input:
        text="results/{experiment}/{corpus}/examples/{split}.parquet",
        vocabulary=f"results/{{experiment}}/bert/{LEARNED}/vocabulary.json",
    output:
        "results/{experiment}/{corpus}/corpus/tokens/{split}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/task_tokens_{split}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/task_tokens_{split}.tsv"
    wildcard_constraints:
        corpus=TASKS,
        split="train|dev|test|second",
    params:
        **stage("classification.tasks tokens", stages.task_tokens),


use rule stage as task_baselines with:
    input:
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        test="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        second=planned(inputs.second_set),
    output:
        "results/{experiment}/{corpus}/baselines.json",
    log:
        "results/{experiment}/{corpus}/logs/task_baselines.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/task_baselines.tsv"
    wildcard_constraints:
        corpus=TASKS,
    params:
        **stage("classification.scores baselines", stages.task_baselines),


use rule training as train_classifier with:
    input:
        f"results/{{experiment}}/bert/{PRETRAINED}/model.json",
        pretrained=f"results/{{experiment}}/bert/{PRETRAINED}/model.safetensors",
        train=rules.task_baselines.input.train,
        dev=rules.task_baselines.input.dev,
    output:
        *model_in("baseline/seed{seed}"),
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/train_classifier_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_classifier_seed{seed}.tsv"
    wildcard_constraints:
        corpus=TASKS,
    params:
        **stage("classification.transfer finetune", stages.classifier),


use rule computing as score_task with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        baseline=rules.train_classifier.output[0],
        test=rules.task_baselines.input.test,
        second=planned(inputs.second_set),
    output:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/score.json",
    log:
        "results/{experiment}/{corpus}/logs/score_task_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/score_task_{model}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=TASKS,
    params:
        **stage("classification.scores score", stages.task_score),


use rule resumable as ablate_task with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens=rules.task_baselines.input.test,
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_task_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_task_{model}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=TASKS,
    params:
        **stage("classification.scores ablation", stages.task_score, alone=True),


use rule ablate_task as ablate_task_second with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens=planned(inputs.second_set, instead="dev"),
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.second.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_task_second_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_task_second_{model}_seed{seed}.tsv"
    params:
        settings=settings("classification.scores ablation", stages.task_score, alone=False),


use rule ablate_task as prune_task_systematically with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        importance=rules.importance.output[0],
        tokens=rules.task_baselines.input.test,
    output:
        "results/{experiment}/{corpus}/systematic/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/prune_task_systematically_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_task_systematically_{model}_seed{seed}.tsv"
    params:
        settings=settings("classification.scores ablation", stages.task_score),


use rule computing as measure_task_speed with:
    input:
        rules.train_classifier.output[1],
        model=rules.train_classifier.output[0],
        importance="results/{experiment}/{corpus}/importance/baseline/seed{seed}.parquet",
        tokens=rules.task_baselines.input.test,
    output:
        "results/{experiment}/{corpus}/speed.seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/measure_task_speed_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/measure_task_speed_seed{seed}.tsv"
    wildcard_constraints:
        corpus=TASKS,
    # All cores: nothing else may run while time is measured.
    threads: workflow.resource_settings.cores or 1
    params:
        **stage("classification.scores speed", stages.task_speed),
