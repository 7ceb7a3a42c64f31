"""Source debian: parallel text from Debian packages and the translations of their descriptions.

The source language is always English; documents are pages, text domains or packages. The sub-package `corpus.debian` reads the
formats from the archives that its stages `debian_package` and `debian_descriptions` fetch.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads.config.sources import Debian
from specialized_heads.corpus.debian import catalogues, descriptions, libreoffice, manuals
from specialized_heads.corpus.pairs import blocks
from specialized_heads.corpus.readers.archives import member, members
from specialized_heads.stage import UserError

# In the order of reading: each takes the files of its kind and the target language, and counts what it drops.
FORMATS = {"libreoffice": libreoffice, "gettext": catalogues, "manuals": manuals, "descriptions": descriptions}


def read(
    source: Debian, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of all selected texts; `counts` gains the counts of each format, prefixed with its name."""
    if source_language != "en":
        raise UserError(f"source_language {source_language}: Debian's texts are translated from English; set it to en")
    paths = defaultdict(list)
    for (kind, _), path in zip(source.files(target_language=target_language), files, strict=True):
        paths[kind].append(path)

    def rows() -> Iterator[tuple[str, str, str]]:
        for kind, module in FORMATS.items():
            if kind in paths:
                reasons = Counter[str]()
                yield from module.rows(paths[kind], language=target_language, counts=reasons)
                counts.update({f"{kind}_{reason}": number for reason, number in reasons.items() if number})

    yield from blocks(rows())


def provenance(source: Debian, files: Sequence[Path]) -> dict[str, Any]:
    """The packages with version, sha256 and licences, and the release of the descriptions."""
    packages: dict[str, Any] = {}
    more: dict[str, Any] = {}
    licences: set[str] = set()
    for path in files:
        try:
            if "packages.json" in members(path):
                cards = json.load(member(path, "packages.json"))
                packages |= {card["name"]: card for card in cards}
                licences |= {licence for card in cards for licence in card["licences"][:1]}
            else:
                more["descriptions"] = json.load(member(path, "index.json"))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(
                f"{path}: the pipeline did not write its description ({error}); delete the file and run again"
            ) from None
    licence = "; ".join([*sorted(licences), "of each package: its copyright file, kept beside its text"])
    return {"packages": list(packages.values()), **more, "licence": licence, "citation": ""}
