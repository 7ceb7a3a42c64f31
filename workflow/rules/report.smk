# The paper's figures and tables. Each reads a few tables of results, and writes the numbers that it shows beside it.

SEED = experiment.seeds[
    0
]  # figures of single heads show one model; heads of different seeds cannot be averaged


def figure_outputs(name):
    """A figure in its three formats, and its numbers; the report shows one of them."""
    stem = "results/{experiment}/figures/" + name
    shown = report(stem + ".png", caption=f"../report/{name}.rst", category="Figures")
    return {
        "pdf": stem + ".pdf",
        "svg": stem + ".svg",
        "png": shown,
        "csv": stem + ".csv",
    }


def table_outputs(name):
    """A table as Markdown and LaTeX, and its numbers."""
    stem = "results/{experiment}/tables/" + name
    shown = report(stem + ".csv", caption=f"../report/{name}.rst", category="Tables")
    return {"markdown": stem + ".md", "latex": stem + ".tex", "csv": shown}


def of_corpora(path, names):
    """Input function: one file of each of these corpora, shown in the order of the configuration."""
    return lambda w: expand(path, experiment=w.experiment, corpus=names, seed=SEED)


def titles(names):
    """Settings of a figure that shows these corpora."""
    return json.dumps({"titles": [title(name) for name in names]}, ensure_ascii=False)


def shown_stem(wildcards, output):
    """The path of a figure or table without its suffix."""
    return output.csv.removesuffix(".csv")


PRIMARY = corpora()[:1]
RELATIONS = "results/{experiment}/{corpus}/parses/relations.parquet"
BASELINE_HEADS = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.parquet"
EXAMPLES = "results/{experiment}/{corpus}/heads/baseline/seed{seed}.examples.json"
SCORES = "results/{experiment}/{corpus}/scores.parquet"


rule figure1:
    input:
        heads=of_corpora(BASELINE_HEADS, PRIMARY),
        code=code("specialized_heads.report.figure1"),
    output:
        **figure_outputs("figure1"),
    log:
        "results/{experiment}/logs/figure1.log",
    benchmark:
        "results/{experiment}/benchmarks/figure1.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure1 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure2:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()[1:]),
        code=code("specialized_heads.report.figure2"),
    output:
        **figure_outputs("figure2"),
    log:
        "results/{experiment}/logs/figure2.log",
    benchmark:
        "results/{experiment}/benchmarks/figure2.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()[1:]),
    shell:
        "python -m specialized_heads.report.figure2 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure3:
    input:
        relations=of_corpora(RELATIONS, PRIMARY),
        code=code("specialized_heads.report.figure3"),
    output:
        **figure_outputs("figure3"),
    log:
        "results/{experiment}/logs/figure3.log",
    benchmark:
        "results/{experiment}/benchmarks/figure3.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure3 --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure4:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()),
        relations=of_corpora(RELATIONS, corpora()),
        code=code("specialized_heads.report.figure4"),
    output:
        **figure_outputs("figure4"),
    log:
        "results/{experiment}/logs/figure4.log",
    benchmark:
        "results/{experiment}/benchmarks/figure4.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()),
    shell:
        "python -m specialized_heads.report.figure4 --heads {input.heads:q} --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure5:
    input:
        examples=of_corpora(EXAMPLES, PRIMARY),
        code=code("specialized_heads.report.figure5"),
    output:
        **figure_outputs("figure5"),
    log:
        "results/{experiment}/logs/figure5.log",
    benchmark:
        "results/{experiment}/benchmarks/figure5.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(PRIMARY),
    shell:
        "python -m specialized_heads.report.figure5 --examples {input.examples:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure6:
    input:
        code=code("specialized_heads.report.figure6"),
    output:
        **figure_outputs("figure6"),
    log:
        "results/{experiment}/logs/figure6.log",
    benchmark:
        "results/{experiment}/benchmarks/figure6.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
    shell:
        "python -m specialized_heads.report.figure6 --output {params.stem:q}"
        " > {log:q} 2>&1"


rule figure7:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)),
        code=code("specialized_heads.report.figure7"),
    output:
        **figure_outputs("figure7"),
    log:
        "results/{experiment}/logs/figure7.log",
    benchmark:
        "results/{experiment}/benchmarks/figure7.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.figure7 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


def encoder_series(wildcards):
    """The models whose surviving heads figure 8 shows: the baseline and the encoder-pruned ones of the first corpus."""
    return models(PRIMARY[0], "baseline", "pruned", scopes=["encoder"])


rule figure8:
    input:
        heads=lambda w: expand(
            "results/{experiment}/{corpus}/heads/{model}/seed{seed}.parquet",
            experiment=w.experiment,
            corpus=PRIMARY,
            model=encoder_series(w),
            seed=SEED,
        ),
        code=code("specialized_heads.report.figure8"),
    output:
        **figure_outputs("figure8"),
    log:
        "results/{experiment}/logs/figure8.log",
    benchmark:
        "results/{experiment}/benchmarks/figure8.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=lambda w: json.dumps(
            {"names": encoder_series(w), "title": title(PRIMARY[0])},
            ensure_ascii=False,
        ),
    shell:
        "python -m specialized_heads.report.figure8 --heads {input.heads:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure9:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)[:1]),
        code=code("specialized_heads.report.figure9"),
    output:
        **figure_outputs("figure9"),
    log:
        "results/{experiment}/logs/figure9.log",
    benchmark:
        "results/{experiment}/benchmarks/figure9.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)[:1]),
    shell:
        "python -m specialized_heads.report.figure9 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule figure10:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)[:1]),
        code=code("specialized_heads.report.figure10"),
    output:
        **figure_outputs("figure10"),
    log:
        "results/{experiment}/logs/figure10.log",
    benchmark:
        "results/{experiment}/benchmarks/figure10.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)[:1]),
    shell:
        "python -m specialized_heads.report.figure10 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table1:
    input:
        heads=of_corpora(BASELINE_HEADS, corpora()),
        relations=of_corpora(RELATIONS, corpora()),
        code=code("specialized_heads.report.table1"),
    output:
        **table_outputs("table1"),
    log:
        "results/{experiment}/logs/table1.log",
    benchmark:
        "results/{experiment}/benchmarks/table1.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora()),
    shell:
        "python -m specialized_heads.report.table1 --heads {input.heads:q} --relations {input.relations:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule table2:
    input:
        scores=of_corpora(SCORES, corpora(pruned=True)),
        code=code("specialized_heads.report.table2"),
    output:
        **table_outputs("table2"),
    log:
        "results/{experiment}/logs/table2.log",
    benchmark:
        "results/{experiment}/benchmarks/table2.tsv"
    conda:
        "../../envs/pipeline.yaml"
    params:
        stem=shown_stem,
        settings=titles(corpora(pruned=True)),
    shell:
        "python -m specialized_heads.report.table2 --scores {input.scores:q} --output {params.stem:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
