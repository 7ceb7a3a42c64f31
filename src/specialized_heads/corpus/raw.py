"""Stage raw: write a source of parallel text to one parquet file, unfiltered, and describe its origin in a card.

This stage decides the document of a pair (that of the source, or empty if the clean stage is to group pairs by sentence) and
which pairs a `limit` keeps: the same random sample in every run, in the original order, of the pairs that the source does not
assign to a held-out set. The source is read once, block by block; the sample is drawn from the file that was written.
"""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from specialized_heads.corpus.fetch.datasets import files_of
from specialized_heads.corpus.pairs import read_blocks, select, write_blocks
from specialized_heads.experiment.sources import Source
from specialized_heads.languages import doubtful
from specialized_heads.stage import Files, Section, UserError, atomic, command, file_hash, log, read_json, write_json

# Models of all seeds share the corpus, so the sample must not depend on a seed.
LIMIT_SEED = 1


class Settings(Section):
    source: Source
    source_language: str
    target_language: str


def card(settings: Settings, files: Sequence[Path], *, provenance: dict[str, Any]) -> dict[str, Any]:
    """Name, bytes and sha256 of each file, which must be the known ones; address, licence and citation as far as known."""
    source = settings.source
    known = files_of(source, (settings.source_language, settings.target_language))
    entries = []
    for path, dataset in zip_longest(files, known):
        entry: dict[str, Any] = {"file": path.name, "bytes": path.stat().st_size, "sha256": file_hash(path)}
        if dataset:
            fetched = path.with_name(f"{path.name}.json")
            if fetched.exists() and read_json(fetched).get("sha256", entry["sha256"]) != entry["sha256"]:
                raise UserError(f"{path}: was replaced after {fetched} was written; delete {fetched} and run again")
            if dataset.sha256 not in (None, entry["sha256"]):
                raise UserError(
                    f"{path}: sha256 is {entry['sha256']}, expected {dataset.sha256}; delete it and {path}.json to fetch it "
                    "again, or place the right file there"
                )
            entry |= {"dataset": dataset.name} | {key: getattr(dataset, key) for key in ("url", "licence", "citation")}
        entries.append(entry)
    shared = {name: "; ".join(dict.fromkeys(getattr(row, name) for row in known)) for name in ("licence", "citation")}
    shared["licence"] = shared["licence"] or "not stated"
    return {"kind": source.kind, "files": entries} | shared | provenance


@command("output", "card", many=("resource",), settings=Settings)
def main(files: Files, settings: Settings) -> None:
    source = settings.source
    for path in files.resource:
        if not path.is_file():
            fetched = path.with_name(f"{path.name}.json")
            remedy = f"delete {fetched} too" if fetched.exists() else "check the source's paths in the configuration"
            raise UserError(f"{path}: no such file; {remedy} and run again")
    # Only the reader of this kind of source is imported, so that changes to others do not make the corpus stale.
    reader = import_module(f"specialized_heads.corpus.readers.{source.kind}")
    provenance = reader.provenance(source, files.resource) if hasattr(reader, "provenance") else {}
    described = card(settings, files.resource, provenance=provenance)

    dropped: Counter[str] = Counter()
    languages = (settings.source_language, settings.target_language)
    for warning in filter(None, map(doubtful, languages)):
        log.warning("language: %s", warning)
    with atomic(files.output) as everything:
        rows = write_blocks(everything, reader.read(source, files.resource, languages=languages, counts=dropped))
        held = [pc.not_equal(batch["set"], "").to_numpy(False) for batch in read_blocks(everything, columns=["set"])]
        kept = np.concatenate([np.zeros(0, bool), *held])
        free = np.flatnonzero(~kept)
        read = rows + dropped.total()
        if not len(free):
            raise UserError(f"no pair was read from {', '.join(map(str, files.resource))}; dropped: {dict(dropped)}")
        limit = getattr(source, "limit", None)
        if limit is not None and limit < len(free):
            dropped["over_limit"] = len(free) - limit
            kept[np.random.default_rng(LIMIT_SEED).choice(free, limit, replace=False)] = True
            rows = write_blocks(everything, select(everything, np.flatnonzero(kept)))
    described |= {"read": read, "dropped": dict(sorted(dropped.items())), "pairs": rows}
    write_json(files.card, described)
    log.info("raw: %d of %d pairs; dropped %s", rows, read, dict(dropped))
