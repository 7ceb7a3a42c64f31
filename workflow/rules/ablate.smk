# What heads are worth, one by one and in order of importance (Michel et al. 2019).


wildcard_constraints:
    other="|".join(map(re.escape, experiment.corpora)),


rule importance:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.pruning.importance"),
    output:
        "results/{experiment}/{corpus}/importance/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/importance_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/importance_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=json.dumps({"device": experiment.device}),
    shell:
        "python -m specialized_heads.pruning.importance --model {input.model:q} --dev {input.dev:q}"
        " --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


rule ablate:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        tokens="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        references="results/{experiment}/{corpus}/corpus/test.parquet",
        bpe="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.pruning.ablation"),
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: decoded_settings(w, alone=True),
        state=ablation_state,
    message:
        "ablating the heads of {wildcards.model} of {wildcards.corpus}, one by one; progress in {log}"
    shell:
        "python -m specialized_heads.pruning.ablation --model {input.model:q} --tokens {input.tokens:q}"
        " --bpe {input.bpe:q} --references {input.references:q} --output {output:q} --state {params.state:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# The test set of another corpus, as the models of this one read it.
rule tokens_of_other:
    input:
        text="results/{experiment}/{other}/corpus/test.parquet",
        source="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.corpus.tokens"),
    output:
        "results/{experiment}/{corpus}/corpus/tokens/test_of_{other}.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/tokens_test_of_{other}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/tokens_test_of_{other}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: settings(
            w.corpus,
            preprocess=experiment.for_corpus(w.corpus).vocabulary.preprocess,
            source_language=experiment.corpora[w.corpus].source_language,
            target_language=experiment.corpora[w.corpus].target_language,
        ),
    shell:
        "python -m specialized_heads.corpus.tokens --text {input.text:q} --source-model {input.source:q}"
        " --target-model {input.target:q} --output {output:q} --settings {params.settings:q} > {log:q} 2>&1"


use rule ablate as ablate_second with:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        tokens=second_tokens,
        references=second_text,
        bpe="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.pruning.ablation"),
    output:
        "results/{experiment}/{corpus}/ablation/{model}/seed{seed}.second.parquet",
    log:
        "results/{experiment}/{corpus}/logs/ablate_second_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/ablate_second_{model}_seed{seed}.tsv"
    params:
        settings=lambda w: decoded_settings(w, alone=False),
    message:
        "ablating the heads of {wildcards.model} of {wildcards.corpus} on a second set; progress in {log}"


rule prune_systematically:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        importance="results/{experiment}/{corpus}/importance/{model}/seed{seed}.parquet",
        tokens="results/{experiment}/{corpus}/corpus/tokens/test.safetensors",
        references="results/{experiment}/{corpus}/corpus/test.parquet",
        bpe="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.pruning.systematic"),
    output:
        "results/{experiment}/{corpus}/systematic/{model}/seed{seed}.parquet",
    log:
        "results/{experiment}/{corpus}/logs/prune_systematically_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_systematically_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: decoded_settings(
            w,
            step=experiment.for_corpus(w.corpus).ablation.step,
            normalise=experiment.for_corpus(w.corpus).ablation.normalise,
        ),
        state=ablation_state,
    message:
        "removing heads of {wildcards.model} of {wildcards.corpus} in order of importance; progress in {log}"
    shell:
        "python -m specialized_heads.pruning.systematic --model {input.model:q} --importance {input.importance:q}"
        " --tokens {input.tokens:q} --bpe {input.bpe:q} --references {input.references:q} --output {output:q}"
        " --state {params.state:q} --settings {params.settings:q} > {log:q} 2>&1"
