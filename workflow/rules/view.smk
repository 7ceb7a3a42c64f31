# Attention maps, labels and trees of a model, in a page that works from disk.


rule view_heads:
    input:
        rules.importance.input[0],
        model=rules.importance.input.model,
        source_bpe=rules.bpe.output.source_model,
        target_bpe=rules.bpe.output.target_model,
        text=rules.corpus_split.output.analysis,
        analysis=rules.analyse_heads.input.analysis,
        parses=rules.parse.output[0],
        heads=rules.analyse_heads.output[0],
        whole=rules.train_baseline.output[1],
    output:
        "results/{experiment}/viewer/{corpus}/{model}/seed{seed}.html",
    log:
        "results/{experiment}/{corpus}/logs/view_heads_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/view_heads_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("viewer.page", data=("page.html", "page.css", "page.js", "table.js", "lines.js")),
        flags=flags,
        settings=settings(stages.view),
    shell:
        "python -m specialized_heads.viewer.page {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"


rule viewer_index:
    input:
        planned(inputs.viewed_files, pattern=inputs.PAGE),
        heads=planned(inputs.viewed_files, pattern=inputs.HEADS),
    output:
        "results/{experiment}/viewer/index.html",
    log:
        "results/{experiment}/logs/viewer_index.log",
    benchmark:
        "results/{experiment}/benchmarks/viewer_index.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        code=code("viewer.index", data=("page.css",)),
        flags=flags,
        settings=settings(stages.view_index),
    shell:
        "python -m specialized_heads.viewer.index {params.flags:q} --settings {params.settings:q} > {log:q} 2>&1"
