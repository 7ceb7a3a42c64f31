# Files that are fetched by their address. The rule declares only the card of a file: Snakemake deletes declared files before a job
# starts and when it fails, which would lose files placed by hand and hours of download.

if FETCHED:

    rule download:
        output:
            card=f"{DOWNLOADS}/{{file}}.json",
        log:
            f"{DOWNLOADS}/logs/{{file}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/{{file}}.tsv"
        wildcard_constraints:
            file="|".join(map(re.escape, FETCHED)),
        # The stage tries again itself, and resumes where it stopped.
        retries: 0
        # Compute nodes often have no internet access. `--resources downloads=2` fetches two files at a time.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
            mem_mb=500,
        params:
            path=lambda w, output: f"{DOWNLOADS}/{w.file}",
            wanted=settings(inputs.download_settings),
            # It takes the output, so that Snakemake does not count it among what makes a file stale: another time limit or
            # mirror fetches nothing again.
            settings=lambda w, output: settings(inputs.download_settings, downloads=experiment.downloads.model_dump())(
                w
            ),
        shell:
            "python -m specialized_heads.corpus.fetch.download --output {params.path:q} --card {output.card:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"
