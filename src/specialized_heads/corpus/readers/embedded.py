"""Source embedded: a corpus in `resources/`, read as it is. The parses of its analysis sentences are beside it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specialized_heads.corpus.pairs import Blocks, check_languages, read_blocks
from specialized_heads.experiment.sources import Embedded
from specialized_heads.stage import read_json


def read(source: Embedded, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]) -> Blocks:
    """The pairs of the folder's corpus.parquet, in order. `files`: it, and its provenance.json."""
    known = read_json(files[1])
    check_languages(files[0], (known["source_language"], known["target_language"]), languages)
    yield from read_blocks(files[0])


def provenance(source: Embedded, files: Sequence[Path]) -> dict[str, Any]:
    """The packages that the corpus was made from, and its licence."""
    known = read_json(files[1])
    return {"made_from": known["packages"], "licence": known["licence"], "citation": ""}
