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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specialized_heads.config.sources import Local, Unit
from specialized_heads.corpus.pairs import BLOCK, COLUMNS, SCHEMA, blocks
from specialized_heads.corpus.readers.archives import (
    ARCHIVES,
    aligned,
    data_member,
    disguised,
    lines,
    open_packed,
    packing,
)
from specialized_heads.stage import UserError

FORMAT = "each line must be source TAB target (TAB document)"
HELD_OUT = ("dev", "test", "analysis")
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
    if "path" in paths:
        yield from read_pairs_file(paths["path"], group_by=source.group_by, counts=counts)
    else:
        yield from read_two_texts(paths["source_path"], paths["target_path"], counts=counts)
    for name in HELD_OUT:
        if name in paths:
            yield from read_pairs_file(paths[name], group_by=source.group_by, counts=counts, set_=name)


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
    read_rows = _read_parquet if inner.lower().endswith(".parquet") else _read_tsv
    rows, nulls = 0, counts["null"]
    for batch in read_rows(path, group_by=group_by, counts=counts, set_=set_):
        rows += batch.num_rows
        yield batch
    if not rows:
        nulls = counts["null"] - nulls
        what = f"all of its {nulls} rows lack a side" if nulls else "the file is empty"
        raise UserError(f"{path}: {what}; it must hold at least one pair")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file. Lines that end in a carriage return alone, as on old Macs, would pass for one pair."""
    for number, line in enumerate(lines(path), start=1):
        if "\r" in line:
            raise UserError(
                f"{path}: line {number}: a carriage return within the line; end each line with a line feed (`tr '\\r' '\\n'` "
                "does so where lines end with carriage returns alone)"
            )
        yield line


def _read_tsv(path: Path, *, group_by: Unit, counts: Counter[str], set_: str) -> Iterator[pa.RecordBatch]:
    def rows() -> Iterator[tuple[str, str, str]]:
        for number, line in enumerate(_lines(path), start=1):
            if not line.strip():
                counts["blank_line"] += 1
                continue
            source, *rest = line.split("\t")
            if not rest and set_ != "analysis":
                raise UserError(f"{path}: line {number}: no tab; {FORMAT}")
            target, document, *_ = [*rest, "", ""]
            document = (document.strip() or set_) if group_by == "document" else ""
            if group_by == "document" and not document:
                raise UserError(f"{path}: line {number}: no document in the third column; {GROUP}")
            yield source, target, document

    yield from blocks(rows(), set_=set_)


def _read_parquet(path: Path, *, group_by: Unit, counts: Counter[str], set_: str) -> Iterator[pa.RecordBatch]:
    needed = ["source"] if set_ == "analysis" else ["source", "target"]
    needed += ["document"] if group_by == "document" and not set_ else []
    wanted = COLUMNS if group_by == "document" else ("source", "target")
    first = 1
    try:
        with _seekable(path) as stream, pq.ParquetFile(stream) as file:
            schema = file.schema_arrow
            if missing := [name for name in needed if name not in schema.names]:
                remedy = f"; {GROUP}" if missing == ["document"] else ""
                raise UserError(
                    f"{path}: column {missing[0]} is missing; there are {', '.join(schema.names) or 'none'}{remedy}"
                )
            columns = [name for name in wanted if name in schema.names]
            for name in columns:
                if (number := schema.names.count(name)) > 1:
                    raise UserError(f"{path}: there are {number} columns {name}; leave one")
                if not _is_text(schema.field(name).type):
                    raise UserError(f"{path}: column {name} is {schema.field(name).type}; it must be text")
            for batch in file.iter_batches(BLOCK, columns=columns):
                text = {name: batch[name].cast(pa.string()) for name in columns}
                for name, column in text.items():
                    _check_utf8(column, where=f"{path}: rows {first} to {first + len(batch) - 1}: column {name}")
                empty = pa.repeat("", len(batch))
                target = text.get("target", empty)
                target = pc.fill_null(target, "") if set_ == "analysis" else target
                document = pc.fill_null(text.get("document", empty), "")
                if group_by == "document":
                    document = pc.if_else(pc.equal(document, ""), set_, document)
                    if (row := pc.index(document, "").as_py()) >= 0:
                        raise UserError(f"{path}: row {first + row}: no document; {GROUP}")
                whole = pc.and_(pc.is_valid(text["source"]), pc.is_valid(target))
                block = pa.record_batch([text["source"], target, document, pa.repeat(set_, len(batch))], schema=SCHEMA)
                block = block.filter(whole)
                counts["null"] += len(batch) - len(block)
                first += len(batch)
                yield block
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a complete parquet file ({error}); write it again") from None


def _check_utf8(column: pa.StringArray, *, where: str) -> None:
    """Parquet does not check that text is UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UserError(f"{where} is not UTF-8 ({error}); write the file again") from None


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
    """The blocks of two texts; line i of one translates line i of the other.

    Raises:
        UserError: as `read`; or they differ in their number of lines, or have none.
    """
    pairs = 0

    def rows() -> Iterator[tuple[str, str, str]]:
        nonlocal pairs
        remedy = "line i of one must translate line i of the other"
        for first, second in aligned(_lines(source), _lines(target), name=f"{source} and {target}", remedy=remedy):
            if first.strip() or second.strip():
                pairs += 1
                yield first, second, ""
            else:
                counts["blank_line"] += 1

    yield from blocks(rows())
    if not pairs:
        raise UserError(f"{source}: the file is empty; it must hold at least one line of text")
