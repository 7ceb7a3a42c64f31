# Translate the test set with every model, score it, and gather the scores of a corpus in one table.


rule translate:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        tokens=rules.ablate.input.tokens,
        bpe=rules.bpe.output.target_model,
    output:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.txt",
        tokenised="results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.tokenised.txt",
    log:
        "results/{experiment}/{corpus}/logs/translate_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/translate_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("evaluation.translate"),
        flags=flags,
        settings=settings(stages.translate),
    shell:
        "python -m specialized_heads.evaluation.translate {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule score:
    input:
        translation=rules.translate.output[0],
        tokenised=rules.translate.output.tokenised,
        baseline=planned(inputs.baseline_translation),
        references=rules.corpus_split.output.test,
    output:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/score.json",
    log:
        "results/{experiment}/{corpus}/logs/score_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/score_{model}_seed{seed}.tsv"
    group:
        "scores"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("evaluation.score"),
        flags=flags,
        settings=settings(stages.score),
    shell:
        "python -m specialized_heads.evaluation.score {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule gather_scores:
    input:
        models=planned(inputs.model_files, name="model.json"),
        scores=planned(inputs.model_files, name="score.json"),
    output:
        "results/{experiment}/{corpus}/scores.parquet",
    log:
        "results/{experiment}/{corpus}/logs/gather_scores.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/gather_scores.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("evaluation.gather"),
        flags=flags,
        settings=settings(stages.gather),
    shell:
        "python -m specialized_heads.evaluation.gather {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule measure_speed:
    input:
        baseline=rules.train_baseline.output[0],
        pruned=planned(inputs.timed_models),
        tokens=rules.ablate.input.tokens,
    output:
        "results/{experiment}/{corpus}/speed.seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/measure_speed_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/measure_speed_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    # All cores: nothing else may run while time is measured.
    threads: workflow.resource_settings.cores or 1
    params:
        code=code("evaluation.speed"),
        flags=flags,
        settings=settings(stages.speed),
    shell:
        "python -m specialized_heads.evaluation.speed {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
