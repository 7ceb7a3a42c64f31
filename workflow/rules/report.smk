# Every figure and table: one rule for each row of src/specialized_heads/planning/figures.py. Then the configuration as it was used.


for result in all_results(experiment):

    rule:
        name:
            result.rule
        input:
            result.needs,
            **result.inputs,
        output:
            **shown(result),
        log:
            f"results/{{experiment}}/logs/{result.rule}.log",
        benchmark:
            f"results/{{experiment}}/benchmarks/{result.rule}.tsv"
        group:
            "figures"
        conda:
            "../../envs/pipeline.yaml"
        params:
            code=code(f"report.{result.module}", "report.make"),
            module=f"specialized_heads.report.{result.module}",
            flags=figure_flags(result),
            settings=constant(**result.settings),
        shell:
            "python -m specialized_heads.report.make {params.module:q} {params.flags:q} --settings {params.settings:q} "
            "> {log:q} 2>&1"


# All that was measured, in five tables.
use rule stage as gather with:
    input:
        planned(tables.files),
    output:
        "results/{experiment}/data/{table}.parquet",
    log:
        "results/{experiment}/logs/gather_{table}.log",
    benchmark:
        "results/{experiment}/benchmarks/gather_{table}.tsv"
    group:
        "figures"
    params:
        **stage("report.gather", tables.settings),


use rule stage as configuration with:
    output:
        "results/{experiment}/configuration.yaml",
    log:
        "results/{experiment}/logs/configuration.log",
    benchmark:
        "results/{experiment}/benchmarks/configuration.tsv"
    group:
        "figures"
    params:
        module="report.configuration",
        code=code("report.configuration"),
        settings=constant(**experiment.model_dump(mode="json")),
