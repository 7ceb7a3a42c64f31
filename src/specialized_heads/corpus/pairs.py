"""Stage raw: write a source to a file of pairs, unfiltered; and how all stages read and write such
files.

A file of pairs is parquet with the string columns `source`, `target` and `document`, one row per
pair.

A document is never divided between training and held-out sets. If the source has no documents, the
column is empty, and the clean stage derives them from the sentences. Before the split there is a
fourth column, `set`: the held-out set (`dev`, `test` or `analysis`) that the source assigns a pair
to, empty for all other pairs.

A corpus of millions is never held as Python strings: stages pass it in blocks (Arrow record
batches).

The raw stage decides the document of a pair (that of the source, or empty) and which pairs a
`limit` keeps: the same random sample in every run, in the original order, of the pairs that the
source does not assign to a held-out set. The source is read once, block by block; the sample is
drawn from the file that was written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specialized_heads import stage
from specialized_heads.experiment.sources import Source
from specialized_heads.languages import doubtful
from specialized_heads.tables import unreadable

SIDES = ("source", "target")
COLUMNS = (*SIDES, "document")
SCHEMA = pa.schema([(name, pa.string()) for name in (*COLUMNS, "set")])
HELD_OUT = ("analysis", "test", "dev")  # in the order of dealing
BLOCK = 65_536  # pairs per row group of a file
READ = 8_192  # pairs per block that is read: its data should fit into the caches of a processor
# Models of all seeds share the corpus, so the sample must not depend on a seed.
LIMIT_SEED = 1
Blocks = Iterator[pa.RecordBatch]  # pairs in the columns of `SCHEMA`, in order


def blocks(rows: Iterable[tuple[str, str, str]], *, set_: str = "") -> Blocks:
    """Blocks of pairs of one set, from rows of source, target and document."""
    rows = iter(rows)
    while some := list(islice(rows, BLOCK)):
        columns = [pa.array(column, pa.string()) for column in zip(*some, strict=True)]
        yield pa.record_batch([*columns, pa.repeat(set_, len(some))], schema=SCHEMA)


def write_blocks(
    path: Path, blocks: Iterable[pa.RecordBatch], *, schema: pa.Schema = SCHEMA
) -> int:
    """Write blocks of any size as zstd parquet, atomically; returns the number of pairs."""
    total = 0
    # With checksums, damage is detected when a page is read.
    options = {"compression": "zstd", "write_page_checksum": True}
    with stage.atomic(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in blocks:
            waiting.append(batch)
            total += batch.num_rows
            if sum(block.num_rows for block in waiting) >= BLOCK:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    return total


def read_blocks(path: Path, *, columns: Sequence[str] = tuple(SCHEMA.names)) -> Blocks:
    """The blocks of a file, in order, as strings; missing values or a missing `set` are empty."""

    def text(batch: pa.RecordBatch, name: str) -> pa.StringArray:
        if name not in batch.schema.names:
            return pa.repeat("", batch.num_rows)
        return pc.fill_null(batch[name].cast(pa.string()), "")

    try:
        # Pre-buffering would read the whole file at the start.
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            there = [name for name in columns if name in file.schema_arrow.names]
            if missing := set(columns) - {"set", *there}:
                raise stage.UserError(f"{path}: column {min(missing)} is missing")
            for batch in file.iter_batches(READ, columns=there):
                yield pa.record_batch([text(batch, name) for name in columns], names=list(columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, what="sentence pairs") from None


def beside(path: Path, rows: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
    """The blocks of a file, each with its part of `rows`, which has a row per pair."""
    start = 0
    for block in read_blocks(path):
        yield block, rows[start : start + block.num_rows]
        start += block.num_rows


def select(path: Path, rows: np.ndarray, *, columns: Sequence[str] = tuple(SCHEMA.names)) -> Blocks:
    """The blocks of a file, reduced to some of its rows, which are in ascending order."""
    start = 0
    for block in read_blocks(path, columns=columns):
        here = rows[slice(*np.searchsorted(rows, [start, start + block.num_rows]))]
        if len(here):
            yield block.take(pa.array(here - start))
        start += block.num_rows


class Settings(stage.Section):
    source: Source
    source_language: str
    target_language: str


def card(settings: Settings, files: Sequence[Path]) -> dict[str, Any]:
    """Name, bytes and sha256 of each file, which must be the known ones; address, licence and
    citation as far as known."""
    known = settings.source.datasets((settings.source_language, settings.target_language))
    entries = []
    for path, dataset in zip_longest(files, known):
        sha256, size = stage.file_hash(path), path.stat().st_size
        entry: dict[str, Any] = {"file": path.name, "bytes": size, "sha256": sha256}
        if dataset:
            fetched = path.with_name(f"{path.name}.json")
            if fetched.exists() and stage.read_json(fetched).get("sha256", sha256) != sha256:
                raise stage.UserError(
                    f"{path}: was replaced after {fetched} was written; delete {fetched} and run "
                    f"again"
                )
            if dataset.sha256 not in (None, sha256):
                raise stage.UserError(
                    f"{path}: sha256 is {sha256}, expected {dataset.sha256}; delete it and "
                    f"{path}.json to fetch it again, or place the right file there"
                )
            entry["dataset"] = dataset.name
            entry |= {key: getattr(dataset, key) for key in ("url", "licence", "citation")}
        entries.append(entry)
    shared = {
        name: "; ".join(dict.fromkeys(getattr(row, name) for row in known))
        for name in ("licence", "citation")
    }
    shared["licence"] = shared["licence"] or "not stated"
    source = settings.source
    return {"kind": source.kind, "files": entries} | shared | source.provenance(files)


@stage.command("output", "card", many=("resource",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    source = settings.source
    for path in files.resource:
        if not path.is_file():
            remedy = "check the source's paths in the configuration"
            if (fetched := path.with_name(f"{path.name}.json")).exists():
                remedy = f"delete {fetched} too"
            raise stage.UserError(f"{path}: no such file; {remedy} and run again")
    # Only the reader of this kind of source is imported, so that changes to others do not make the
    # corpus stale.
    module, function = source.reader.split(".")
    read_source = getattr(import_module(f"specialized_heads.corpus.readers.{module}"), function)
    described = card(settings, files.resource)

    dropped: Counter[str] = Counter()
    languages = (settings.source_language, settings.target_language)
    for warning in filter(None, map(doubtful, languages)):
        stage.log.warning("language: %s", warning)
    blocks_of_source = read_source(source, files.resource, languages=languages, counts=dropped)
    with stage.atomic(files.output) as everything:
        rows = write_blocks(everything, blocks_of_source)
        held = [
            pc.not_equal(batch["set"], "").to_numpy(False)
            for batch in read_blocks(everything, columns=["set"])
        ]
        kept = np.concatenate([np.zeros(0, bool), *held])
        free = np.flatnonzero(~kept)
        read = rows + dropped.total()
        if not len(free):
            read_from = ", ".join(map(str, files.resource))
            raise stage.UserError(f"no pair was read from {read_from}; dropped: {dict(dropped)}")
        limit = getattr(source, "limit", None)
        if limit is not None and limit < len(free):
            dropped["over_limit"] = len(free) - limit
            kept[np.random.default_rng(LIMIT_SEED).choice(free, limit, replace=False)] = True
            rows = write_blocks(everything, select(everything, np.flatnonzero(kept)))
    described |= {"read": read, "dropped": dict(sorted(dropped.items())), "pairs": rows}
    stage.write_json(files.card, described)
    stage.log.info("raw: %d of %d pairs; dropped %s", rows, read, dict(dropped))
