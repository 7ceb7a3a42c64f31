# The baseline. Its resumable state lives beside the declared outputs, which Snakemake deletes when a job fails.


rule train_baseline:
    input:
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.training.train"),
    output:
        weights="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        log="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
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
        ),
        state=subpath(output.weights, parent=True),
    message:
        "training the baseline of {wildcards.corpus}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.training.train --train {input.train:q} --dev {input.dev:q}"
        " --output {output.weights:q} --records {output.log:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"
