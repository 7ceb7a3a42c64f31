"""Source pypi: a file of pairs inside the source distribution of a Python package, of any format that `local` reads.

The default is Tatoeba, English to French: `data/fra-eng.zip` of a tutorial's package, a table of sentences, translations and
authors. An English sentence with several translations has several rows, so pairs have no document, and the clean stage
groups those that share a sentence.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads.config.sources import Pypi
from specialized_heads.corpus.pairs import check_languages
from specialized_heads.corpus.readers.archives import member, members
from specialized_heads.corpus.readers.local import read_pairs_file
from specialized_heads.stage import UserError

LICENCES = {
    "nmt==0.0.6": "CC-BY 2.0 France; sentences of the Tatoeba project, selected by Charles Kelly (manythings.org), "
    "authors in the third column of the file"
}
LANGUAGES = {("nmt==0.0.6", "data/fra-eng.zip"): ("en", "fr")}  # of source and target


def read(
    source: Pypi, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of the member, in order; no documents. `files`: the source distribution; `counts`: as for `local`."""
    (path,) = files
    if known := LANGUAGES.get((source.requirement, source.member)):
        check_languages(path, known, (source_language, target_language))
    names = {name.partition("/")[2]: name for name in members(path)}
    if source.member not in names:
        data = [name for name in names if not name.endswith((".py", ".txt", ".cfg", "PKG-INFO"))]
        raise UserError(
            f"{path}: no file {source.member} in it; it holds {', '.join(data[:5]) or 'no data'}; set member"
        )
    # A zip archive is read from its end, so one inside an archive is copied out.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(source.member).name
        with member(path, names[source.member]) as stream, open(copy, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield from read_pairs_file(copy, group_by="sentence", counts=counts)


def provenance(source: Pypi, files: Sequence[Path]) -> dict[str, Any]:
    """The package, and the licence of its text if known."""
    name, _, version = source.requirement.partition("==")
    package = {"name": name, "version": version, "file": files[0].name, "member": source.member}
    return {"packages": [package], "licence": LICENCES.get(source.requirement, "see the package"), "citation": ""}
