# Criteria for the heads to keep, side by side: the baseline cut by each, and trained further.


rule cut:
    input:
        rules.train_baseline.output[1],
        model=rules.train_baseline.output[0],
        table=planned(inputs.ranking),
        like=planned(inputs.like_gates),
    output:
        "results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/cut_{criterion}_{scope}_heads{heads}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/cut_{criterion}_{scope}_heads{heads}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("pruning.cut"),
        flags=flags,
        settings=settings(stages.cut),
    shell:
        "python -m specialized_heads.pruning.cut {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule finetune:
    input:
        rules.cut.output[1],
        model=rules.cut.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/finetune_{criterion}_{scope}_heads{heads}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/finetune_{criterion}_{scope}_heads{heads}_seed{seed}.tsv"
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        code=code("pruning.finetune"),
        flags=flags,
        launcher=launcher,
        settings=settings(stages.finetune),
        state=subpath(output.records, parent=True),
    message:
        "training the {wildcards.heads} {wildcards.scope} heads of {wildcards.corpus} that {wildcards.criterion} keeps; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.pruning.finetune {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule compare_criteria:
    input:
        model=rules.train_baseline.output[1],
        heads=planned(inputs.rankings, by=("relevance", "confidence")),
        importance=planned(inputs.rankings, by=("importance",)),
        gates=planned(inputs.compared_gates),
        cut=planned(inputs.compared_models),
    output:
        "results/{experiment}/{corpus}/criteria/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/compare_criteria_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/compare_criteria_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("pruning.compare"),
        flags=flags,
        settings=settings(stages.compare),
    shell:
        "python -m specialized_heads.pruning.compare {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
