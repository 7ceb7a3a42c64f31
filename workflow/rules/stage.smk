# What stages share: nearly every other rule is one of these with its own files and settings.


rule stage:
    log:
        "results/stage.log",
    conda:
        "../../envs/pipeline.yaml"
    params:
        flags=flags,
    shell:
        "python -m specialized_heads.{params.module:q} {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


# A stage that computes on a GPU, if there is one.
use rule stage as computing with:
    resources:
        **needs(GPU, gigabytes=16, hours=4),


# A stage that resumes from its state, which lies beside the outputs: Snakemake deletes these when a
# job fails.
rule resumable:
    log:
        "results/resumable.log",
    conda:
        "../../envs/pipeline.yaml"
    resources:
        **needs(GPU, gigabytes=16, hours=4),
    params:
        flags=flags,
        launcher="python -m",
        state=subpath(output[0], strip_suffix=".parquet"),
    message:
        "making {output[0]}; progress in {log}"
    # The log goes on where the state does.
    shell:
        "test -e {params.state:q}.state || : > {log:q}; "
        "{params.launcher} specialized_heads.{params.module:q} {params.flags:q} --state {params.state:q}.state"
        " --settings {params.settings:q} >> {log:q} 2>&1"


use rule resumable as training with:
    priority: 1  # before the short jobs, which fill the cores at the end
    resources:
        **needs(GPU, gigabytes=16, hours=48),
    params:
        launcher=launcher,
        state=subpath(output.records, parent=True),
