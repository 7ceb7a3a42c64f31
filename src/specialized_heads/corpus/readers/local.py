"""Source local: text of the user's own, as one file of pairs or two files with a sentence per line.

A file of pairs is TSV (source TAB target, optionally TAB document) or parquet (columns `source`, `target`, optionally
`document`); every file may be packed (`archives`). The held-out sets can be files of pairs too. Of an analysis set only the
source side is used, so its lines need no target.

Lines of white space alone and rows without text (null) are no pairs; they are counted. Further columns are not read.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specialized_heads.corpus.pairs import BLOCK, SCHEMA, blocks
from specialized_heads.corpus.readers.archives import ARCHIVES, data_member, disguised, lines, open_packed, packing
from specialized_heads.corpus.sources import Local, Unit
from specialized_heads.stage import UserError

FORMAT = "each line must be source TAB target (TAB document)"
HELD_OUT = ("dev", "test", "analysis")


def read(
    source: Local, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of all files; those of the user's own held-out sets carry the name of their set.

    Args:
        files: those of `source.files()`, in its order.
        counts: gains `blank_line` (also where both sides of a pair are blank) and `null`.

    Raises:
        UserError: a file is missing, empty, damaged or not in its format (with the line or row).
    """
    paths = dict(zip(source.files(), files, strict=True))
    if "path" in paths:
        yield from read_pairs_file(paths["path"], group_by=source.group_by, counts=counts)
    else:
        yield from read_two_texts(paths["source_path"], paths["target_path"], counts=counts)
    for name in HELD_OUT:
        if name in paths:
            yield from read_pairs_file(paths[name], group_by=source.group_by, counts=counts, set_=name)


def provenance(source: Local, files: Sequence[Path]) -> dict[str, Any]:
    """What the user says of the text."""
    return {"licence": source.licence, "citation": ""}


def read_pairs_file(path: Path, *, group_by: Unit, counts: Counter[str], set_: str = "") -> Iterator[pa.RecordBatch]:
    """The blocks of a file of pairs, all of one set.

    Args:
        path: TSV, or parquet where the name (without packing; of an archive, its file's) ends in .parquet.
        group_by: `document` needs the third column; `sentence` leaves the documents empty. Held-out sets may do without
            documents: each is one then.
        counts: as for `read`.
        set_: `analysis` does without targets.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; check the source's paths in the configuration")
    kind = packing(path)
    if not kind and (suffix := disguised(path)) is not None:
        raise UserError(f"{path}: what is in it is a {suffix} file; let its name end so")
    inner = data_member(path) if kind in ARCHIVES else path.stem if kind else path.name
    read_rows = _read_parquet if inner.lower().endswith(".parquet") else _read_tsv
    rows, nulls = 0, counts["null"]
    for batch in read_rows(path, group_by=group_by, counts=counts, set_=set_):
        rows += batch.num_rows
        yield batch
    if not rows:
        what = (
            f"all of its {counts['null'] - nulls} rows lack a side" if counts["null"] > nulls else "the file is empty"
        )
        raise UserError(f"{path}: {what}; it must hold at least one pair")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file; one with a carriage return inside, as old Macs end lines, would be taken for one pair."""
    for number, line in enumerate(lines(path), start=1):
        if "\r" in line:
            raise UserError(
                f"{path}: line {number}: a carriage return inside of it; end each line with a line feed (`tr '\\r' '\\n'` "
                "does so where lines end with carriage returns alone)"
            )
        yield line


def _read_tsv(path: Path, *, group_by: Unit, counts: Counter[str], set_: str) -> Iterator[pa.RecordBatch]:
    def rows() -> Iterator[tuple[str, str, str]]:
        for number, line in enumerate(_lines(path), start=1):
            if not line.strip():
                counts["blank_line"] += 1
                continue
            columns = line.split("\t")
            if len(columns) < 2:
                if set_ != "analysis":
                    raise UserError(f"{path}: line {number}: no tab; {FORMAT}")
                columns.append("")
            document = ""
            if group_by == "document":
                document = columns[2].strip() if len(columns) > 2 else ""
                document = document or set_
                if not document:
                    raise UserError(
                        f"{path}: line {number}: no document in the third column; add it, or set group_by to 'sentence'"
                    )
            yield columns[0], columns[1], document

    yield from blocks(rows(), set_=set_)


