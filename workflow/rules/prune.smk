# One model per scope and target (a λ or a number of heads): fine-tune the baseline with gates on its heads, then remove the closed
# ones (section 6).


use rule training as prune with:
    input:
        rules.train_baseline.output[1],
        baseline=rules.train_baseline.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        gates="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/gates.json",
        records="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/log.jsonl",
    log:
        "results/{experiment}/{corpus}/logs/prune_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_{scope}_{target}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    params:
        **stage("pruning.prune", stages.prune),
