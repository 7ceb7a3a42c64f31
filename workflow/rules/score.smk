# Translate the test set with every model, score it, and gather the scores of a corpus in one table.


rule translate:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        tokens="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        bpe="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.evaluation.translate"),
    output:
        detokenised="results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.txt",
        tokenised="results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.tokenised.txt",
    log:
        "results/{experiment}/{corpus}/logs/translate_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/translate_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            "decoding",
            preprocess=experiment.for_corpus(w.corpus).vocabulary.preprocess,
            language=experiment.corpora[w.corpus].target_language,
            device=experiment.device,
        ),
    shell:
        "python -m specialized_heads.evaluation.translate --model {input.model:q} --tokens {input.tokens:q}"
        " --bpe {input.bpe:q} --output {output.detokenised:q} --tokenised {output.tokenised:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule score:
    input:
        translation="results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.txt",
        tokenised="results/{experiment}/{corpus}/models/{model}/seed{seed}/translation.tokenised.txt",
        baseline=baseline_translation,
        references="results/{experiment}/{corpus}/corpus/test.parquet",
        code=code("specialized_heads.evaluation.score"),
    output:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/score.json",
    log:
        "results/{experiment}/{corpus}/logs/score_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/score_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        baseline=lambda w, input: (["--baseline", input.baseline] if input.baseline else []),
        settings=lambda w: settings(
            w.corpus,
            preprocess=experiment.for_corpus(w.corpus).vocabulary.preprocess,
            language=experiment.corpora[w.corpus].target_language,
        ),
    shell:
        "python -m specialized_heads.evaluation.score --translation {input.translation:q}"
        " --tokenised {input.tokenised:q} {params.baseline:q} --references {input.references:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule gather_scores:
    input:
        models=model_files("model.json"),
        scores=model_files("score.json"),
        code=code("specialized_heads.evaluation.gather"),
    output:
        "results/{experiment}/{corpus}/scores.parquet",
    log:
        "results/{experiment}/{corpus}/logs/gather_scores.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/gather_scores.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps({"rows": [describe_model(name, seed) for name, seed in scored_models(w)]}),
    shell:
        "python -m specialized_heads.evaluation.gather --models {input.models:q} --scores {input.scores:q}"
        " --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


rule measure_speed:
    input:
        baseline="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        pruned=lambda w: expand(
            "results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
            model=models(w.corpus, "pruned", scopes=["encoder"]),
            **w,
        ),
        tokens="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        code=code("specialized_heads.evaluation.speed"),
    output:
        "results/{experiment}/{corpus}/speed.seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/measure_speed_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/measure_speed_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    # Nothing else may run beside a measurement of time.
    threads: workflow.resource_settings.cores or 1
    params:
        settings=lambda w: settings(
            w.corpus,
            "decoding",
            batches=experiment.for_corpus(w.corpus).pruning.speed,
            device=experiment.device,
        ),
    shell:
        "python -m specialized_heads.evaluation.speed --baseline {input.baseline:q} --pruned {input.pruned:q}"
        " --tokens {input.tokens:q} --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"
