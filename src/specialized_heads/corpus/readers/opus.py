"""Source opus: a corpus of OPUS in Moses format, a zip archive with one plain-text file per language, aligned line by line.

The two files end in `.<pair>.<language>`, the pair in alphabetical order.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from specialized_heads.corpus.pairs import Blocks, blocks
from specialized_heads.corpus.readers.archives import aligned, lines, member, members
from specialized_heads.experiment.sources import Opus
from specialized_heads.stage import UserError


def read(source: Opus, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]) -> Blocks:
    """The pairs of the archive, in order. Nothing is dropped here."""
    (archive,) = files
    pair = "-".join(sorted(languages))
    with ExitStack() as opened:

        def of(language: str) -> Iterator[str]:
            """The lines of the only file of a language."""
            names = [name for name in members(archive) if name.endswith(f".{pair}.{language}")]
            if len(names) != 1:
                raise UserError(f"{archive}: {len(names) or 'no'} files end in .{pair}.{language}, not one")
            return lines(opened.enter_context(member(archive, names[0])))

        rows = aligned(*map(of, languages), name=f"{archive}: the two sides of {pair}")
        yield from blocks((*row, "") for row in rows)
