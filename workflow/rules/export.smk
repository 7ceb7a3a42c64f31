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
    params:
        **stage("export", stages.export),
