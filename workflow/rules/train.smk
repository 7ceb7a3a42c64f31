# The baseline, and what it was at moments of its training. Its resumable state lives beside the declared outputs, which
# Snakemake deletes when a job fails.


rule train_baseline:
    input:
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.training.train"),
    output:
        weights="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        log="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/train_baseline_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_baseline_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    params:
        launcher=launcher,
        settings=lambda w: settings(
            w.corpus,
            "vocabulary",
            "model",
            "training",
            seed=int(w.seed),
            device=experiment.device,
            moments=moments(w.corpus),
        ),
        state=subpath(output.weights, parent=True),
    message:
        "training the baseline of {wildcards.corpus}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.training.train --train {input.train:q} --dev {input.dev:q}"
        " --output {output.weights:q} --records {output.log:q} --state {params.state:q}.state"
        " --checkpoints {output.checkpoints:q} --settings {params.settings:q} > {log:q} 2>&1"


rule baseline_checkpoint:
    input:
        baseline="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
        code=code("specialized_heads.training.checkpoint"),
    output:
        weights="results/{experiment}/{corpus}/models/checkpoint/update{moment}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/checkpoint/update{moment}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/checkpoint_update{moment}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/checkpoint_update{moment}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps({"update": int(w.moment)}),
    shell:
        "python -m specialized_heads.training.checkpoint --baseline {input.baseline:q}"
        " --checkpoints {input.checkpoints:q} --output {output.weights:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
