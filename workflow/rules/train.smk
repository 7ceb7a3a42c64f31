# The baseline, and its checkpoints. The state of a training that can be resumed lies beside the declared outputs, which Snakemake
# deletes when a job fails.


rule train_baseline:
    input:
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
    output:
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/train_baseline_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_baseline_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    threads: 2
    params:
        code=code("training.train"),
        flags=flags,
        launcher=launcher,
        settings=settings(stages.baseline),
        state=subpath(output.records, parent=True),
    message:
        "training the baseline of {wildcards.corpus}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.training.train {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


# A model on the Hugging Face hub.
rule fetch_model:
    output:
        f"{DOWNLOADS}/models/{{name}}/card.json",
    log:
        f"{DOWNLOADS}/logs/model_{{name}}.log",
    wildcard_constraints:
        name="[^/]+",
    localrule: True
    conda:
        "../../envs/pipeline.yaml"
    resources:
        downloads=1,
    params:
        flags=flags,
        settings=settings(inputs.fetch_settings, root=ROOT),
    shell:
        "python -m specialized_heads.exchange.fetch_model {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


# A model of another project, or one that was exported.
rule import_model:
    input:
        planned(inputs.imported_files, root=ROOT),
    output:
        "results/{experiment}/{corpus}/imported/model.safetensors",
        "results/{experiment}/{corpus}/imported/model.json",
        source_model="results/{experiment}/{corpus}/imported/bpe.source.model",
        target_model="results/{experiment}/{corpus}/imported/bpe.target.model",
        special="results/{experiment}/{corpus}/imported/tokens.json",
    log:
        "results/{experiment}/{corpus}/logs/import_model.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/import_model.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("exchange.import_model"),
        flags=flags,
        settings=settings(stages.import_model, root=ROOT),
    shell:
        "python -m specialized_heads.exchange.import_model {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


# A baseline that was trained before: a kept one, used only if its data and settings match, or an imported one.
rule given_baseline:
    input:
        given=planned(inputs.given_file, name="baseline.json", root=ROOT),
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
        test="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
    output:
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/given_baseline_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/given_baseline_seed{seed}.tsv"
    wildcard_constraints:
        corpus=GIVEN,
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("training.given"),
        deployed=deployed(inputs.given_file, name="baseline.json", root=ROOT),
        flags=flags_with("given", inputs.given_file, name="baseline.json", root=ROOT),
    shell:
        "python -m specialized_heads.training.given {params.flags:q} > {log:q} 2>&1"


ruleorder: given_baseline > train_baseline


rule baseline_checkpoint:
    input:
        rules.train_baseline.output[1],
        baseline=rules.train_baseline.output[0],
        checkpoints=rules.train_baseline.output.checkpoints,
    output:
        "results/{experiment}/{corpus}/models/checkpoint/update{moment}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/checkpoint/update{moment}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/checkpoint_update{moment}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/checkpoint_update{moment}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("training.checkpoint"),
        flags=flags,
        settings=settings(stages.checkpoint),
    shell:
        "python -m specialized_heads.training.checkpoint {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
