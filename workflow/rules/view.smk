# Attention maps, labels and trees of a model, in a page that works from disk.


rule view_heads:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        source_bpe="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target_bpe="results/{experiment}/{corpus}/corpus/bpe.target.model",
        text="results/{experiment}/{corpus}/corpus/analysis.parquet",
        analysis="results/{experiment}/{corpus}/corpus/tokens/analysis.safetensors",
        parses="results/{experiment}/{corpus}/parses/analysis.parquet",
        heads="results/{experiment}/{corpus}/heads/{model}/seed{seed}.parquet",
        code=code("specialized_heads.viewer.page"),
        parts=viewer_files("page.html", "page.css", "page.js", "table.js", "lines.js"),
    output:
        PAGE,
    log:
        "results/{experiment}/{corpus}/logs/view_heads_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/view_heads_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps(
            {
                "sentences": experiment.for_corpus(w.corpus).heads.viewer_sentences,
                "title": title(w.corpus),
                "model": w.model,
                "seed": int(w.seed),
                "preprocess": experiment.for_corpus(w.corpus).vocabulary.preprocess,
                "language": experiment.corpora[w.corpus].source_language,
                "device": experiment.device,
            },
            ensure_ascii=False,
        ),
    shell:
        "python -m specialized_heads.viewer.page --model {input.model:q} --source-bpe {input.source_bpe:q}"
        " --target-bpe {input.target_bpe:q} --text {input.text:q} --analysis {input.analysis:q}"
        " --parses {input.parses:q} --heads {input.heads:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule viewer_index:
    input:
        pages=viewed_files(PAGE),
        heads=viewed_files("results/{experiment}/{corpus}/heads/{model}/seed{seed}.parquet"),
        code=code("specialized_heads.viewer.index"),
        parts=viewer_files("page.css"),
    output:
        "results/{experiment}/viewer/index.html",
    log:
        "results/{experiment}/logs/viewer_index.log",
    benchmark:
        "results/{experiment}/benchmarks/viewer_index.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps(
            {
                "experiment": w.experiment,
                "entries": [
                    {"title": title(corpus), "model": model, "page": f"{corpus}/{model}/seed{SEED}.html"}
                    for corpus, model in viewed()
                ],
            },
            ensure_ascii=False,
        ),
    shell:
        "python -m specialized_heads.viewer.index --heads {input.heads:q} --output {output:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
