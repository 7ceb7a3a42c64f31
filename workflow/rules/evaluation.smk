# Translate the test set with every model and score it.


use rule computing as translate with:
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
    params:
        **stage("model.decoding", stages.translation),


use rule stage as score with:
    input:
        translation=rules.translate.output[0],
        tokenised=rules.translate.output.tokenised,
        baseline=planned(plan.baseline_translation),
        counterpart=planned(plan.counterpart_translation),
        references=rules.corpus_split.output.test,
    output:
        "results/{experiment}/{corpus}/models/{model}/seed{seed}/score.json",
    log:
        "results/{experiment}/{corpus}/logs/score_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/score_{model}_seed{seed}.tsv"
    group:
        "scores"
    params:
        **stage("evaluation", stages.translation),


# A model in a folder of its own, for use outside the study. Made on request:
# snakemake results/{experiment}/{corpus}/export/{model}/seed{seed}/model.json


use rule stage as export with:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        score=rules.score.output[0],
        source_model=rules.bpe.output.source_model,
        target_model=rules.bpe.output.target_model,
    output:
        "results/{experiment}/{corpus}/export/{model}/seed{seed}/model.json",
        "results/{experiment}/{corpus}/export/{model}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/export/{model}/seed{seed}/source.model",
        "results/{experiment}/{corpus}/export/{model}/seed{seed}/target.model",
        "results/{experiment}/{corpus}/export/{model}/seed{seed}/README.md",
    log:
        "results/{experiment}/{corpus}/logs/export_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/export_{model}_seed{seed}.tsv"
    resources:
        **needs({}, gigabytes=16, hours=4),
    params:
        **stage("exchange.export"),