def _read_parquet(path: Path, *, group_by: Unit, counts: Counter[str], set_: str) -> Iterator[pa.RecordBatch]:
    needed = ["source"] if set_ == "analysis" else ["source", "target"]
    needed += ["document"] if group_by == "document" and not set_ else []
    first = 1
    try:
        with _seekable(path) as stream, pq.ParquetFile(stream) as file:
            there = file.schema_arrow.names
            if missing := [name for name in needed if name not in there]:
                remedy = "; add it, or set group_by to 'sentence'" if missing == ["document"] else ""
                raise UserError(
                    f"{path}: column {missing[0]} is missing; there are {', '.join(there) or 'none'}{remedy}"
                )
            if twice := [name for name in ("source", "target", "document") if there.count(name) > 1]:
                raise UserError(f"{path}: there are {there.count(twice[0])} columns {twice[0]}; leave one")
            columns = [name for name in ("source", "target", "document") if name in there]
            columns = columns if group_by == "document" else [name for name in columns if name != "document"]
            for name in columns:
                if not _is_text(file.schema_arrow.field(name).type):
                    raise UserError(f"{path}: column {name} is {file.schema_arrow.field(name).type}; it must be text")
            for batch in file.iter_batches(BLOCK, columns=columns):
                rows = pa.table(batch.columns, names=batch.schema.names)
                text = {name: pc.cast(rows[name], pa.string()).combine_chunks() for name in rows.column_names}
                for name, column in text.items():
                    _check_letters(column, where=f"{path}: rows {first} to {first + len(rows) - 1}: column {name}")
                empty = pa.repeat("", len(rows))
                target = text.get("target", empty)
                target = pc.fill_null(target, "") if set_ == "analysis" else target
                document = pc.fill_null(text.get("document", empty), "")
                if group_by == "document":
                    document = pc.if_else(pc.equal(document, ""), set_, document)
                    if (row := pc.index(document, "").as_py()) >= 0:
                        raise UserError(
                            f"{path}: row {first + row}: no document; add it, or set group_by to 'sentence'"
                        )
                whole = pc.and_(pc.is_valid(text["source"]), pc.is_valid(target))
                kept = pa.record_batch([text["source"], target, document, pa.repeat(set_, len(rows))], schema=SCHEMA)
                kept = kept.filter(whole)
                counts["null"] += len(rows) - kept.num_rows
                first += len(rows)
                yield kept
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a whole parquet file ({error}); write it again") from None


def _check_letters(column: pa.StringArray, *, where: str) -> None:
    """Parquet does not check that what it calls text is UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UserError(f"{where} is not UTF-8 ({error}); write the file again") from None


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _seekable(path: Path) -> BinaryIO:
    """A plain file, or a copy without its packing: parquet is read from its end."""
    if not packing(path):
        return open(path, "rb")
    with open_packed(path) as stream:
        copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def read_two_texts(source: Path, target: Path, *, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    """The blocks of two texts, of which line i of one translates line i of the other.

    Raises:
        UserError: as `read`; or they have different numbers of lines, or none.
    """
    for path in (source, target):
        if not path.is_file():
            raise UserError(f"{path}: no such file; check the source's paths in the configuration")
    number = 0

    def rows() -> Iterator[tuple[str, str, str]]:
        nonlocal number
        left, right = _lines(source), _lines(target)
        for first, second in zip_longest(left, right):
            if first is None or second is None:
                longer = number + 1 + sum(1 for _ in chain(left, right))
                sizes = (number, longer) if first is None else (longer, number)
                raise UserError(
                    f"{source} has {sizes[0]} lines, {target} has {sizes[1]}; line i of one must translate line i of the other"
                )
            number += 1
            if not (first.strip() or second.strip()):
                counts["blank_line"] += 1
                continue
            yield first, second, ""

    yield from blocks(rows())
    if number == counts["blank_line"]:
        raise UserError(f"{source}: the file is empty; it must hold at least one line of text")
