# A BERT and its tasks (Michel et al. 2019): text, pre-training or import, fine-tuning, scores, ablation. Importance, checkpoints and
# pruning with gates are the rules of translation models, whose paths the tasks share.


rule bert_vocabulary:
    input:
        text=planned(inputs.pretraining_text, resources=RESOURCES),
    output:
        vocabulary="results/{experiment}/bert/learned/vocabulary.json",
        train="results/{experiment}/bert/tokens/train.safetensors",
        dev="results/{experiment}/bert/tokens/dev.safetensors",
    log:
        "results/{experiment}/logs/bert_vocabulary.log",
    benchmark:
        "results/{experiment}/benchmarks/bert_vocabulary.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.vocabulary"),
        flags=flags,
        settings=settings(stages.vocabulary),
    shell:
        "python -m specialized_heads.classification.vocabulary {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule pretrain_bert:
    input:
        vocabulary=rules.bert_vocabulary.output.vocabulary,
        train=rules.bert_vocabulary.output.train,
        dev=rules.bert_vocabulary.output.dev,
    output:
        "results/{experiment}/bert/pretrained/model.safetensors",
        "results/{experiment}/bert/pretrained/model.json",
        records="results/{experiment}/bert/pretrained/log.jsonl",
    log:
        "results/{experiment}/logs/pretrain_bert.log",
    benchmark:
        "results/{experiment}/benchmarks/pretrain_bert.tsv"
    priority: 2  # everything else waits for it
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    params:
        code=code("classification.pretrain"),
        flags=flags,
        launcher=launcher,
        settings=settings(stages.pretrain),
        state=subpath(output.records, parent=True),
    message:
        "pre-training a BERT; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.classification.pretrain {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


# The encoder of all tasks, of another project.
rule import_bert:
    input:
        planned(inputs.bert_files, root=ROOT),
    output:
        "results/{experiment}/bert/imported/model.safetensors",
        "results/{experiment}/bert/imported/model.json",
        vocabulary="results/{experiment}/bert/imported/vocabulary.json",
    log:
        "results/{experiment}/logs/import_bert.log",
    benchmark:
        "results/{experiment}/benchmarks/import_bert.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.import_bert"),
        flags=flags,
        settings=settings(stages.import_bert, root=ROOT),
    shell:
        "python -m specialized_heads.classification.import_bert {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


# A classifier of another project that is fine-tuned already.
rule import_classifier:
    input:
        planned(inputs.bert_files, root=ROOT),
    output:
        "results/{experiment}/{corpus}/imported/model.safetensors",
        "results/{experiment}/{corpus}/imported/model.json",
        vocabulary="results/{experiment}/{corpus}/imported/vocabulary.json",
    log:
        "results/{experiment}/{corpus}/logs/import_classifier.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/import_classifier.tsv"
    wildcard_constraints:
        corpus=GIVEN_TASKS,
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.import_bert"),
        flags=flags,
        settings=settings(stages.import_bert, root=ROOT),
    shell:
        "python -m specialized_heads.classification.import_bert {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule task_examples:
    input:
        planned(inputs.task_archive, cards=True),
        matched=planned(inputs.task_texts, resources=RESOURCES, domain="matched", file="corpus.parquet"),
        mismatched=planned(inputs.task_texts, resources=RESOURCES, domain="mismatched", file="corpus.parquet"),
        trees=planned(inputs.task_texts, resources=RESOURCES, domain="trees", file="parses.parquet"),
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
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.examples"),
        flags=flags,
        archive=planned(inputs.task_archive),
        settings=settings(stages.examples),
    shell:
        "python -m specialized_heads.classification.examples {params.flags:q} --archive {params.archive:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule task_tokens:
    input:
        text="results/{experiment}/{corpus}/examples/{split}.parquet",
        vocabulary=planned(inputs.task_vocabulary),
    output:
        "results/{experiment}/{corpus}/corpus/tokens/{split}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/task_tokens_{split}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/task_tokens_{split}.tsv"
    wildcard_constraints:
        corpus=TASKS,
        split="train|dev|test|second",
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.tokens"),
        flags=flags,
        settings=settings(stages.task_tokens),
    shell:
        "python -m specialized_heads.classification.tokens {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule task_baselines:
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
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.baselines"),
        flags=flags,
        settings=settings(stages.task_baselines),
    shell:
        "python -m specialized_heads.classification.baselines {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule train_classifier:
    input:
        pretrained=planned(inputs.pretrained),
        train=rules.task_baselines.input.train,
        dev=rules.task_baselines.input.dev,
    output:
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/train_classifier_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_classifier_seed{seed}.tsv"
    wildcard_constraints:
        corpus=TASKS,
    priority: 1
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        code=code("classification.finetune"),
        flags=flags,
        launcher=launcher,
        settings=settings(stages.classifier),
        state=subpath(output.records, parent=True),
    message:
        "fine-tuning BERT on {wildcards.corpus}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.classification.finetune {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


# A given classifier is the baseline of its task, with its loss on the development set for a log.
rule given_classifier:
    input:
        rules.import_classifier.output[1],
        given=rules.import_classifier.output[0],
        train=rules.task_baselines.input.train,
        dev=rules.task_baselines.input.dev,
        test=rules.task_baselines.input.test,
        analysis=rules.task_baselines.input.test,
    output:
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/given_classifier_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/given_classifier_seed{seed}.tsv"
    wildcard_constraints:
        corpus=GIVEN_TASKS,
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("training.given"),
        flags=flags,
    shell:
        "python -m specialized_heads.training.given {params.flags:q} > {log:q} 2>&1"


ruleorder: given_classifier > train_classifier


rule score_task:
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
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.score"),
        flags=flags,
        settings=settings(stages.task_score),
    shell:
        "python -m specialized_heads.classification.score {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule ablate_task:
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
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("classification.ablation"),
        flags=flags,
        settings=settings(stages.ablate_task, alone=True),
        state=subpath(output[0], strip_suffix=".parquet"),
    message:
        "ablating the heads of {wildcards.model} of {wildcards.corpus}, one by one; progress in {log}"
    shell:
        "python -m specialized_heads.classification.ablation {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule ablate_task as ablate_task_second with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens=planned(inputs.second_or_dev),
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.second.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_task_second_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_task_second_{model}_seed{seed}.tsv"
    params:
        settings=settings(stages.ablate_task, alone=False),
    message:
        "ablating the heads of {wildcards.model} of {wildcards.corpus} on a second set; progress in {log}"


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
        settings=settings(stages.prune_task),
    message:
        "removing heads of {wildcards.model} of {wildcards.corpus} in order of importance; progress in {log}"


rule measure_task_speed:
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
    conda:
        "../../envs/pipeline.yaml"
    # All cores: nothing else may run while time is measured.
    threads: workflow.resource_settings.cores or 1
    params:
        code=code("classification.speed"),
        flags=flags,
        settings=settings(stages.task_speed),
    shell:
        "python -m specialized_heads.classification.speed {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
