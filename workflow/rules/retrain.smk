# Controls of pruning, from random initialisation: the same heads per layer as a pruned model (the last column of table 2),
# as many heads spread evenly, and the pruning objective itself (footnote 8).


rule train_from_scratch:
    input:
        like="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.training.train"),
    output:
        weights="results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/model.json",
        log="results/{experiment}/{corpus}/models/scratch/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_from_scratch_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_from_scratch_{scope}_{target}_seed{seed}.tsv"
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        launcher=launcher,
        settings=retraining_settings,
        state=subpath(output.weights, parent=True),
    message:
        "training the heads of {wildcards.scope} {wildcards.target} of {wildcards.corpus} from scratch; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.training.train --like {input.like:q} --train {input.train:q}"
        " --dev {input.dev:q} --output {output.weights:q} --records {output.log:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule train_from_scratch as train_count with:
    output:
        weights="results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/model.json",
        log="results/{experiment}/{corpus}/models/count/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_count_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_count_{scope}_{target}_seed{seed}.tsv"
    params:
        settings=lambda w: retraining_settings(w, evenly=True),
    message:
        "training as many heads as {wildcards.scope} {wildcards.target} of {wildcards.corpus} from scratch; progress in {log}"


rule train_regularised:
    input:
        like="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.pruning.regularised"),
    output:
        weights="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/model.json",
        gates="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/gates.json",
        log="results/{experiment}/{corpus}/models/regularised/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/train_regularised_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_regularised_{scope}_{target}_seed{seed}.tsv"
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        launcher=launcher,
        settings=regularised_settings,
        state=subpath(output.weights, parent=True),
    message:
        "training {wildcards.corpus} with gates and {wildcards.scope} {wildcards.target} from scratch; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.pruning.regularised --like {input.like:q} --train {input.train:q}"
        " --dev {input.dev:q} --output {output.weights:q} --gates {output.gates:q} --records {output.log:q}"
        " --state {params.state:q}.state --settings {params.settings:q} > {log:q} 2>&1"
