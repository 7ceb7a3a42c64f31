"""Source local: your own text, as one file of pairs or two files with one sentence per line.

A file of pairs is TSV (source TAB target, optionally TAB document) or parquet (columns `source`, `target`, optionally
`document`); any file may be packed (`archives`). Held-out sets can be files of pairs too. Of an analysis set only the source
side is used, so its lines need no target. Further columns are ignored.

Blank lines, and rows in which a text is null, are not pairs; they are counted.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from specialized_heads.corpus.pairs import BLOCK, COLUMNS, blocks
from specialized_heads.corpus.readers.archives import (
    ARCHIVES,
    aligned,
    data_member,
    disguised,
    lines,
    open_packed,
    packing,
)
from specialized_heads.experiment.sources import Local, Unit
from specialized_heads.stage import UserError

GROUP = "add it, or set group_by to 'sentence'"


def read(
    source: Local, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of all files; `set` names the held-out set of those that you give.

    Args:
        files: those of `source.files()`, in its order.
        counts: gains `blank_line` (also where both sides of a pair are blank) and `null`.

    Raises:
        UserError: a file is missing, empty, damaged or in another format (with the line or row).
    """
    paths = dict(zip(source.files(), files, strict=True))
    for path in files:
        if not path.is_file():
            raise UserError(f"{path}: no such file; check the source's paths in the configuration")
    for key, path in paths.items():
        if key == "source_path":
            yield from read_two_texts(path, paths["target_path"], counts=counts)
        elif key != "target_path":
            set_ = "" if key == "path" else key
            yield from read_pairs_file(path, group_by=source.group_by, counts=counts, set_=set_)


def provenance(source: Local, files: Sequence[Path]) -> dict[str, Any]:
    """The licence that the configuration states."""
    return {"licence": source.licence, "citation": ""}


def read_pairs_file(path: Path, *, group_by: Unit, counts: Counter[str], set_: str = "") -> Iterator[pa.RecordBatch]:
    """The blocks of a file of pairs, all of one set.

    Args:
        path: parquet if its name (without packing; in an archive, the name of its file) ends in .parquet, else TSV.
        group_by: `document` needs the third column; `sentence` leaves the documents empty. A held-out set without documents
            is one document.
        counts: as for `read`.
        set_: `analysis` needs no targets.
    """
    kind = packing(path)
    if not kind and (suffix := disguised(path)) is not None:
        raise UserError(f"{path}: its content is a {suffix} file; rename it to end in {suffix}")
    inner = data_member(path) if kind in ARCHIVES else path.stem if kind else path.name
    nulls = pairs = 0

    def rows() -> Iterator[tuple[str, str, str]]:
        nonlocal nulls, pairs
        if inner.lower().endswith(".parquet"):
            found = _parquet_rows(path, columns=COLUMNS if group_by == "document" else COLUMNS[:2], set_=set_)
        else:
            found = _tsv_rows(path, counts=counts, set_=set_)
        for where, source, target, document in found:
            target = target or "" if set_ == "analysis" else target
            if source is None or target is None:
                nulls += 1
                continue
            if group_by == "document" and not (document := document or (f"{set_}\n" if set_ else "")):
                raise UserError(f"{path}: {where}: no document for this pair; {GROUP}")
            pairs += 1
            yield source, target, document if group_by == "document" else ""

    yield from blocks(rows(), set_=set_)
    if not pairs:
        what = f"all of its {nulls} rows lack a side" if nulls else "the file is empty"
        raise UserError(f"{path}: {what}; it must hold at least one pair")
    if nulls:
        counts["null"] += nulls


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or packed. Lines that end in a carriage return alone, as on old Macs, are refused."""
    for number, line in enumerate(lines(path), start=1):
        if "\0" in line or "\x1b" in line:
            raise UserError(
                f"{path}: line {number}: a NUL or escape character, as in text in UTF-16 or ISO-2022; convert the file to UTF-8"
            )
        if "\r" in line:
            raise UserError(
                f"{path}: line {number}: a carriage return within the line; end each line with a line feed (`tr '\\r' '\\n'` "
                "does so where lines end with carriage returns alone)"
            )
        yield line


def _tsv_rows(path: Path, *, counts: Counter[str], set_: str) -> Iterator[tuple[str, str, str, str]]:
    """Place, source, target and document of each line."""
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            counts["blank_line"] += 1
            continue
        source, *rest = line.split("\t")
        if not rest and set_ != "analysis":
            raise UserError(f"{path}: line {number}: no tab; each line must be source TAB target (TAB document)")
        target, document, *_ = [*rest, "", ""]
        yield f"line {number}", source, target, document.strip()


def _parquet_rows(path: Path, *, columns: Sequence[str], set_: str) -> Iterator[tuple[str, str, str, str]]:
    """Place, source, target and document of each row; None for missing values."""
    optional = ["document"] * bool(set_) + ["target"] * (set_ == "analysis")
    first = 1
    try:
        with _seekable(path) as stream, pq.ParquetFile(stream) as file:
            names = file.schema_arrow.names
            for name in columns:
                if name not in [*names, *optional]:
                    there = f"there are {', '.join(names) or 'none'}" + (f"; {GROUP}" if name == "document" else "")
                    raise UserError(f"{path}: column {name} is missing; {there}")
                if (number := names.count(name)) > 1:
                    raise UserError(f"{path}: there are {number} columns {name}; leave one")
                if number and not _is_text(kind := file.schema_arrow.field(name).type):
                    raise UserError(f"{path}: column {name} is {kind}; it must be text")
            for batch in file.iter_batches(BLOCK, columns=[name for name in columns if name in names]):
                texts = {name: [None] * len(batch) for name in COLUMNS}
                for name in batch.schema.names:
                    try:
                        texts[name] = batch[name].cast(pa.string()).to_pylist()
                    except UnicodeDecodeError as error:
                        where = f"rows {first} to {first + len(batch) - 1}: column {name}"
                        raise UserError(f"{path}: {where} is not UTF-8 ({error}); write the file again") from None
                for number, row in enumerate(zip(*texts.values()), start=first):
                    yield f"row {number}", *row
                first += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a complete parquet file ({error}); write it again") from None


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _seekable(path: Path) -> BinaryIO:
    """A plain file, or an unpacked copy: parquet is read from its end."""
    if not packing(path):
        return open(path, "rb")
    with open_packed(path) as stream:
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def read_two_texts(source: Path, target: Path, *, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    """The blocks of two texts; line i of one translates line i of the other."""

    def rows() -> Iterator[tuple[str, str, str]]:
        remedy = "line i of one must translate line i of the other"
        for first, second in aligned(
            text_lines(source), text_lines(target), name=f"{source} and {target}", remedy=remedy
        ):
            if first.strip() or second.strip():
                yield first, second, ""
            else:
                counts["blank_line"] += 1

    pairs = 0
    for block in blocks(rows()):
        pairs += block.num_rows
        yield block
    if not pairs:
        raise UserError(f"{source}: the file is empty; it must hold at least one line of text")
