# Files that are fetched by their address. The rule declares only the card of a file: Snakemake deletes what a rule declares
# before the job and when it fails, and neither a file put there by hand nor hours of download shall be lost like that.

if FETCHED:

    rule download:
        output:
            f"{DOWNLOADS}/{{file}}.json",
        log:
            f"{DOWNLOADS}/logs/{{file}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/{{file}}.tsv"
        wildcard_constraints:
            file="|".join(re.escape(os.path.relpath(path, DOWNLOADS)) for path in FETCHED),
        # The stage tries again itself, and goes on where it stopped.
        retries: 0
        # Compute nodes often have no way out. `--resources downloads=2` fetches two files at a time.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
            mem_mb=500,
        params:
            path=lambda w: os.path.join(DOWNLOADS, w.file),
            # The function asks for the output since Snakemake then leaves it out of what makes a file stale: another
            # time limit or mirror fetches nothing again.
            settings=lambda w, output: download_settings(w.file, downloads=experiment.downloads.model_dump()),
            wanted=lambda w: download_settings(w.file),
        shell:
            "python -m specialized_heads.corpus.fetch.download --output {params.path:q} --card {output:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"
