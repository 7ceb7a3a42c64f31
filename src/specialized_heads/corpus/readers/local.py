"""Source local: your own text, as one file of pairs or two files with one sentence per line.

A file of pairs is TSV (source TAB target, optionally TAB document) or parquet (columns `source`, `target`, optionally
`document`); any file may be packed (`archives`). Held-out sets can be files of pairs too. Of an analysis set only the source
side is used, so its lines need no target. `columns` says which columns of a TSV are read; the others are ignored.

Blank lines, rows in which a text is null, and lines with another number of columns than the first (a tab inside a text) are not
pairs; they are counted.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

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
    """The pairs of the files of `source.files()`; `set` names the held-out set of those that you give.

    `counts` gains `blank_line` (also where both sides of a pair are blank), `null` and `other_columns`.
    """
    paths = dict(zip(source.files(), files, strict=True))
    for key, path in paths.items():
        if key == "source_path":
            yield from read_two_texts(path, paths["target_path"], counts=counts)
        elif key != "target_path":
            set_ = "" if key == "path" else key
            how = {"columns": source.columns, "group_by": source.group_by, "counts": counts, "set_": set_}
            yield from read_pairs_file(path, **how)


def read_pairs_file(
    path: Path, *, columns: Sequence[int], group_by: Unit, counts: Counter[str], set_: str
) -> Iterator[pa.RecordBatch]:
    """The blocks of a file of pairs, all of one set.

    It is parquet if its name (without packing; in an archive, the name of its file) ends in .parquet, else TSV with these
    `columns`. A held-out set without documents is one document; `analysis` needs no targets.
    """
    kind = packing(path)
    if not kind and (suffix := disguised(path)) is not None:
        raise UserError(f"{path}: its content is a {suffix} file; rename it to end in {suffix}")
    inner = data_member(path) if kind in ARCHIVES else path.stem if kind else path.name
    nulls = pairs = 0
    read = 3 if group_by == "document" else 2

    def rows() -> Iterator[tuple[str, str, str]]:
        nonlocal nulls, pairs
        if inner.lower().endswith(".parquet"):
            found = _parquet_rows(path, columns=COLUMNS[:read], set_=set_)
        else:
            found = _tsv_rows(path, columns=columns[:read], counts=counts, set_=set_)
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


def _tsv_rows(
    path: Path, *, columns: Sequence[int], counts: Counter[str], set_: str
) -> Iterator[tuple[str, str, str, str]]:
    """Place, source, target and document of each line."""
    width, kept, other, lettered = 0, 0, [], set()
    required = columns[:1] if set_ == "analysis" else columns[:2]
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            counts["blank_line"] += 1
            continue
        cells = line.split("\t")
        width = width or len(cells)
        if (last := max(required)) > len(cells):
            what = f"no column {last}" if len(cells) > 1 else "no tab"
            raise UserError(
                f"{path}: line {number}: {what}; each line must be source TAB target (TAB document), or have the `columns` given"
            )
        if len(cells) != width and max(columns) <= len(cells):
            other.append(number)
            continue
        source, target, document, *_ = [cells[c - 1] if c <= len(cells) else "" for c in columns] + [""]
        kept += 1
        lettered.update(c for c in required if any(map(str.isalpha, cells[c - 1])))
        yield f"line {number}", source, target, document.strip()
    if len(other) > kept:
        raise UserError(
            f"{path}: the first line has {width} columns, but {len(other)} of {len(other) + kept} lines have another number, the "
            f"first of them line {other[0]}; remove tabs within texts"
        )
    if kept and (numbers := sorted(set(required) - lettered)):
        raise UserError(f"{path}: column {numbers[0]} has no letter in any line; set `columns`, such as [2, 4]")
    if other:
        counts["other_columns"] += len(other)


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
