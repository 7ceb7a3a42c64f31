# One model per scope and target (a λ or a number of heads): fine-tune the baseline with gates on its heads, then remove
# the closed ones (section 6). The model with soft gates comes with it, whether it is scored or not.


rule prune:
    input:
        baseline="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/baseline/seed{seed}/model.json",
        train="results/{experiment}/{corpus}/corpus/tokens/train.safetensors",
        dev="results/{experiment}/{corpus}/corpus/tokens/dev.safetensors",
        code=code("specialized_heads.pruning.prune"),
    output:
        weights="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/model.json",
        gates="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/gates.json",
        log="results/{experiment}/{corpus}/models/pruned/{scope}_{target}/seed{seed}/log.jsonl",
        soft="results/{experiment}/{corpus}/models/soft/{scope}_{target}/seed{seed}/model.safetensors",
        soft_description="results/{experiment}/{corpus}/models/soft/{scope}_{target}/seed{seed}/model.json",
    log:
        "results/{experiment}/{corpus}/logs/prune_{scope}_{target}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/prune_{scope}_{target}_seed{seed}.tsv"
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        launcher=launcher,
        settings=pruning_settings,
        state=subpath(output.weights, parent=True),
    message:
        "pruning {wildcards.scope} heads of {wildcards.corpus} with {wildcards.target}; progress in {log}"
    shell:
        "{params.launcher} specialized_heads.pruning.prune --baseline {input.baseline:q} --train {input.train:q}"
        " --dev {input.dev:q} --output {output.weights:q} --gates {output.gates:q} --records {output.log:q}"
        " --soft {output.soft:q} --state {params.state:q}.state --settings {params.settings:q} > {log:q} 2>&1"
