# Criteria for the heads to keep, side by side: the baseline cut by each, and trained on.


rule cut:
    input:
        model="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        table=ranking,
        like=gates_model,
        code=code("specialized_heads.pruning.cut"),
    output:
        weights="results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/cut_{criterion}_{scope}_heads{heads}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/cut_{criterion}_{scope}_heads{heads}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        files=lambda w, input: [
            argument for name in ("table", "like") if input[name] for argument in (f"--{name}", input[name])
        ],
        settings=lambda w: json.dumps(
            {
                "criterion": w.criterion,
                "scope": w.scope,
                "heads": int(w.heads),
                "column": ranking_column(w.corpus, w.criterion),
                "seed": int(w.seed),
            }
        ),
    shell:
        "python -m specialized_heads.pruning.cut --model {input.model:q} {params.files:q} --output {output.weights:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule finetune:
    input:
        model="results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/cut/{criterion}_{scope}_heads{heads}/seed{seed}/model.json",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.pruning.finetune"),
    output:
        weights="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/model.json",
        log="results/{experiment}/{corpus}/models/finetuned/{criterion}_{scope}_heads{heads}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/finetune_{criterion}_{scope}_heads{heads}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/finetune_{criterion}_{scope}_heads{heads}_seed{seed}.tsv"
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        launcher=launcher,
        settings=lambda w: json.dumps(
            {
                "seed": int(w.seed),
                "scope": w.scope,
                "dropout": experiment.for_corpus(w.corpus).model.dropout,
                "training": fine_tuning(w.corpus),
                "device": experiment.device,
            }
        ),
        state=subpath(output.weights, parent=True),
    message:
        "training the {wildcards.heads} {wildcards.scope} heads of {wildcards.corpus} that {wildcards.criterion} keeps; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.pruning.finetune --model {input.model:q} --train {input.train:q}"
        " --dev {input.dev:q} --output {output.weights:q} --records {output.log:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule compare_criteria:
    input:
        model="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        heads=of_criteria(BASELINE_HEADS, "relevance", "confidence"),
        importance=of_criteria(
            "results/{experiment}/{corpus}/importance/baseline/seed{seed}.parquet",
            "importance",
        ),
        gates=lambda w: [
            f"results/{w.experiment}/{w.corpus}/models/pruned/{scope}_heads{count}/seed{w.seed}/gates.json"
            for scope, count in ranked_gates(w.corpus).items()
        ],
        cut=lambda w: [
            f"results/{w.experiment}/{w.corpus}/models/{name}/seed{w.seed}/model.json"
            for name in models(w.corpus, "cut")
        ],
        code=code("specialized_heads.pruning.compare"),
    output:
        "results/{experiment}/{corpus}/criteria/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/compare_criteria_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/compare_criteria_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        files=lambda w, input: [
            argument for name in ("heads", "importance") if input[name] for argument in (f"--{name}", input[name])
        ],
        settings=lambda w: json.dumps(
            {
                "seed": int(w.seed),
                "criteria": experiment.for_corpus(w.corpus).comparison.criteria,
                "cut": cut_models(w.corpus),
                "gates": list(ranked_gates(w.corpus)),
                "column": ranking_column(w.corpus, "importance"),
            }
        ),
    shell:
        "python -m specialized_heads.pruning.compare --model {input.model:q} {params.files:q} --gates {input.gates:q}"
        " --cut {input.cut:q} --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


rule criteria:
    input:
        scores=of_corpora(SCORES, compared()),
        code=code("specialized_heads.report.criteria"),
    output:
        **figure_outputs("criteria"),
        **{f"table_{name}": path for name, path in table_outputs("criteria").items()},
    log:
        "results/{experiment}/logs/criteria.log",
    benchmark:
        "results/{experiment}/benchmarks/criteria.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        figure=shown_stem,
        table=lambda w, output: output.table_csv.removesuffix(".csv"),
        settings=titles(compared()),
    shell:
        "python -m specialized_heads.report.criteria --scores {input.scores:q} --figure {params.figure:q}"
        " --table {params.table:q} --settings {params.settings:q} > {log:q} 2>&1"


rule agreement:
    input:
        criteria=lambda w: expand(
            "results/{experiment}/{corpus}/criteria/seed{seed}.parquet",
            experiment=w.experiment,
            corpus=compared(),
            seed=experiment.seeds,
        ),
        code=code("specialized_heads.report.agreement"),
    output:
        **figure_outputs("agreement"),
        **{f"table_{name}": path for name, path in table_outputs("agreement").items()},
    log:
        "results/{experiment}/logs/agreement.log",
    benchmark:
        "results/{experiment}/benchmarks/agreement.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        figure=shown_stem,
        table=lambda w, output: output.table_csv.removesuffix(".csv"),
        # One title per file: the tables of a corpus, one per seed, follow each other.
        settings=titles([corpus for corpus in compared() for _ in experiment.seeds]),
    shell:
        "python -m specialized_heads.report.agreement --criteria {input.criteria:q} --figure {params.figure:q}"
        " --table {params.table:q} --settings {params.settings:q} > {log:q} 2>&1"
