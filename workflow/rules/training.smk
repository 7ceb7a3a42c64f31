# The baseline, and its checkpoints.


use rule training as train_baseline with:
    input:
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
    output:
        *model_in("baseline/seed{seed}"),
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
        checkpoints="results/{experiment}/{corpus}/models/baseline/seed{seed}/checkpoints.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/train_baseline_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/train_baseline_seed{seed}.tsv"
    threads: 2
    params:
        **stage("training.train", stages.baseline),


# A model on the Hugging Face hub.
use rule stage as fetch_model with:
    output:
        f"{DOWNLOADS}/models/{{name}}/card.json",
    log:
        f"{DOWNLOADS}/logs/model_{{name}}.log",
    wildcard_constraints:
        name="[^/]+",
    localrule: True
    resources:
        downloads=1,
    params:
        module=["exchange.import_model", "fetch"],
        settings=as_json(inputs.fetch_settings, root=PROJECT),


# A model of another project, or one that was exported.
use rule stage as import_model with:
    input:
        planned(inputs.imported_files, root=PROJECT),
    output:
        multiext("results/{experiment}/{corpus}/imported/model", ".safetensors", ".json"),
        source_model="results/{experiment}/{corpus}/imported/source.model",
        target_model="results/{experiment}/{corpus}/imported/target.model",
        special="results/{experiment}/{corpus}/imported/tokens.json",
    log:
        "results/{experiment}/{corpus}/logs/import_model.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/import_model.tsv"
    params:
        **stage("exchange.import_model", stages.import_model, root=PROJECT),


# A baseline that was trained before: a given one, used only if its data and settings match, or an
# imported one.
use rule stage as given_baseline with:
    input:
        planned(inputs.given_file, name="model.json", root=PROJECT),
        weights=planned(inputs.given_file, name="model.safetensors", root=PROJECT),
        facts=planned(inputs.given_file, name="baseline.json", only="given", root=PROJECT),
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
        test="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
    output:
        *model_in("baseline/seed{seed}"),
        records="results/{experiment}/{corpus}/models/baseline/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/given_baseline_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/given_baseline_seed{seed}.tsv"
    wildcard_constraints:
        corpus=GIVEN,
    params:
        **stage("exchange.folder given"),


ruleorder: given_baseline > train_baseline


use rule stage as baseline_checkpoint with:
    input:
        rules.train_baseline.output[1],
        baseline=rules.train_baseline.output[0],
        checkpoints=rules.train_baseline.output.checkpoints,
    output:
        *model_in("checkpoint/update{moment}/seed{seed}"),
    log:
        "results/{experiment}/{corpus}/logs/checkpoint_update{moment}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/checkpoint_update{moment}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    params:
        **stage("training.train checkpoint", stages.checkpoint),
