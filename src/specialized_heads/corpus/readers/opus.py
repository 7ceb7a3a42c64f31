"""Source opus: a corpus of OPUS in Moses format, a zip archive with one plain-text file per language, aligned line by line.

The two files end in `.<pair>.<language>`, the pair in alphabetical order. With `group_by: document`, the first column of the
`.ids` file that many releases include names the document of each line.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from specialized_heads.corpus.pairs import blocks
from specialized_heads.corpus.readers.archives import aligned, lines, member, members
from specialized_heads.experiment.sources import Opus
from specialized_heads.stage import UserError


def read(
    source: Opus, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of the archive, in order. Nothing is dropped here."""
    (archive,) = files
    pair = "-".join(sorted((source_language, target_language)))
    with ExitStack() as opened:

        def of(ending: str) -> Iterator[str]:
            """The lines of the only file with this ending."""
            names = [name for name in members(archive) if name.endswith(f".{pair}.{ending}")]
            if len(names) != 1:
                remedy = "; set group_by to 'sentence'" if ending == "ids" else ""
                raise UserError(f"{archive}: {len(names) or 'no'} files end in .{pair}.{ending}, not one{remedy}")
            return lines(opened.enter_context(member(archive, names[0])))

        rows = aligned(of(source_language), of(target_language), name=f"{archive}: the two sides of {pair}")
        if source.group_by == "document":
            documents = (line.partition("\t")[0] for line in of("ids"))
            named = aligned(rows, documents, name=f"{archive}: the text and the .ids file of {pair}")
            yield from blocks(_documents(named, archive))
        else:
            yield from blocks((*row, "") for row in rows)


def _documents(named: Iterator[tuple[tuple[str, str], str]], archive: Path) -> Iterator[tuple[str, str, str]]:
    """Source, target and document of each pair; a pair without a document is a `UserError`."""
    for number, (row, document) in enumerate(named, start=1):
        if not document.strip():
            raise UserError(f"{archive}: line {number} of the .ids file names no document; set group_by to 'sentence'")
        yield *row, document
