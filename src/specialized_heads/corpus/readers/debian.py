"""Source debian: parallel text from Debian packages and the translations of their descriptions.

The source language is always English; documents are pages, text domains or packages. The sub-package `corpus.debian` reads the
formats from the archives that its stages `debian_package` and `debian_descriptions` fetch.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads.config.sources import Debian
from specialized_heads.corpus.debian import catalogues, descriptions, libreoffice, manuals
from specialized_heads.corpus.pairs import blocks
from specialized_heads.corpus.readers.archives import member, members
from specialized_heads.stage import UserError


def read(
    source: Debian, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of all selected texts: LibreOffice, catalogues, manuals, descriptions.

    Args:
        files: those of `source.files()`, in its order.
        counts: gains the counts of each format, prefixed with its name.

    Raises:
        UserError: the source language is not English, a file is broken, or holds nothing in the target language.
    """
    if source_language != "en":
        raise UserError(f"source_language {source_language}: Debian's texts are translated from English; set it to en")
    yield from blocks(_rows(source, files, language=target_language, counts=counts))


def _rows(
    source: Debian, files: Sequence[Path], *, language: str, counts: Counter[str]
) -> Iterator[tuple[str, str, str]]:
    paths = dict(zip(source.files(target_language=language), files, strict=True))

    def of(kind: str) -> list[Path]:
        return [path for (of_kind, _), path in paths.items() if of_kind == kind]

    reasons = {kind: Counter[str]() for kind in ("libreoffice", "gettext", "manuals", "descriptions")}
    if source.libreoffice:
        yield from libreoffice.rows(*of("libreoffice"), counts=reasons["libreoffice"])
    for path in of("gettext"):
        yield from catalogues.rows(path, language=language, counts=reasons["gettext"])
    if source.manuals:
        yield from manuals.rows(of("manuals"), language=language, counts=reasons["manuals"])
    if source.descriptions:
        (path,) = of("descriptions")
        yield from descriptions.rows(
            path, source_language="en", target_language=language, counts=reasons["descriptions"]
        )
    counts.update({f"{kind}_{reason}": n for kind, some in reasons.items() for reason, n in some.items() if n})


def provenance(source: Debian, files: Sequence[Path]) -> dict[str, Any]:
    """The packages with version, sha256 and licences, and the release of the descriptions.

    Raises:
        UserError: an archive is damaged, or the pipeline did not write it.
    """
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
    return {
        "packages": list(packages.values()),
        **more,
        "licence": "; ".join([*sorted(licences), "of each package: its copyright file, kept beside its text"]),
        "citation": "",
    }
