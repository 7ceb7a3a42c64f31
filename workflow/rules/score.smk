# Translate the test set with every model and score it.


use rule stage as translate with:
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
        **stage("evaluation.translate", stages.translate),


use rule stage as score with:
    input:
        translation=rules.translate.output[0],
        tokenised=rules.translate.output.tokenised,
        baseline=planned(inputs.baseline_translation),
        counterpart=planned(inputs.counterpart_translation),
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
        **stage("evaluation.score", stages.score),
