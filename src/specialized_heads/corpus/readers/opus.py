"""Source opus: a corpus of OPUS in Moses format, a zip archive with one plain-text file per language, aligned line by line.

The two files end in `.<pair>.<language>`, the pair in the order of the alphabet. Where documents shall not be divided, their
names are read from the `.ids` file that many releases have beside them: its first column names the document of each line.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from specialized_heads.corpus.pairs import blocks
from specialized_heads.corpus.readers.archives import lines, member, members
from specialized_heads.corpus.sources import Opus
from specialized_heads.stage import UserError

Left, Right = TypeVar("Left"), TypeVar("Right")


def read(
    source: Opus, files: Sequence[Path], *, source_language: str, target_language: str, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """The pairs of the archive, in order. Nothing is dropped here.

    Raises:
        UserError: not a whole zip archive, a file is missing in it, or the files differ in their number of lines.
    """
    (archive,) = files
    pair = "-".join(sorted((source_language, target_language)))
    with ExitStack() as opened:

        def of(ending: str) -> Iterator[str]:
            return lines(opened.enter_context(member(archive, _ending_in(archive, f".{pair}.{ending}"))))

        rows = aligned(of(source_language), of(target_language), name=f"{archive}: the two sides of {pair}")
        if source.group_by == "document":
            documents = (line.partition("\t")[0] for line in of("ids"))
            named = aligned(rows, documents, name=f"{archive}: the text and the .ids file of {pair}")
            yield from blocks((*row, document) for row, document in named)
        else:
            yield from blocks((*row, "") for row in rows)


def _ending_in(archive: Path, ending: str) -> str:
    """The one file of the archive whose name ends so."""
    found = [name for name in members(archive) if name.endswith(ending)]
    if len(found) != 1:
        remedy = "; set group_by to 'sentence'" if ending.endswith(".ids") else ""
        raise UserError(f"{archive}: {len(found) or 'no'} files end in {ending}, one is needed{remedy}")
    return found[0]


def aligned(first: Iterator[Left], second: Iterator[Right], *, name: str) -> Iterator[tuple[Left, Right]]:
    """Lines of two texts side by side.

    Raises:
        UserError: one has more lines than the other; `name` says which texts they are.
    """
    number = 0
    while True:
        left, right = next(first, None), next(second, None)
        if left is None and right is None:
            return
        if left is None or right is None:
            ended = "first" if left is None else "second"
            raise UserError(f"{name} differ in length: the {ended} ends after line {number}; get the file again")
        number += 1
        yield left, right
