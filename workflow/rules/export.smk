# A model as a folder of its own, for use outside of the study. Made on request:
# snakemake results/{experiment}/{corpus}/export/{model}/seed{seed}/model.json


rule export:
    input:
        model="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.safetensors",
        description="results/{experiment}/{corpus}/models/{model}/seed{seed}/model.json",
        score="results/{experiment}/{corpus}/models/{model}/seed{seed}/score.json",
        source="results/{experiment}/{corpus}/corpus/bpe.source.model",
        target="results/{experiment}/{corpus}/corpus/bpe.target.model",
        code=code("specialized_heads.export"),
    output:
        description="results/{experiment}/{corpus}/export/{model}/seed{seed}/model.json",
        weights="results/{experiment}/{corpus}/export/{model}/seed{seed}/model.safetensors",
        source="results/{experiment}/{corpus}/export/{model}/seed{seed}/source.model",
        target="results/{experiment}/{corpus}/export/{model}/seed{seed}/target.model",
        readme="results/{experiment}/{corpus}/export/{model}/seed{seed}/README.md",
    log:
        "results/{experiment}/{corpus}/logs/export_{model}_seed{seed}.log",
    benchmark:
        "results/{experiment}/{corpus}/benchmarks/export_{model}_seed{seed}.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        settings=lambda w: json.dumps(
            {
                "experiment": w.experiment,
                "corpus": w.corpus,
                "model": w.model,
                "seed": int(w.seed),
                "source_language": experiment.corpora[w.corpus].source_language,
                "target_language": experiment.corpora[w.corpus].target_language,
                "entities": experiment.corpora[w.corpus].filters.entities,
                "preprocess": experiment.for_corpus(w.corpus).vocabulary.preprocess,
                "decoding": experiment.for_corpus(w.corpus).decoding.model_dump(),
            }
        ),
    shell:
        "python -m specialized_heads.export --model {input.model:q} --source-model {input.source:q}"
        " --target-model {input.target:q} --score {input.score:q} --output {output.description:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
