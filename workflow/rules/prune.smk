# One model per scope and target (a λ or a number of heads): fine-tune the baseline with gates on its heads, then remove the closed
# ones (section 6). The model with soft gates is written too, whether or not it is scored.


rule prune:
    input:
        rules.train_baseline.output[1],
        baseline=rules.train_baseline.output[0],
        train=rules.train_baseline.input.train,
        dev=rules.train_baseline.input.dev,
    output:
        "results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.safetensors",
        "results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        "results/{experiment}/{corpus}/models/soft/{scope}_{target}/seed{seed}/model.json",
        gates="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/gates.json",
        records="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/log.jsonl",
        soft="results/{experiment}/{corpus}/models/soft/{scope}_{target}/seed{seed}/model.safetensors",
    log:
        "results/{experiment}/{corpus}/logs/prune_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_{scope}_{target}_seed{seed}.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        code=code("pruning.prune"),
        flags=flags,
        launcher=launcher,
        settings=settings(stages.prune),
        state=subpath(output.records, parent=True),
    message:
        "pruning {wildcards.scope} heads of {wildcards.corpus} with {wildcards.target}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.pruning.prune {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"


# Which heads pruning removed, for all pruned models of a corpus.
rule dead_heads:
    input:
        gates=planned(inputs.pruned_gates),
    output:
        "results/{experiment}/{corpus}/dead_heads.json",
    log:
        "results/{experiment}/{corpus}/logs/dead_heads.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/dead_heads.tsv"
    wildcard_constraints:
        corpus=STUDIES,
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("pruning.dead_heads"),
        flags=flags,
        settings=settings(stages.dead_heads),
    shell:
        "python -m specialized_heads.pruning.dead_heads {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
