# What stages share: nearly every other rule is one of these two with its own files and settings.


rule stage:
    log:
        "results/stage.log",
    conda:
        "../../envs/pipeline.yaml"
    params:
        flags=flags,
    shell:
        "python -m specialized_heads.{params.module:q} {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule training:
    log:
        "results/training.log",
    priority: 1  # before the short jobs, which fill the cores at the end
    conda:
        "../../envs/pipeline.yaml"
    threads: 1
    params:
        flags=flags,
        launcher=launcher,
    shell:
        "{params.launcher} specialized_heads.{params.module:q} {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"
