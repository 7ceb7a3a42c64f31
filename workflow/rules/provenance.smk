# Where every result comes from, in the form that other tools read: the jobs that Snakemake has recorded, made last of all.


use rule stage as provenance with:
    input:
        "results/{experiment}/tables/run_times.csv",
        environment="results/{experiment}/tables/environment.csv",
        cards=[f"results/{{experiment}}/{corpus}/corpus/raw.json" for corpus in experiment.corpora],
    output:
        report(
            "results/{experiment}/ro-crate-metadata.json",
            caption="../report/provenance.rst",
            category="Runs",
            labels={"Result": "Provenance (RO-Crate)"},
        ),
        workflow="results/{experiment}/Snakefile",
    log:
        "results/{experiment}/logs/provenance.log",
    benchmark:
        "results/{experiment}/benchmarks/provenance.tsv"
    # The records are where Snakemake runs.
    localrule: True
    params:
        module="provenance",
        code=code("provenance"),
        settings=constant(experiment=experiment.experiment),
